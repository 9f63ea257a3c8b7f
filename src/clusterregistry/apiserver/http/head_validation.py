"""Heads that the parser takes, and that are not to be answered: HTTP forbids them, or they have two meanings.

What is refused, and how, is as in Go's server. A proxy in front that reads such a head in another way than we do would
send us what it means to keep from us.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

_VERSIONS = frozenset(("1.0", "1.1"))
_HOST = re.compile(r"[A-Za-z0-9!$%&()*+,.:;=@\[\]'_~-]*")
"""As Go's ``httpguts.ValidHostHeader``: what a name, an address and a port can be made of, and may be empty."""


class HeadRefusedError(Exception):
    """A head that is no request of ours to answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_head(version: str, headers: dict[str, str], repeated: Sequence[tuple[str, str]]) -> None:
    """Raises HeadRefusedError. Headers have the values that came first, by name; ``repeated`` those behind them."""
    if version not in _VERSIONS:
        raise HeadRefusedError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, f"HTTP/{version}")
    _check_host(version, headers.get("host"))
    if "transfer-encoding" in headers:
        _check_encoding(version, headers["transfer-encoding"])
    if "expect" in headers:
        _check_expectation(headers["expect"])
    for name, value in repeated:
        if name in _CHECKS_OF_FURTHER:
            _CHECKS_OF_FURTHER[name](value)


def _check_host(version: str, host: str | None) -> None:
    if host is None:
        if version != "1.0":
            raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "no Host")
    elif not _HOST.fullmatch(host):
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "a Host that can be none")


def _check_encoding(version: str, encoding: str) -> None:
    """The parser takes any that ends with chunks, and would give us a body that is still encoded."""
    if version == "1.0":
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "an encoding that HTTP/1.0 does not know")
    if encoding.lower() != "chunked":
        raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "an encoding other than chunked")


def _check_expectation(expected: str) -> None:
    if expected and expected.lower() != "100-continue":
        raise HeadRefusedError(HTTPStatus.EXPECTATION_FAILED, "an expectation other than 100-continue")


def _refuse_second_host(_: str) -> None:
    raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "more than one Host")


def _refuse_second_encoding(_: str) -> None:
    raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "more than one encoding")


_CHECKS_OF_FURTHER = {
    "host": _refuse_second_host,
    "transfer-encoding": _refuse_second_encoding,
    "expect": _check_expectation,
}
