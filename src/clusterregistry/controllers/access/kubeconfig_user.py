"""The credential of the user in a kubeconfig. Its server is ignored: the endpoint is that of the Cluster.

The user is that of the current context, else the only one. Files that it names must lie beside the kubeconfig. Its exec
entry is run where the caller allows it: the folder is the operator's, a Secret may be another's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from clusterregistry.client import kubeconfig
from clusterregistry.client.credentials import Credential
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.exec_credential import ExecPlugin
from clusterregistry.client.kubeconfig import Context, Kubeconfig
from clusterregistry.client.rest_config import RestConfig, credential_source, from_context
from clusterregistry.controllers.access.resolver import ResolveError
from clusterregistry.controllers.observer.endpoint import EndpointError, choose_endpoint

_USER_AGENT = "clusterregistry"
_NOWHERE = "https://unknown.invalid"
_CERTIFICATES = ("client-certificate", "client-key")

ReadFile = Callable[[str], bytes]
"""Reads a file beside the kubeconfig. Raises ResolveError."""


async def user_credential(
    content: bytes, file: Path, *, spec: Mapping[str, Any], read_file: ReadFile, allow_exec: bool
) -> Credential | ExecPlugin:
    """The credential of the user, or the command that prints it. Raises ResolveError.

    ``spec`` is that of the cluster, for commands that want to know it (``provideClusterInfo``).
    """
    user = _inlined(_user(content, file), file.parent, read_file)
    if user.get("exec") is not None and not allow_exec:
        raise ResolveError(f"{file.name} has an exec entry: commands stand in access.yaml alone")
    config = _config(user, spec, file)
    if config.impersonation.user or config.impersonation.groups:
        raise ResolveError(f"{file.name} impersonates another user, which is not supported")
    if config.exec_plugin is not None:
        return config.exec_plugin
    try:
        credential = await credential_source(config).get()
    except ConfigError as error:
        raise ResolveError(f"{file.name}: {error}") from None
    if credential == Credential():
        raise ResolveError(f"{file.name} has no token, client certificate or exec entry for its user")
    return credential


def _user(content: bytes, file: Path) -> Mapping[str, Any]:
    try:
        parsed = kubeconfig.parse_file(file, content)
    except ConfigError:
        # The parser's message may show a part of the file.
        raise ResolveError(f"{file.name} is no kubeconfig in YAML or JSON") from None
    name = _user_name(parsed)
    if name not in parsed.users:
        raise ResolveError(f"{file.name} names no user: set current-context, or keep one user")
    return parsed.users[name]


def _user_name(parsed: Kubeconfig) -> Any:
    if parsed.current_context:
        return parsed.contexts.get(parsed.current_context, {}).get("user")
    return next(iter(parsed.users)) if len(parsed.users) == 1 else None


def _inlined(user: Mapping[str, Any], folder: Path, read_file: ReadFile) -> dict[str, Any]:
    """The user with the content of its files in the place of their names."""
    inlined = dict(user)
    for field in _CERTIFICATES:
        path = inlined.pop(field, None)
        if path and not inlined.get(f"{field}-data"):
            inlined[f"{field}-data"] = base64.b64encode(_beside(path, folder, read_file)).decode()
    path = inlined.pop("tokenFile", None)
    if path:
        inlined["token"] = _beside(path, folder, read_file).decode("ascii", "replace").strip()
    return inlined


def _beside(path: Any, folder: Path, read_file: ReadFile) -> bytes:
    found = Path(path) if isinstance(path, str) else Path()
    if not found.name or found.parent.absolute() != folder.absolute():
        raise ResolveError("a file that the kubeconfig names must lie beside it")
    return read_file(found.name)


def _config(user: Mapping[str, Any], spec: Mapping[str, Any], file: Path) -> RestConfig:
    context = Context(name=file.name, cluster=_cluster(spec), user=user)
    try:
        return from_context(context, user_agent=_USER_AGENT)
    except ConfigError as error:
        raise ResolveError(str(error)) from None


def _cluster(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster entry that a command is told, from the object of the cluster."""
    try:
        endpoint = choose_endpoint({"spec": spec})
    except EndpointError:
        return {"server": _NOWHERE}
    authorities = base64.b64encode(endpoint.authorities).decode()
    return {"server": endpoint.url, **({"certificate-authority-data": authorities} if authorities else {})}
