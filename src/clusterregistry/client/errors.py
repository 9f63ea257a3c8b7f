"""Everything that a call of this package raises, apart from programming errors.

    ClientError
    ├── ConfigError                      the configuration of the client cannot be used
    │   └── ExecPluginError              an exec plugin returned no credential
    ├── TransportError                   there is no complete response of a Kubernetes-style API
    │   ├── ConnectError                 no connection, so the request was not sent
    │   │   ├── UnreachableError         unknown name, connection refused, no route
    │   │   ├── ConnectTimeoutError      no connection in time
    │   │   ├── ProxyError               the proxy refused the tunnel
    │   │   └── TLSError                 the TLS handshake failed
    │   │       ├── UntrustedCertificateError
    │   │       └── CertificateNameError
    │   ├── RequestTimeoutError          the request was sent; there is no response in time
    │   ├── DisconnectedError            the request was sent; the connection ended before the end of the response
    │   └── ResponseError                a response that no Kubernetes-style API sends
    │       ├── RedirectError
    │       ├── ResponseTooLargeError
    │       └── MalformedResponseError
    ├── LimitError                       more objects or pages than the caller allows
    └── APIStatusError                   a Status of the server; one class for each reason, see below
        ├── BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError, ...
        ├── AlreadyExistsError, ConflictError, InvalidError, TooManyRequestsError, ...
        ├── GoneError
        │   └── ExpiredError
        └── InternalError, ServerTimeoutError, ServiceUnavailableError, TimeoutStatusError

``outcome_unknown`` of any of them: the server may have carried out the request although the call failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

MAX_MESSAGE = 2048
"""Characters of a text of the server that a message shows."""

MAX_STATUS_MESSAGE = 16 << 10
"""Characters of the message of a Status in the text of its error; ``status`` has all of it."""


class ClientError(Exception):
    """A call failed. ``outcome_unknown``: the server may have carried out the request."""

    outcome_unknown = False


class ConfigError(ClientError):
    """The configuration cannot be used; ``problems`` are all that were found."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class ExecPluginError(ConfigError):
    """An exec plugin returned no credential. ``install_hint`` is the text of the kubeconfig for such cases."""

    def __init__(self, message: str, *, install_hint: str = "") -> None:
        super().__init__(f"{message}\n{install_hint}" if install_hint else message)
        self.install_hint = install_hint


class TransportError(ClientError):
    """No complete response."""

    def __init__(self, message: str, *, outcome_unknown: bool | None = None) -> None:
        super().__init__(message)
        if outcome_unknown is not None:
            self.outcome_unknown = outcome_unknown


class ConnectError(TransportError):
    """There was no connection, so that the request was not sent."""


class UnreachableError(ConnectError):
    """Unknown name, connection refused, no route."""


class ConnectTimeoutError(ConnectError):
    """No connection in time."""


class ProxyError(ConnectError):
    """The proxy refused the tunnel."""


class TLSError(ConnectError):
    """TLS failed. In TLS 1.3 a server may refuse a client certificate after the request was sent."""


class UntrustedCertificateError(TLSError):
    """The server's certificate is expired, or of an unknown authority."""


class CertificateNameError(TLSError):
    """The server's certificate is for another name."""


class RequestTimeoutError(TransportError):
    """The request was sent, and there is no response in time."""

    outcome_unknown = True


class DisconnectedError(TransportError):
    """The request was sent, and the connection ended before the end of the response."""

    outcome_unknown = True


class ResponseError(TransportError):
    """A response that no Kubernetes-style API sends. ``status`` is that of HTTP."""

    def __init__(self, message: str, *, status: int = 0, outcome_unknown: bool = True) -> None:
        super().__init__(message, outcome_unknown=outcome_unknown)
        self.status = status


class RedirectError(ResponseError):
    """A redirect, which is never followed: credentials are sent to the configured server alone."""

    def __init__(self, message: str, *, status: int, location: str) -> None:
        super().__init__(message, status=status, outcome_unknown=False)
        self.location = location


class ResponseTooLargeError(ResponseError):
    """A body, or a line of a stream, beyond the limit."""


class MalformedResponseError(ResponseError):
    """Neither a JSON object nor, for a failure, a text."""


class LimitError(ClientError):
    """More objects than the caller allows."""


class APIStatusError(ClientError):
    """The server answered with a failure. ``status`` is its Status, or one made from the HTTP status."""

    reason: ClassVar[str] = ""

    def __init__(self, status: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        message = status.get("message")
        super().__init__(message[:MAX_STATUS_MESSAGE] if isinstance(message, str) else "")
        self.status = status
        self._retry_after = retry_after

    @property
    def code(self) -> int:
        code = self.status.get("code")
        return code if type(code) is int else 0

    @property
    def details(self) -> Mapping[str, Any]:
        details = self.status.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def causes(self) -> list[Mapping[str, Any]]:
        """The causes that the Status names, such as the fields that are wrong."""
        causes = self.details.get("causes")
        return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []

    @property
    def has_retry_after_header(self) -> bool:
        return self._retry_after is not None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server accepts another attempt: of the header, else of the Status."""
        if self._retry_after is not None:
            return self._retry_after
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if type(seconds) is int and seconds > 0 else None


class BadRequestError(APIStatusError):
    reason = "BadRequest"


class UnauthorizedError(APIStatusError):
    reason = "Unauthorized"


class ForbiddenError(APIStatusError):
    reason = "Forbidden"


class NotFoundError(APIStatusError):
    reason = "NotFound"


class MethodNotAllowedError(APIStatusError):
    reason = "MethodNotAllowed"


class NotAcceptableError(APIStatusError):
    reason = "NotAcceptable"


class AlreadyExistsError(APIStatusError):
    reason = "AlreadyExists"


class ConflictError(APIStatusError):
    reason = "Conflict"


class GoneError(APIStatusError):
    """410: the resource version is too old, or the server has another history."""

    reason = "Gone"


class ExpiredError(GoneError):
    reason = "Expired"


class RequestEntityTooLargeError(APIStatusError):
    reason = "RequestEntityTooLarge"


class UnsupportedMediaTypeError(APIStatusError):
    reason = "UnsupportedMediaType"


class InvalidError(APIStatusError):
    reason = "Invalid"


class TooManyRequestsError(APIStatusError):
    reason = "TooManyRequests"


class InternalError(APIStatusError):
    reason = "InternalError"
    outcome_unknown = True


class ServerTimeoutError(APIStatusError):
    """The server did not finish in time; the object may be written."""

    reason = "ServerTimeout"
    outcome_unknown = True


class ServiceUnavailableError(APIStatusError):
    """503. Without a Retry-After header it may come from a proxy that has forwarded the request."""

    reason = "ServiceUnavailable"

    def __init__(self, status: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        super().__init__(status, retry_after=retry_after)
        self.outcome_unknown = retry_after is None


class TimeoutStatusError(APIStatusError):
    """504, reason ``Timeout``."""

    reason = "Timeout"
    outcome_unknown = True


_BY_REASON: dict[str, type[APIStatusError]] = {
    kind.reason: kind
    for kind in (
        BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError, NotAcceptableError,
        AlreadyExistsError, ConflictError, GoneError, ExpiredError, RequestEntityTooLargeError,
        UnsupportedMediaTypeError, InvalidError, TooManyRequestsError, InternalError, ServerTimeoutError,
        ServiceUnavailableError, TimeoutStatusError,
    )
}  # fmt: skip

_BY_CODE: dict[int, type[APIStatusError]] = {
    400: BadRequestError, 401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 405: MethodNotAllowedError,
    406: NotAcceptableError, 409: ConflictError, 410: GoneError, 413: RequestEntityTooLargeError,
    415: UnsupportedMediaTypeError, 422: InvalidError, 429: TooManyRequestsError, 500: InternalError,
    503: ServiceUnavailableError, 504: TimeoutStatusError,
}  # fmt: skip


def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> APIStatusError:
    """The error of a failure Status: typed by its reason, else by its code."""
    code, reason = status.get("code"), status.get("reason")
    found = _BY_REASON.get(reason) if isinstance(reason, str) else None
    kind = found or (_BY_CODE.get(code, APIStatusError) if type(code) is int else APIStatusError)
    error = kind(status, retry_after=retry_after)
    if kind is APIStatusError and error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        error.outcome_unknown = True
    return error


def from_code(code: int, message: str, *, retry_after: float | None = None) -> APIStatusError:
    """The error of a failure without a Status, as a proxy in front of the server sends it."""
    kind = _BY_CODE.get(code)
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    if kind is not None:
        status["reason"] = kind.reason
    return from_status({**status, "code": code}, retry_after=retry_after)


def printable(text: str, limit: int = MAX_MESSAGE) -> str:
    """A text from outside as one bounded line, without control characters."""
    shown = " ".join(text[: 4 * limit].split())
    return "".join(character for character in shown if character.isprintable())[:limit]
