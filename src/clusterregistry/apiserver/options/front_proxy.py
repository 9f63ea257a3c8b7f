"""Options about an authenticating proxy in front of the server, with kube-apiserver's names."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apiserver.options import checks
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import FILE, WORDS

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_CA_FLAG = "--requestheader-client-ca-file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontProxyOptions:
    """Front proxy."""

    requestheader_client_ca_file: Path | None = option(
        None,
        kind=FILE,
        help="Certificate authorities, PEM, of front proxies: a client with one of their certificates may name "
        "the user in headers. Such headers of other clients are ignored. Read again when it changes.",
        default_shown="no front proxy",
        example="--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
    )
    requestheader_allowed_names: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The common names of front proxies' certificates.",
        default_shown="every certificate of these authorities is a front proxy's",
        example="--requestheader-allowed-names=front-proxy-client",
    )
    requestheader_username_headers: tuple[str, ...] = option(
        ("X-Remote-User",),
        kind=WORDS,
        help="Headers with the user's name: the first one that is there and not empty counts.",
    )
    requestheader_uid_headers: tuple[str, ...] = option(
        ("X-Remote-Uid",),
        kind=WORDS,
        help="Headers with the user's uid, likewise.",
    )
    requestheader_group_headers: tuple[str, ...] = option(
        ("X-Remote-Group",),
        kind=WORDS,
        help="Headers with a group each: all values of all of them count.",
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = option(
        ("X-Remote-Extra-",),
        kind=WORDS,
        help="How headers with more about the user begin; the rest of a header's name is the key.",
    )


_DEFAULTS = FrontProxyOptions()


def problems(options: FrontProxyOptions, *, client_ca_file: Path | None) -> list[Problem]:
    """Returns every mistake in the group. A mistake here could let any client act as any user."""
    authorities = options.requestheader_client_ca_file
    if authorities is None:
        return _without_authorities(options)
    found = checks.readable_file(_CA_FLAG, authorities)
    if not options.requestheader_username_headers:
        found.append(Problem("--requestheader-username-headers", "at least one header must be named"))
    if not options.requestheader_allowed_names and client_ca_file is not None and _same(authorities, client_ca_file):
        why = "is also --client-ca-file: every user's certificate could pose as the front proxy"
        found.append(Problem(_CA_FLAG, why, "give --requestheader-allowed-names, or a CA of its own"))
    return [*found, *_name_problems(options)]


def _without_authorities(options: FrontProxyOptions) -> list[Problem]:
    if options == _DEFAULTS:
        return []
    return [Problem("", f"options for a front proxy were given without {_CA_FLAG}, which names the trusted proxies")]


def _name_problems(options: FrontProxyOptions) -> list[Problem]:
    named = {
        "--requestheader-username-headers": options.requestheader_username_headers,
        "--requestheader-uid-headers": options.requestheader_uid_headers,
        "--requestheader-group-headers": options.requestheader_group_headers,
        "--requestheader-extra-headers-prefix": options.requestheader_extra_headers_prefix,
    }
    return [
        Problem(flag, f'"{header}" is no name of a header', "such as X-Remote-User")
        for flag, headers in named.items()
        for header in headers
        if _HEADER_NAME.fullmatch(header) is None
    ]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is missing: reported elsewhere
        return False
