"""Explains the failures of a call of the host cluster: which server answered, or why none did, and what to do."""

from __future__ import annotations

import html
import re
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import errors
from clusterregistry.client.errors import Excerpt, printable
from clusterregistry.crinit.errors import ForeignAnswer, HostError

if TYPE_CHECKING:
    from clusterregistry.crinit.host.client import Client

NOT_FOUND = 404
FORBIDDEN = 403
UNAUTHORIZED = 401
_REGISTRY = "+clusterregistry."
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)
_LONGEST_TEXT = 200
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})
_SERVER = 'is the cluster up, and is that the right server for the context "{context}"?'


def explain(error: errors.ClientError, *, request: str, url: str, context: str) -> OperatorError:
    """The error for a person. ``request`` is the method and the path."""
    where = _Where(request=request, url=url, context=context)
    match error:
        case errors.ConfigError():
            return unusable(error, context=context)
        case errors.APIStatusError():
            return where.refused(error)
        case errors.ResponseTooLargeError():
            return where.too_large(error)
        case errors.ResponseError(status=status) if status:
            return where.foreign(_described(error), status=status)
        case _:
            return where.unreachable(error)


def unusable(error: errors.ConfigError, *, context: str) -> OperatorError:
    """For a kubeconfig whose context has no usable credentials."""
    if isinstance(error, errors.ExecPluginError):
        hint = error.install_hint
        return OperatorError(
            str(error).removesuffix(f"\n{hint}"),
            remedy=hint or "try the same context with kubectl: what helps there helps here",
        )
    problems = [problem.removeprefix(f'context "{context}": ') for problem in error.problems]
    listed = "; ".join(problems)
    if all(problem.startswith("user.token") for problem in problems):
        return OperatorError(f"the token of the kubeconfig: {listed}", remedy="correct the kubeconfig")
    if all("SOCKS" in problem for problem in problems):
        remedy = "use a proxy of http://HOST:PORT, or run crinit where the host cluster is reached without one"
        return OperatorError(f'the context "{context}" cannot be used: {listed}', remedy=remedy)
    if all("certificate" in problem or "client-key" in problem for problem in problems):
        return OperatorError(
            f'certificates of the context "{context}": {listed}', remedy="correct them in the kubeconfig"
        )
    return OperatorError(f'the context "{context}" cannot be used: {listed}', remedy="correct the kubeconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    """The request that failed, and its server."""

    request: str
    url: str
    context: str

    def refused(self, error: errors.APIStatusError) -> HostError:
        """For a failure status: the message of the server, unless the server is no Kubernetes API."""
        if _is_page(error.excerpt):
            return self.foreign(_page(error.excerpt), status=error.code)
        message = str(error) or f"status {error.code}"
        return HostError(
            f"{message} ({self.request}: {error.code})", remedy=_remedy(error.code, message), status=error.code
        )

    def too_large(self, error: errors.ResponseTooLargeError) -> HostError:
        return HostError(
            f"{self.url} answers {self.request} with more than {error.limit >> 20} MiB",
            remedy=f'is that the right server for the context "{self.context}"?',
            status=error.status,
        )

    def foreign(self, described: str, *, status: int) -> ForeignAnswer:
        """For a response that no Kubernetes API sends."""
        return ForeignAnswer(
            f"{self.url} does not answer as a Kubernetes API does, but with {described} ({self.request}: {status})",
            remedy=f'is that the right server for the context "{self.context}"? A login page or a proxy may be in '
            f"front of it. Compare: kubectl cluster-info --context {self.context}",
            status=status,
        )

    def unreachable(self, error: errors.ClientError) -> HostError:
        """For a connection that failed, or ended before there was a response."""
        why, remedy = _failure(error)
        return HostError(
            f"{self.url} cannot be reached: {why}",
            remedy=f"{remedy.format(context=self.context)} Compare: kubectl cluster-info --context {self.context}",
        )


def _failure(error: errors.ClientError) -> tuple[str, str]:
    """Why there is no response, and a remedy that may name the context."""
    cause = error.cause if isinstance(error, errors.TransportError) else None
    match error:
        case errors.UntrustedCertificateError() | errors.CertificateNameError():
            reason = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else str(error)
            remedy = "is it the cluster that you mean? If so, correct the authority or the server of the context"
            return f"its certificate is not trusted ({reason})", f'{remedy} "{{context}}".'
        case errors.TLSError():
            return _tls_failure(error, cause)
        case errors.ConnectTimeoutError() | errors.RequestTimeoutError():
            return "there is no answer", f"{_SERVER} Is a firewall or a missing VPN in between?"
        case errors.MalformedResponseError():
            return "what answers there does not speak HTTP", _SERVER
    match cause:
        case socket.gaierror():
            return f"its name is not known ({cause.strerror})", f"{_SERVER} Is a VPN missing?"
        case ConnectionRefusedError():
            return "nothing listens there (connection refused)", _SERVER
    if isinstance(error, errors.DisconnectedError) or isinstance(cause, ConnectionError):
        return "it closes the connection without an answer", _SERVER
    return str(error) or type(error).__name__, "is the cluster up?"


def _tls_failure(error: errors.TLSError, cause: BaseException | None) -> tuple[str, str]:
    reason = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it closes the connection without an answer", _SERVER
    if reason in _NOT_TLS:
        return "something answers there, but not with TLS, so that it is no Kubernetes API", _SERVER
    shown = reason.lower().replace("_", " ") or str(error)
    if "ALERT" in reason:
        return (
            f"it refuses the connection ({shown})",
            'is the client certificate of the context "{context}" still good?',
        )
    return f"TLS fails ({shown})", _SERVER


def _remedy(status: int, message: str) -> str:
    if status == UNAUTHORIZED:
        return "sign in again: does `kubectl auth whoami` work with the same context?"
    if "exceeded quota" in message:
        return "raise the ResourceQuota of the namespace, or deploy into another: --cluster-registry-namespace"
    if "being terminated" in message:
        return "wait until the namespace is gone and run the same command again, or name another namespace"
    if status == FORBIDDEN:
        return "ask an administrator of the host cluster for this right, or use a context that has it"
    return "correct what the message names and run the same command again: what is there stays"


def _described(error: errors.ResponseError) -> str:
    if isinstance(error, errors.RedirectError):
        return f"a redirect to {printable(error.location, _LONGEST_TEXT)}"
    if _is_page(error.excerpt):
        return _page(error.excerpt)
    return printable(error.excerpt.content_type, _LONGEST_TEXT) or "something that is not JSON"


def _is_page(excerpt: Excerpt) -> bool:
    return excerpt.content_type.partition(";")[0].strip().lower() in {"text/html", "application/xhtml+xml"}


def _page(excerpt: Excerpt) -> str:
    found = _TITLE.search(excerpt.body.decode("utf-8", "replace"))
    title = printable(html.unescape(found[1]), _LONGEST_TEXT) if found else ""
    return f'a web page, "{title}"' if title else "a web page"


def require_cluster(client: Client) -> str:
    """The version of a cluster into which a registry can be deployed. Raises HostError, or OperatorError for others.

    Called before anything else: a server that answers everything with 404 would pass for an empty cluster.
    """
    version = _version(client)
    try:
        if client.get("/apis/apps/v1") is not None:
            return version
    except HostError as error:
        if error.status != FORBIDDEN:
            raise
        return version  # a later call names the right that is missing
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
    except HostError as error:
        if error.status != NOT_FOUND or isinstance(error, ForeignAnswer):
            raise
        found = None
    if isinstance(found, str):
        return printable(found, _LONGEST_TEXT)
    raise OperatorError(
        f"{client.url} is no Kubernetes API: at /version it names no version of Kubernetes",
        remedy=f'is that the right server for the context "{client.context}"? '
        f"Compare: kubectl cluster-info --context {client.context}",
    )
