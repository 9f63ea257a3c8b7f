"""The resolved access to one server: its address, the trusted authorities, the credentials. client-go's rest.Config.

Made from a context of a kubeconfig, from the service account of a pod, or by hand. Pure: files are read by the
transport, so that they can change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from clusterregistry.client import credentials
from clusterregistry.client.credentials import (
    CertificateFiles,
    Credential,
    CredentialSource,
    FileContent,
    StaticCredential,
    TokenFile,
)
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.exec_credential import ExecCredentialSource, ExecPlugin, parse_plugin
from clusterregistry.client.kubeconfig import Context

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROXY_SCHEMES = ("http", "https")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """PEM, inline or in a file that may change. Inline data wins, as in kubectl."""

    data: bytes = field(default=b"", repr=False)
    file: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.data or self.file)


_ABSENT = Pem()


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """The user in whose name requests are made, where the server allows it."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """Access to one server. Seconds and bytes are limits of one call."""

    server: str
    """``https://HOST:PORT/PATH``. With ``http`` no credential is ever sent, as in client-go."""
    user_agent: str
    namespace: str = ""
    """The default namespace of the context; the client itself never adds it."""
    certificate_authority: Pem = _ABSENT
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    client_certificate: Pem = _ABSENT
    client_key: Pem = _ABSENT
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    interactive: bool = False
    """A person may answer questions of an exec plugin at the terminal."""
    impersonation: Impersonation = Impersonation()
    proxy_url: str = field(default="", repr=False)
    """``http://`` or ``https://``. Proxies of the environment are never used."""
    connect_timeout: float = 10.0
    timeout: float = 30.0
    """Of a call with all its attempts; each call may have its own."""
    max_response_bytes: int = 64 << 20
    max_connections: int = 0
    """At a time; 0 is no limit, which watches need: each has a connection of its own."""
    keepalive: float = 30.0
    """Seconds for which an unused connection is kept; kube-apiserver and usual load balancers keep theirs for a minute
    or more."""

    def __post_init__(self) -> None:
        problems = _cluster_problems(
            server=self.server,
            proxy_url=self.proxy_url,
            insecure_skip_tls_verify=self.insecure_skip_tls_verify,
            certificate_authority=self.certificate_authority,
        )
        if not self.user_agent or not self.user_agent.isprintable() or not self.user_agent.isascii():
            problems.append("user_agent: must be printable ASCII")
        if problems:
            raise ConfigError(*problems)

    @property
    def is_tls(self) -> bool:
        return self.server.startswith("https://")


def _cluster_problems(
    *, server: str, proxy_url: str, insecure_skip_tls_verify: bool, certificate_authority: Pem
) -> list[str]:
    problems = [*_server_problems(server), *_proxy_problems(proxy_url)]
    if insecure_skip_tls_verify and certificate_authority:
        problems.append("insecure-skip-tls-verify: excludes certificate-authority")  # as in client-go
    return problems


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.hostname and url.isascii() and url.isprintable() and " " not in url else None


def _server_problems(server: str) -> list[str]:
    parts = _split(server)
    if parts is None or parts.scheme not in ("https", "http") or "@" in parts.netloc or parts.fragment:
        return ["server: must be a URL like https://HOST:PORT/PATH, without user and fragment"]
    return []


def _proxy_problems(proxy: str) -> list[str]:
    parts = _split(proxy) if proxy else None
    if proxy and (parts is None or parts.scheme not in _PROXY_SCHEMES):
        return ["proxy-url: must be a URL like http://HOST:PORT or https://HOST:PORT; SOCKS is not supported"]
    return []


def from_context(context: Context, *, user_agent: str, read_files: bool = False) -> RestConfig:
    """The access that a context of a kubeconfig describes. Raises ConfigError with every problem.

    ``read_files``: the files that the context names are read once now, so that their problems are reported too.
    """
    reader = _ContextReader(context)
    fields = reader.fields()
    cluster = {name: fields[name] for name in _CLUSTER_FIELDS}
    problems = [*reader.problems, *(f"cluster.{problem}" for problem in _cluster_problems(**cluster))]
    if read_files:
        problems += file_problems(**{name: fields[name] for name in _FILE_FIELDS})
    if problems:
        raise ConfigError(*(f'context "{context.name}": {problem}' for problem in problems))
    return RestConfig(user_agent=user_agent, **fields)


_CLUSTER_FIELDS = ("server", "proxy_url", "insecure_skip_tls_verify", "certificate_authority")
_FILE_FIELDS = ("certificate_authority", "client_certificate", "client_key", "token_file")


class _ContextReader:
    """Reads the fields of a context's cluster and user, and collects the problems."""

    def __init__(self, context: Context) -> None:
        self.problems: list[str] = []
        self._context, self._cluster, self._user = context, context.cluster, context.user

    def fields(self) -> dict[str, Any]:
        cluster, user = self._cluster, self._user
        if user.get("auth-provider"):
            self.problems.append("user.auth-provider: was removed from Kubernetes in 1.26; use an exec plugin")
        authorities = self._pem(cluster, "certificate-authority", where="cluster")
        token_file = self._text(user, "tokenFile", where="user")
        return {
            "server": self._text(cluster, "server", where="cluster"),
            "namespace": self._context.namespace,
            "certificate_authority": authorities,
            "insecure_skip_tls_verify": self._flag(cluster, "insecure-skip-tls-verify", where="cluster"),
            "tls_server_name": self._text(cluster, "tls-server-name", where="cluster"),
            "proxy_url": self._text(cluster, "proxy-url", where="cluster"),
            "client_certificate": self._pem(user, "client-certificate", where="user"),
            "client_key": self._pem(user, "client-key", where="user"),
            "token": self._token(user),
            "token_file": Path(token_file) if token_file else None,
            "username": self._text(user, "username", where="user"),
            "password": self._text(user, "password", where="user"),
            "exec_plugin": self._plugin(authorities),
            "impersonation": self._impersonation(user),
        }

    def _text(self, entry: Mapping[str, Any], name: str, *, where: str) -> str:
        value = entry.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.problems.append(f"{where}.{name}: must be text")
        return ""

    def _flag(self, entry: Mapping[str, Any], name: str, *, where: str) -> bool:
        value = entry.get(name)
        if value is not None and not isinstance(value, bool):
            self.problems.append(f"{where}.{name}: must be true or false")
        return value is True

    def _texts(self, value: Any, *, where: str) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        if value is not None:
            self.problems.append(f"{where}: must be a list of texts")
        return ()

    def _pem(self, entry: Mapping[str, Any], name: str, *, where: str) -> Pem:
        data = self._text(entry, f"{name}-data", where=where)
        file = self._text(entry, name, where=where)
        try:
            if data:
                return Pem(data=credentials.decode_base64(data, source=f"{where}.{name}-data"))
        except ConfigError as error:
            self.problems += error.problems
        return Pem(file=Path(file)) if file else Pem()

    def _token(self, user: Mapping[str, Any]) -> str:
        token = self._text(user, "token", where="user")
        try:
            return credentials.check_token(token, source="user.token") if token else ""
        except ConfigError as error:
            self.problems += error.problems
            return ""

    def _plugin(self, authorities: Pem) -> ExecPlugin | None:
        entry = self._user.get("exec")
        if entry is None:
            return None
        if not isinstance(entry, dict):
            self.problems.append("user.exec: must be a mapping")
            return None
        try:
            # The plugin gets the authorities inline, wherever they are: it may run with another directory.
            inline = _pem_reader(authorities)() if entry.get("provideClusterInfo") is True else b""
            return parse_plugin(entry, cluster=self._cluster, authorities=inline)
        except ConfigError as error:
            self.problems += [f"user.{problem}" for problem in error.problems]
            return None

    def _impersonation(self, user: Mapping[str, Any]) -> Impersonation:
        extra = user.get("as-user-extra") or {}
        if not isinstance(extra, dict):
            self.problems.append("user.as-user-extra: must be a mapping")
            extra = {}
        return Impersonation(
            user=self._text(user, "as", where="user"),
            uid=self._text(user, "as-uid", where="user"),
            groups=self._texts(user.get("as-groups"), where="user.as-groups"),
            extra={str(key): self._texts(values, where="user.as-user-extra") for key, values in extra.items()},
        )


def in_cluster(environ: Mapping[str, str], *, user_agent: str, files: Path = SERVICE_ACCOUNT) -> RestConfig | None:
    """The access of a pod by its service account; None outside of a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return None
    return service_account(host=host, port=port, user_agent=user_agent, files=files)


def service_account(*, host: str, port: str, user_agent: str, files: Path = SERVICE_ACCOUNT) -> RestConfig:
    """The access of a pod whose kube-apiserver has this address. The files are those that a kubelet mounts."""
    shown = f"[{host}]" if ":" in host else host
    namespace = files / "namespace"
    return RestConfig(
        server=f"https://{shown}:{port}",
        user_agent=user_agent,
        namespace=credentials.read_file(namespace).decode("utf-8", "replace").strip() if namespace.exists() else "",
        certificate_authority=Pem(file=files / "ca.crt"),
        token_file=files / "token",
    )


def file_problems(
    *,
    certificate_authority: Pem = _ABSENT,
    client_certificate: Pem = _ABSENT,
    client_key: Pem = _ABSENT,
    token_file: Path | None = None,
) -> list[str]:
    """Reads certificates and tokens once, and returns every problem with the field of the kubeconfig."""
    problems: list[str] = []

    def attempt(prefix: str, step: Callable[[], T], otherwise: T) -> T:
        try:
            return step()
        except ConfigError as error:
            problems.extend(f"{prefix}{problem}" for problem in error.problems)
            return otherwise

    authorities = attempt("cluster.certificate-authority: ", _pem_reader(certificate_authority), b"")
    if authorities:
        attempt("cluster.", lambda: credentials.tls_context(authorities=authorities, insecure=False), None)
    known = len(problems)
    certificate = attempt("user.client-certificate: ", _pem_reader(client_certificate), b"")
    key = attempt("user.client-key: ", _pem_reader(client_key), b"")
    if len(problems) == known:
        # A context that trusts nothing: the authorities of the system take long to load.
        context = credentials.tls_context(authorities=b"", insecure=True)
        identity = Credential(certificate=certificate, key=key)
        attempt("user.", lambda: credentials.load_client_certificate(context, identity), None)
    if token_file is not None:
        attempt("user.tokenFile: ", lambda: credentials.read_token(token_file), "")
    return problems


def credential_source(config: RestConfig) -> CredentialSource:
    """Where the credentials of a configuration come from: an exec plugin, a token file, or fixed ones.

    A token wins over a name and a password; a client certificate goes with either. Raises ConfigError.
    """
    if not config.is_tls:
        return StaticCredential(Credential())
    if config.exec_plugin is not None:
        return ExecCredentialSource(config.exec_plugin, interactive=config.interactive)
    identity = CertificateFiles(
        _pem_reader(config.client_certificate), _pem_reader(config.client_key), authorization=_authorization(config)
    )
    if config.token_file is not None:
        return TokenFile(config.token_file, identity=identity.current)
    if config.client_certificate.file or config.client_key.file:
        return identity
    return StaticCredential(identity.current())


def _authorization(config: RestConfig) -> str:
    if config.token:
        return f"Bearer {config.token}"
    if config.username:
        return credentials.basic_authorization(config.username, config.password)
    return ""


def authorities_reader(config: RestConfig) -> Callable[[], bytes]:
    """A function that returns the PEM of the trusted authorities as it is now; empty for those of the system."""
    return _pem_reader(config.certificate_authority)


def _pem_reader(pem: Pem) -> Callable[[], bytes]:
    if pem.data or pem.file is None:
        return lambda: pem.data
    return FileContent(pem.file, lambda _, content: content).read
