"""Reads kube-apiserver's webhook configuration files: kubeconfigs whose cluster is the webhook, whose user is us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.webhooks.errors import ConfigFileError
from clusterregistry.client import kubeconfig, rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.kubeconfig import Context
from clusterregistry.client.rest_config import RestConfig

_VERIFY = "insecure-skip-tls-verify"
_CLUSTER_FIELDS = frozenset({
    "server", "certificate-authority", "certificate-authority-data", "tls-server-name", _VERIFY, "extensions",
})  # fmt: skip
_USER_FIELDS = frozenset({
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile",
    "extensions",
})  # fmt: skip


def load(path: Path, *, user_agent: str, server: str = "the webhook") -> RestConfig:
    """The access that a file describes: over HTTPS, verified, with files that can be read.

    Raises ConfigFileError with every problem of the file. ``server`` is the name of the server in messages.
    """
    try:
        context = kubeconfig.load_file(path).context()
    except ConfigError as error:
        shown = [problem.removeprefix(f"{path} ").removesuffix(f" (in {path})") for problem in error.problems]
        raise ConfigFileError(path, shown, server=server) from None
    problems = _problems(context, server)
    try:
        config = rest_config.from_context(_supported(context), user_agent=user_agent, read_files=True)
        if not problems and config.is_tls:
            return config
        problems += [] if config.is_tls else ["cluster.server: must be a URL like https://HOST:PORT/PATH"]
    except ConfigError as error:
        problems += [problem.removeprefix(f'context "{context.name}": ') for problem in error.problems]
    raise ConfigFileError(path, problems, server=server)


def _problems(context: Context, server: str) -> list[str]:
    """Fields that are valid in a kubeconfig, but not here."""
    problems = _unsupported("cluster", context.cluster, _CLUSTER_FIELDS)
    problems += _unsupported("user", context.user, _USER_FIELDS)
    if context.cluster.get(_VERIFY) not in (None, False):
        problems.append(
            f"cluster.{_VERIFY}: is refused, since any host on the way could decide in the place of {server}; "
            "give certificate-authority"
        )
    return problems


def _unsupported(where: str, entry: Mapping[str, Any], fields: frozenset[str]) -> list[str]:
    return [f"{where}.{name}: is not supported here" for name in sorted(entry.keys() - fields, key=str)]


def _supported(context: Context) -> Context:
    """The context without the fields that ``_problems`` reports."""
    return replace(
        context,
        cluster={name: value for name, value in context.cluster.items() if name in _CLUSTER_FIELDS - {_VERIFY}},
        user={name: value for name, value in context.user.items() if name in _USER_FIELDS},
    )
