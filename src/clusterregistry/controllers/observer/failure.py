"""Turns the errors of a request to a cluster into failures: a reason and one line for people, without credentials."""

from __future__ import annotations

import errno
import socket
import ssl
from http import HTTPStatus

from clusterregistry.client import errors
from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.observer.observation import Failure, Reason

MAX_MESSAGE = 256

_TELLING = 16
"""Characters of a secret that are not shown."""

_EXPIRED, _NOT_YET_VALID = 10, 9
"""X509_V_ERR_CERT_HAS_EXPIRED and X509_V_ERR_CERT_NOT_YET_VALID."""

_REFUSED_CERTIFICATE = frozenset({
    "TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_CERTIFICATE_REVOKED", "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "TLSV1_ALERT_UNKNOWN_CA", "TLSV1_ALERT_ACCESS_DENIED",
})  # fmt: skip
"""Alerts by which a server refuses the certificate of its client."""


_ENDED_EARLY = "the server ended the connection before TLS: is this an https port?"
_NETWORK_TEXTS = {
    errno.ECONNREFUSED: "the server refuses the connection",
    errno.ECONNRESET: _ENDED_EARLY,
    errno.EHOSTUNREACH: "there is no route to the server",
    errno.ENETUNREACH: "there is no route to the network of the server",
}


class ProbeError(Exception):
    """A probe failed: the section gets ``failure``. ``retry_after`` in seconds, if the cluster named a time."""

    def __init__(self, failure: Failure, *, retry_after: float = 0.0) -> None:
        super().__init__(failure.message)
        self.failure, self.retry_after = failure, retry_after


class RoundError(ProbeError):
    """A failure that ends the round: there is no connection, no answer in time, or the credential is refused."""


class CutError(ProbeError):
    """The connection ended before the response was complete."""


def bounded(text: str, *, credential: Credential | None = None) -> str:
    """A text as one printable line of at most 256 characters, in which a cluster cannot return its credential."""
    shown = errors.printable(text, 4 * MAX_MESSAGE)
    _, _, secret = credential.authorization.partition(" ") if credential else ("", "", "")
    if secret:
        shown = _masked(shown, secret)
    return shown if len(shown) <= MAX_MESSAGE else f"{shown[: MAX_MESSAGE - 3]}..."


def _masked(text: str, secret: str) -> str:
    """A text without the secret, and without a beginning of it: texts are cut, tokens may be longer than they are."""
    start, shown = secret[:_TELLING], ""
    while (at := text.find(start)) >= 0:
        shown += f"{text[:at]}[credential]"
        text = text[at + _common_length(text[at:], secret) :]
    return shown + text


def _common_length(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def probe_error(error: errors.ClientError, *, credential: Credential) -> ProbeError:
    """The error of a probe for an error of the client."""
    if isinstance(error, errors.APIStatusError):
        return _status_error(error, credential)
    failure = Failure(reason=_reason(error), message=bounded(_text(error), credential=credential))
    if isinstance(error, errors.DisconnectedError):
        return CutError(failure)
    if failure.reason is Reason.BAD_RESPONSE:
        return ProbeError(failure)
    return RoundError(failure)


def _status_error(error: errors.APIStatusError, credential: Credential) -> ProbeError:
    failure = Failure(reason=_status_reason(error.code), message=_status_text(error, credential))
    if failure.reason is Reason.UNAUTHORIZED:
        return RoundError(failure)
    return ProbeError(failure, retry_after=error.retry_after or 0.0)


def _status_reason(code: int) -> Reason:
    if code == HTTPStatus.UNAUTHORIZED:
        return Reason.UNAUTHORIZED
    if code == HTTPStatus.FORBIDDEN:
        return Reason.FORBIDDEN
    if code == HTTPStatus.TOO_MANY_REQUESTS or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Reason.NOT_READY
    return Reason.BAD_RESPONSE


def _status_text(error: errors.APIStatusError, credential: Credential) -> str:
    phrase = HTTPStatus(error.code).phrase if error.code in _KNOWN_CODES else "unknown status"
    said = str(error)
    plain = "<" not in said and len(said) <= MAX_MESSAGE and said != phrase  # not the page of a proxy
    return bounded(f"{error.code} {phrase}{': ' + said if said and plain else ''}", credential=credential)


_KNOWN_CODES = frozenset(int(code) for code in HTTPStatus)


def _reason(error: errors.ClientError) -> Reason:
    cause = getattr(error, "cause", None)
    if isinstance(error, errors.ConnectTimeoutError | errors.RequestTimeoutError):
        return Reason.TIMED_OUT
    if isinstance(error, errors.TLSError):
        is_refused = isinstance(cause, ssl.SSLError) and getattr(cause, "reason", "") in _REFUSED_CERTIFICATE
        return Reason.UNAUTHORIZED if is_refused else Reason.TLS_UNTRUSTED
    if isinstance(error, errors.ConnectError):
        if isinstance(cause, socket.gaierror):
            return Reason.NAME_NOT_RESOLVED
        if isinstance(cause, OSError) and cause.errno == errno.ETIMEDOUT:
            return Reason.TIMED_OUT
        return Reason.CONNECTION_REFUSED
    if isinstance(error, errors.ConfigError):
        return Reason.TLS_UNTRUSTED
    return Reason.BAD_RESPONSE


def _text(error: errors.ClientError) -> str:
    cause = getattr(error, "cause", None)
    if isinstance(error, errors.CertificateNameError):
        return f"{str(error).rstrip('.')}: check serverAddress against the names in the certificate"
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code == _EXPIRED:
            return "the server's certificate has expired: renew it on the cluster"
        if cause.verify_code == _NOT_YET_VALID:
            return "the server's certificate is not valid yet: check the clocks"
        why = cause.verify_message
        return f"the server's certificate is of an unknown authority: another cluster, or a new CA ({why})"
    if isinstance(error, errors.UnreachableError) and isinstance(cause, OSError) and cause.errno in _NETWORK_TEXTS:
        return _NETWORK_TEXTS[cause.errno]
    if isinstance(error, errors.UnreachableError) and isinstance(cause, ConnectionError):
        return _ENDED_EARLY
    if isinstance(error, errors.DisconnectedError):
        return "the connection ended before the response was complete"
    if isinstance(error, errors.MalformedResponseError) and not error.status:
        return "the server does not answer with HTTP"
    if isinstance(error, errors.ConfigError):
        return f"spec.kubernetesApiEndpoints.caBundle or the client certificate cannot be used: {error}"
    return str(error)
