"""How a program finds the registry: a kubeconfig that was named, else the account of its pod, else the usual file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterregistry.client import kubeconfig
from clusterregistry.client.rest_config import RestConfig, from_context, in_cluster


def find_config(
    environ: Mapping[str, str], *, file: Path | None, context: str, user_agent: str, flag: str = "--kubeconfig"
) -> RestConfig:
    """The access by ``file``, which ``flag`` names, or $KUBECONFIG, else that of this pod, else ~/.kube/config.

    Raises ConfigError.
    """
    if file is None and not environ.get("KUBECONFIG"):
        own = in_cluster(environ, user_agent=user_agent)
        if own is not None:
            return own
    chosen = kubeconfig.load(kubeconfig.paths(environ, explicit=str(file or ""), flag=flag)).context(context)
    return from_context(chosen, user_agent=user_agent, read_files=True)
