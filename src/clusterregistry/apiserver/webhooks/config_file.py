"""Reads kube-apiserver's webhook configuration file: a kubeconfig whose cluster is the webhook and whose user is us."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apiserver.webhooks import tls
from clusterregistry.apiserver.webhooks import token as tokens
from clusterregistry.apiserver.webhooks.errors import ConfigFileError

MAX_BYTES = 1 << 20

_CLUSTER_FIELDS = frozenset({
    "server", "certificate-authority", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify",
    "extensions",
})  # fmt: skip
_USER_FIELDS = frozenset({
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile",
    "extensions",
})  # fmt: skip


class Token(Protocol):
    def read(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a webhook is, whom to trust there, and who we are."""

    url: str
    tls: ssl.SSLContext
    server_name: str = ""
    user_agent: str = "apiserver"
    token: Token = field(default_factory=tokens.FixedToken)


def load(path: Path, *, whom: str = "the webhook") -> Endpoint:
    """The endpoint that a file describes. Raises ConfigFileError with every mistake that the file has.

    ``whom`` is what the endpoint is called in messages.
    """
    try:
        reading = _Reading(path, _document(path), whom)
        cluster, user = reading.entries()
        endpoint = reading.endpoint(cluster, user)
    except _MistakeError as mistake:
        raise ConfigFileError(path, [str(mistake)], whom=whom) from None
    if reading.mistakes:
        raise ConfigFileError(path, reading.mistakes, whom=whom)
    return endpoint


class _MistakeError(Exception):
    """A mistake after which there is nothing to go on with."""


def _document(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _MistakeError(error.strerror or str(error)) from None
    if len(content) > MAX_BYTES:
        raise _MistakeError(f"larger than {MAX_BYTES} bytes")
    try:
        document = yaml_codec.decode(content).value
    except DecodeError as error:
        raise _MistakeError(f"this is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise _MistakeError("this is no kubeconfig: it must be a mapping with clusters, users and contexts")
    return document


class _Reading:
    """Looks through a document and collects what is wrong with it."""

    def __init__(self, path: Path, document: Mapping[str, Any], whom: str) -> None:
        self.mistakes: list[str] = []
        self._directory, self._document, self._whom = path.parent, document, whom

    def entries(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The cluster and the user of the current context."""
        name = self._text(self._document, "current-context", where="current-context")
        if not name:
            if not self.mistakes:
                self.mistakes.append("current-context: must name the context to use")
            return {}, {}
        context = self._named("contexts", "context", name)
        cluster = self._text(context, "cluster", where=f"contexts[{name}].cluster")
        user = self._text(context, "user", where=f"contexts[{name}].user")
        if context and not cluster:
            self.mistakes.append(f"contexts[{name}].cluster: must name the cluster that is {self._whom}")
        return (
            self._known(self._named("clusters", "cluster", cluster), _CLUSTER_FIELDS, where="cluster"),
            self._known(self._named("users", "user", user), _USER_FIELDS, where="user"),
        )

    def endpoint(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Endpoint:
        return Endpoint(
            url=self._url(cluster),
            tls=self._tls(cluster, user),
            server_name=self._text(cluster, "tls-server-name", where="cluster.tls-server-name"),
            token=self._token(user),
        )

    def _named(self, plural: str, singular: str, name: str) -> Mapping[str, Any]:
        """The entry of a list by its name. An empty name is nothing to look for."""
        if not name:
            return {}
        entries = self._document.get(plural)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(singular)
                if isinstance(found, dict):
                    return found
                self.mistakes.append(f"{plural}[{name}].{singular}: must be a mapping")
                return {}
        self.mistakes.append(f"{plural}: there is none with the name {name!r}")
        return {}

    def _known(self, entry: Mapping[str, Any], fields: frozenset[str], *, where: str) -> Mapping[str, Any]:
        self.mistakes += [f"{where}.{name}: is not supported here" for name in sorted(entry.keys() - fields, key=str)]
        return entry

    def _text(self, entry: Mapping[str, Any], name: str, *, where: str) -> str:
        value = entry.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.mistakes.append(f"{where}: must be text")
        return ""

    def _url(self, cluster: Mapping[str, Any]) -> str:
        url = self._text(cluster, "server", where="cluster.server")
        if not url:
            if cluster:
                self.mistakes.append(f"cluster.server: must be the URL of {self._whom}")
        elif not _is_https(url):
            self.mistakes.append("cluster.server: must be a URL like https://HOST:PORT/PATH, without user and fragment")
        return url

    def _tls(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
        skip = cluster.get("insecure-skip-tls-verify")
        if skip not in (None, False):
            self.mistakes.append(
                f"cluster.insecure-skip-tls-verify: is refused, whoever is on the way could decide in the place of "
                f"{self._whom}; give certificate-authority"
            )
        authorities = self._content(cluster, "certificate-authority", where="cluster")
        certificate = self._content(user, "client-certificate", where="user")
        key = self._content(user, "client-key", where="user")
        context = tls.context()
        if authorities or not self.mistakes:  # the system's take long to load
            self._attempt("cluster.certificate-authority", lambda: tls.trust(context, authorities))
        self._attempt("user.client-certificate", lambda: tls.identify(context, certificate=certificate, key=key))
        return context

    def _attempt(self, where: str, step: Any) -> None:
        try:
            step()
        except ValueError as error:
            self.mistakes.append(f"{where}: {error}")

    def _content(self, entry: Mapping[str, Any], name: str, *, where: str) -> bytes:
        """What a field holds, or the file that it names; as in kubectl, ``-data`` counts before a file."""
        data = self._text(entry, f"{name}-data", where=f"{where}.{name}-data")
        file = self._text(entry, name, where=f"{where}.{name}")
        try:
            if data:
                return tls.decoded(data)
            return tls.content(self._directory / file) if file else b""
        except ValueError as error:
            self.mistakes.append(f"{where}.{name}{'-data' if data else ''}: {error}")
            return b""

    def _token(self, user: Mapping[str, Any]) -> Token:
        token = self._text(user, "token", where="user.token")
        file = self._text(user, "tokenFile", where="user.tokenFile")
        try:
            if file:
                return tokens.TokenFromFile(self._directory / file)
            if token:
                tokens.check(token, of="token")
        except ValueError as error:
            self.mistakes.append(f"user.{'tokenFile' if file else 'token'}: {error}")
        return tokens.FixedToken(token)


def _is_https(url: str) -> bool:
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        return False
    return split.scheme == "https" and bool(split.hostname) and "@" not in split.netloc and not split.fragment
