"""How a call can end, in gRPC's terms."""

from __future__ import annotations

from enum import IntEnum


class StatusCode(IntEnum):
    """The numbers are gRPC's."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """A call without an answer. ``details`` is what the server says about it, or what went wrong on the way."""

    def __init__(self, code: StatusCode, details: str, *, reached: bool = True) -> None:
        super().__init__(code, details)
        self.code, self.details = code, details
        self.reached = reached
        """Whether the server can have got the whole of the request. Without that it has not begun with it."""

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details}"


def unavailable(details: str, *, reached: bool = True) -> RpcError:
    """For what goes wrong between the server and us."""
    return RpcError(StatusCode.UNAVAILABLE, details, reached=reached)


def code_of(number: int) -> StatusCode:
    """A number that gRPC does not have counts as unknown."""
    try:
        return StatusCode(number)
    except ValueError:
        return StatusCode.UNKNOWN


_BY_HTTP_STATUS = {
    400: StatusCode.INTERNAL,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.UNIMPLEMENTED,
    429: StatusCode.UNAVAILABLE,
    502: StatusCode.UNAVAILABLE,
    503: StatusCode.UNAVAILABLE,
    504: StatusCode.UNAVAILABLE,
}


def code_of_http(status: int) -> StatusCode:
    """What the answer of something in between that knows no gRPC comes to, as gRPC has it."""
    return _BY_HTTP_STATUS.get(status, StatusCode.UNKNOWN)
