"""Under which name a write is recorded in the managed fields."""

from __future__ import annotations

import re

from clusterregistry.apimachinery.bounded_cache import remembered
from clusterregistry.apimachinery.meta.object_meta_validation import FIELD_MANAGER_LIMIT
from clusterregistry.apiserver.endpoints.options import WriteOptions
from clusterregistry.apiserver.http.request import Request

_UNDECODED = re.compile("[\udc80-\udcff]")


def field_manager(request: Request, options: WriteOptions) -> str:
    """The ``fieldManager`` of the query or else the program that the User-Agent names; empty when neither says."""
    return options.field_manager or _program(request.header("user-agent"))


@remembered(1024)
def _program(user_agent: str) -> str:
    """What stands before the first slash, without what cannot be printed, as kube-apiserver does."""
    # Headers come as latin-1; Go reads them as UTF-8, and each byte that fits nowhere as U+FFFD.
    name = _UNDECODED.sub("\N{REPLACEMENT CHARACTER}", user_agent.encode("latin-1").decode(errors="surrogateescape"))
    name = name.partition("/")[0]
    kept = size = 0
    printable = [character for character in name if character.isprintable()]
    for character in printable:
        size += len(character.encode())
        if size > FIELD_MANAGER_LIMIT:
            break
        kept += 1
    return "".join(printable[:kept])
