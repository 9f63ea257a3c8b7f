"""What answers, or does not, at the address of a host cluster: in words that let a person find the mistake."""

from __future__ import annotations

import html
import http.client
import json
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.errors import ForeignAnswer, HostError

if TYPE_CHECKING:
    from clusterregistry.crinit.host.client import Client

NOT_FOUND = 404
FORBIDDEN = 403
UNAUTHORIZED = 401
_REGISTRY = "+clusterregistry."
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)
_LOOKED_AT = 16_384
_LONGEST_TEXT = 200
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer over HTTP. ``request`` is for people: the method and the path."""

    request: str
    status: int
    media_type: str
    location: str
    body: bytes

    def document(self) -> dict[str, Any] | None:
        """The JSON object that it is; None for anything else."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def is_page(self) -> bool:
        return self.media_type.partition(";")[0].strip().lower() in {"text/html", "application/xhtml+xml"}


def unreachable(error: Exception, *, url: str, context: str) -> HostError:
    """For a connection that did not come about, or ended before there was an answer."""
    compare = f"Compare: kubectl cluster-info --context {context}"
    for kind, describe in _FAILURES:
        if isinstance(error, kind):
            why, remedy = describe(error)
            return HostError(f"{url} cannot be reached: {why}", remedy=f"{remedy.format(context=context)} {compare}")
    why = str(error) or type(error).__name__
    return HostError(f"{url} cannot be reached: {why}", remedy=f"is the cluster up? {compare}")


_Described = Callable[[Any], tuple[str, str]]
_SERVER = 'is the cluster up, and is that the right server for the context "{context}"?'


def _untrusted(error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    remedy = 'is it the cluster that you mean? If so, correct the authority or the server of the context "{context}".'
    return f"its certificate is not trusted ({error.verify_message})", remedy


def _tls_failed(error: ssl.SSLError) -> tuple[str, str]:
    reason = error.reason or ""
    if reason in _NOT_TLS:
        return "something answers there, but not with TLS, so that it is no Kubernetes API", _SERVER
    shown = reason.lower().replace("_", " ") or str(error)
    if "ALERT" in reason:
        return (
            f"it refuses the connection ({shown})",
            'is the client certificate of the context "{context}" still good?',
        )
    return f"TLS fails ({shown})", _SERVER


def _unknown_name(error: socket.gaierror) -> tuple[str, str]:
    return f"its name is not known ({error.strerror})", f"{_SERVER} Is a VPN missing?"


def _closed(_: Exception) -> tuple[str, str]:
    return "it closes the connection without an answer", _SERVER


_FAILURES: tuple[tuple[type[Exception], _Described], ...] = (
    (ssl.SSLCertVerificationError, _untrusted),
    (ssl.SSLEOFError, _closed),
    (ssl.SSLZeroReturnError, _closed),
    (ssl.SSLError, _tls_failed),
    (socket.gaierror, _unknown_name),
    (ConnectionRefusedError, lambda _: ("nothing listens there (connection refused)", _SERVER)),
    (TimeoutError, lambda _: ("there is no answer", f"{_SERVER} Is a firewall or a missing VPN in between?")),
    (ConnectionError, _closed),
    (http.client.HTTPException, lambda _: ("what answers there does not speak HTTP", _SERVER)),
)
"""The first that fits counts: an SSLError is an OSError too, and a RemoteDisconnected a ConnectionError."""


def refused(answer: Answer, *, url: str, context: str) -> HostError:
    """For a status that tells of an error: what the server says, unless it is no Kubernetes API."""
    if answer.is_page:
        return foreign(answer, url=url, context=context)
    message = (answer.document() or {}).get("message")
    if not isinstance(message, str) or not message:
        message = _printable(answer.body.decode("utf-8", "replace")) or f"status {answer.status}"
    remedy = _remedy(answer.status, message)
    return HostError(f"{message} ({answer.request}: {answer.status})", remedy=remedy, status=answer.status)


def _remedy(status: int, message: str) -> str:
    if status == UNAUTHORIZED:
        return "sign in anew: does `kubectl auth whoami` work with the same context?"
    if "exceeded quota" in message:
        return "raise the ResourceQuota of the namespace, or deploy into another: --cluster-registry-namespace"
    if "being terminated" in message:
        return "wait until the namespace is gone and run the same command again, or name another namespace"
    if status == FORBIDDEN:
        return "ask an administrator of the host cluster for this right, or use a context that has it"
    return "correct what the message names and run the same command again: what is there stays"


def foreign(answer: Answer, *, url: str, context: str) -> ForeignAnswer:
    """For an answer that no Kubernetes API gives."""
    return ForeignAnswer(
        f"{url} does not answer as a Kubernetes API does, but with {_described(answer)} "
        f"({answer.request}: {answer.status})",
        remedy=f'is that the right server for the context "{context}"? A login page or a proxy may be in front of it. '
        f"Compare: kubectl cluster-info --context {context}",
        status=answer.status,
    )


def _described(answer: Answer) -> str:
    if answer.location:
        return f"a redirect to {_printable(answer.location)}"
    if answer.is_page:
        found = _TITLE.search(answer.body[:_LOOKED_AT].decode("utf-8", "replace"))
        title = _printable(html.unescape(found[1])) if found else ""
        return f'a web page, "{title}"' if title else "a web page"
    return _printable(answer.media_type) or "something that is not JSON"


def _printable(text: str) -> str:
    """One line, without what would move the cursor of a terminal."""
    shown = " ".join(text[: 4 * _LONGEST_TEXT].split())
    return "".join(character for character in shown if character.isprintable())[:_LONGEST_TEXT]


def require_cluster(client: Client) -> str:
    """The version of a cluster into which a registry can be deployed. Raises HostError, or OperatorError for others.

    Asked before anything else: a server that answers everything with 404 would pass for a cluster with nothing in it.
    """
    version = _version(client)
    try:
        if client.get("/apis/apps/v1") is not None:
            return version
    except HostError as error:
        if error.status != FORBIDDEN:
            raise
        return version  # who may not look is told later which right is missing
    contexts = "--host-cluster-context=CONTEXT (`kubectl config get-contexts` lists them)"
    if _REGISTRY in version:
        raise OperatorError(
            f'the context "{client.context}" leads to a cluster registry ({client.url}), not to the cluster in which '
            "one is to run",
            remedy=f"name the context of that cluster: {contexts}",
        )
    raise OperatorError(
        f"{client.url} is a Kubernetes-style API ({version}) without Deployments (apps/v1): nothing can run there",
        remedy=f"name the context of a cluster: {contexts}",
    )


def _version(client: Client) -> str:
    try:
        found = client.call("GET", "/version").get("gitVersion")
    except ForeignAnswer:
        raise
    except HostError as error:
        if error.status != NOT_FOUND:
            raise
        found = None
    if isinstance(found, str):
        return _printable(found)
    raise OperatorError(
        f"{client.url} is no Kubernetes API: at /version it names no version of Kubernetes",
        remedy=f'is that the right server for the context "{client.context}"? '
        f"Compare: kubectl cluster-info --context {client.context}",
    )
