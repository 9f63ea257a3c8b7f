"""Errors of the client as reasons and messages: for each kind one, in one bounded line, without credentials."""

from __future__ import annotations

import errno
import inspect
import socket
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.client import errors
from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.observer.failure import (
    MAX_MESSAGE,
    CutError,
    ProbeError,
    RoundError,
    bounded,
    probe_error,
)
from clusterregistry.controllers.observer.observation import Reason

TOKEN = "eyJhbGciOiJSUzI1NiJ9." + "0123456789abcdef" * 60
CREDENTIAL = Credential(authorization=f"Bearer {TOKEN}")
NONE = Credential()


def caused(error: errors.TransportError, cause: BaseException) -> errors.TransportError:
    error.cause = cause
    return error


def verification(code: int, message: str = "it is so") -> ssl.SSLCertVerificationError:
    cause = ssl.SSLCertVerificationError(1, "failed")
    cause.verify_code, cause.verify_message = code, message
    return cause


def alert(reason: str) -> ssl.SSLError:
    cause = ssl.SSLError(1, "alert")
    cause.reason = reason
    return cause


def unreachable(number: int) -> errors.TransportError:
    return caused(errors.UnreachableError("the server cannot be reached"), OSError(number, "no"))


CASES: dict[str, tuple[errors.ClientError, Reason, type[ProbeError], str]] = {
    "no name": (
        caused(errors.UnreachableError("the name of the server is not known"), socket.gaierror(-2, "unknown")),
        Reason.NAME_NOT_RESOLVED,
        RoundError,
        "name of the server",
    ),
    "refused": (unreachable(errno.ECONNREFUSED), Reason.CONNECTION_REFUSED, RoundError, "refuses"),
    "reset": (unreachable(errno.ECONNRESET), Reason.CONNECTION_REFUSED, RoundError, "https port"),
    "ended": (
        caused(errors.UnreachableError("ended"), ConnectionError()),
        Reason.CONNECTION_REFUSED,
        RoundError,
        "https port",
    ),
    "no route": (unreachable(errno.EHOSTUNREACH), Reason.CONNECTION_REFUSED, RoundError, "no route to the server"),
    "no network": (unreachable(errno.ENETUNREACH), Reason.CONNECTION_REFUSED, RoundError, "no route to the network"),
    "kernel timeout": (unreachable(errno.ETIMEDOUT), Reason.TIMED_OUT, RoundError, "cannot be reached"),
    "no connection in time": (
        errors.ConnectTimeoutError("no connection in time"),
        Reason.TIMED_OUT,
        RoundError,
        "time",
    ),
    "no response in time": (errors.RequestTimeoutError("no response in time"), Reason.TIMED_OUT, RoundError, "time"),
    "proxy": (errors.ProxyError("the proxy refuses"), Reason.CONNECTION_REFUSED, RoundError, "proxy"),
    "tls": (
        caused(errors.TLSError("TLS fails: no protocols available"), alert("NO_PROTOCOLS_AVAILABLE")),
        Reason.TLS_UNTRUSTED,
        RoundError,
        "no protocols available",
    ),
    "client certificate": (
        caused(errors.TLSError("TLS fails: certificate required"), alert("TLSV13_ALERT_CERTIFICATE_REQUIRED")),
        Reason.UNAUTHORIZED,
        RoundError,
        "certificate required",
    ),
    "expired": (
        caused(errors.UntrustedCertificateError("no"), verification(10)),
        Reason.TLS_UNTRUSTED,
        RoundError,
        "has expired",
    ),
    "not yet valid": (
        caused(errors.UntrustedCertificateError("no"), verification(9)),
        Reason.TLS_UNTRUSTED,
        RoundError,
        "clocks",
    ),
    "other authority": (
        caused(errors.UntrustedCertificateError("no"), verification(20, "unable to get issuer")),
        Reason.TLS_UNTRUSTED,
        RoundError,
        "unknown authority",
    ),
    "other name": (
        caused(errors.CertificateNameError("another name: not valid for 'x'."), verification(62)),
        Reason.TLS_UNTRUSTED,
        RoundError,
        "'x': check serverAddress",
    ),
    "configuration": (errors.ConfigError("it is no PEM"), Reason.TLS_UNTRUSTED, RoundError, "caBundle"),
    "plugin": (errors.ExecPluginError("no"), Reason.TLS_UNTRUSTED, RoundError, "caBundle"),
    "cut": (errors.DisconnectedError("ended"), Reason.BAD_RESPONSE, CutError, "before the response was complete"),
    "redirect": (
        errors.RedirectError("a redirect", status=302, location="https://other"),
        Reason.BAD_RESPONSE,
        ProbeError,
        "redirect",
    ),
    "too large": (
        errors.ResponseTooLargeError("more than 5 bytes", status=200, limit=5),
        Reason.BAD_RESPONSE,
        ProbeError,
        "more than",
    ),
    "no http": (errors.MalformedResponseError("bad"), Reason.BAD_RESPONSE, ProbeError, "does not answer with HTTP"),
    "no json": (
        errors.MalformedResponseError("no JSON object", status=200),
        Reason.BAD_RESPONSE,
        ProbeError,
        "no JSON object",
    ),
    "too many": (errors.LimitError("too many objects"), Reason.BAD_RESPONSE, ProbeError, "too many"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_error_has_a_reason_and_says_what_it_is(name: str) -> None:
    error, reason, kind, part = CASES[name]
    found = probe_error(error, credential=CREDENTIAL)
    assert found.failure.reason is reason
    assert type(found) is kind
    assert part in found.failure.message
    assert not found.retry_after


def test_every_class_of_errors_has_a_case() -> None:
    """Those of responses are below; the others are bases."""
    bases = {errors.ClientError, errors.TransportError, errors.ConnectError, errors.ResponseError}
    declared = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.ClientError) and not issubclass(each, errors.APIStatusError)
    }
    assert declared - bases == {type(error) for error, *_ in CASES.values()}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (400, Reason.BAD_RESPONSE),
        (401, Reason.UNAUTHORIZED),
        (403, Reason.FORBIDDEN),
        (404, Reason.BAD_RESPONSE),
        (405, Reason.BAD_RESPONSE),
        (410, Reason.BAD_RESPONSE),
        (418, Reason.BAD_RESPONSE),
        (429, Reason.NOT_READY),
        (500, Reason.NOT_READY),
        (503, Reason.NOT_READY),
        (504, Reason.NOT_READY),
        (599, Reason.NOT_READY),
    ],
)
def test_each_status_has_a_reason(code: int, reason: Reason) -> None:
    found = probe_error(errors.from_code(code, "so it is", retry_after=7.0), credential=CREDENTIAL)
    assert found.failure.reason is reason
    assert found.failure.message.startswith(f"{code} ")
    assert found.failure.message.endswith("so it is")
    assert isinstance(found, RoundError) == (code == 401)
    assert found.retry_after == (0.0 if code == 401 else 7.0)


def test_a_status_that_nobody_knows_is_told_by_its_number() -> None:
    assert probe_error(errors.from_code(599, ""), credential=NONE).failure.message == "599 unknown status"


@pytest.mark.parametrize("said", ["<html>a proxy</html>", "x" * (MAX_MESSAGE + 1)])
def test_pages_of_proxies_are_not_told(said: str) -> None:
    assert probe_error(errors.from_code(503, said), credential=NONE).failure.message == "503 Service Unavailable"


def redirect_to(location: str) -> errors.ClientError:
    return errors.RedirectError(f"a redirect to {location}"[:500], status=307, location=location)


@pytest.mark.parametrize("token", [TOKEN, "a" * 20, "c7", "secret"])
@pytest.mark.parametrize("echo", [lambda text: errors.from_code(403, text), redirect_to])
def test_a_cluster_cannot_return_its_credential(token: str, echo: Any) -> None:
    found = probe_error(echo(f"{token}/{token}?{token}"), credential=Credential(authorization=f"Bearer {token}"))
    assert token[:16] not in found.failure.message
    assert "[credential]" in found.failure.message or len(token) > MAX_MESSAGE


def test_the_beginning_of_a_credential_that_was_cut_is_not_told_either() -> None:
    """Texts of the client are cut before they come here; a token may be longer than they are."""
    for end in range(20, len(TOKEN)):
        assert TOKEN[:16] not in bounded(f"see https://other/?token={TOKEN[:end]}", credential=CREDENTIAL)


def test_what_is_no_credential_stays() -> None:
    assert bounded("Bearer tokens are refused", credential=CREDENTIAL) == "Bearer tokens are refused"
    assert bounded("a text", credential=NONE) == "a text"


@given(
    st.text(max_size=2000), st.text(alphabet=st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=16)
)
def test_messages_are_one_printable_bounded_line_without_the_credential(text: str, token: str) -> None:
    shown = bounded(f"{text}{token}{text}", credential=Credential(authorization=f"Bearer {token}"))
    assert len(shown) <= MAX_MESSAGE
    assert shown.isprintable()
    assert token not in shown
