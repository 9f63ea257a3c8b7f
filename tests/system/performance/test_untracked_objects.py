"""What there is one of for each object or write the garbage collector must not have to look at.

It looks at what is new, and everything else stands still meanwhile: with two of these for each write, some thousand
writes were 30 ms.
"""

import gc

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.endpoints.table import Row
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import Memo

KV = KeyValue("/registry/clusters/a", b"{}", 1)


@pytest.mark.parametrize(
    "kept",
    [
        KV,
        Event(KV.key, 1, KV, None),
        Memo(0, 2, {"env": "prod"}),
        Row(0, 2, cells=b"", time=0, behind=b"", size=2),
        Attributes(User("jane"), "get", is_resource_request=True),
    ],
    ids=lambda kept: type(kept).__name__,
)
def test_the_collector_does_not_look_at_it(kept: object) -> None:
    assert not gc.is_tracked(kept)
