"""The kubeconfig of an agent: how it is made, replaced atomically, and read again whenever it changes."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from clusterregistry.agent.certificate import AgentCertificate
from clusterregistry.api.clusterregistry.agents import AGENT_PREFIX
from clusterregistry.apimachinery import operator_error
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import kubeconfig, rest_config
from clusterregistry.client.credentials import Credential, FileContent
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig

_OWNER_ONLY = 0o600
_CONTEXT = "registry"


def render(*, server: str, authorities: bytes, identity: AgentCertificate, server_name: str = "") -> bytes:
    """A kubeconfig with everything embedded."""
    cluster: dict[str, Any] = {"server": server, "certificate-authority-data": _data(authorities)}
    if server_name:
        cluster["tls-server-name"] = server_name
    user = {"client-certificate-data": _data(identity.certificate), "client-key-data": _data(identity.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CONTEXT, "cluster": cluster}],
        "users": [{"name": "agent", "user": user}],
        "contexts": [{"name": _CONTEXT, "context": {"cluster": _CONTEXT, "user": "agent"}}],
        "current-context": _CONTEXT,
    }
    return yaml_codec.encode(document)


def replaced(config: RestConfig, identity: AgentCertificate) -> bytes:
    """The same access with another certificate."""
    return render(
        server=config.server,
        authorities=rest_config.authorities_reader(config)(),
        identity=identity,
        server_name=config.tls_server_name,
    )


def write(path: Path, content: bytes) -> None:
    """Replaces a file atomically, for its owner only. Raises OperatorError."""
    try:
        _replace(path, content)
    except OSError as error:
        message, _ = operator_error.explain(path, error, action="written")
        raise OperatorError(message, remedy="make the directory writable for this user, or name another one") from None


def _replace(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _OWNER_ONLY)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def load(path: Path, *, user_agent: str) -> RestConfig:
    """The access that a kubeconfig describes. Raises ConfigError."""
    return rest_config.from_context(kubeconfig.load_file(path).context(), user_agent=user_agent, read_files=True)


class KubeconfigIdentity:
    """The client certificate in a kubeconfig, as it is now. Implements ``client.credentials.CredentialSource``.

    A renewal replaces the file; a Secret that is mounted switches a link. Both are seen with the next request.
    """

    def __init__(self, path: Path) -> None:
        """Raises ConfigError if the file cannot be used now."""
        self._content: FileContent[Credential] = FileContent(path, _credential)
        self._content.read()

    def current(self) -> Credential:
        return self._content.read()

    async def get(self) -> Credential:
        return self._content.read()

    def reject(self, credential: Credential) -> bool:
        return self._content.read() != credential


def _credential(path: Path, _: bytes) -> Credential:
    config = load(path, user_agent="-")
    certificate, key = config.client_certificate, config.client_key
    if not certificate or not key:
        raise ConfigError(f"{path} has no client certificate: make it with `clusterregistry join`")
    read = [each.data or each.file.read_bytes() if each.file else each.data for each in (certificate, key)]
    return Credential(certificate=read[0], key=read[1])


def cluster_of(certificate: bytes) -> str:
    """The cluster whose agent a certificate in PEM is for; empty if it is for another user."""
    from cryptography import x509  # noqa: PLC0415 - slow import
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    try:
        names = x509.load_pem_x509_certificates(certificate)[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    name = str(names[-1].value) if names else ""
    return name.removeprefix(AGENT_PREFIX) if name.startswith(AGENT_PREFIX) else ""


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()
