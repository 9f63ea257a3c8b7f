"""Where the host cluster is, and who we are there: a kubeconfig, or what Kubernetes gives to every pod."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.hostcluster.in_cluster import Access, InCluster
from clusterregistry.apiserver.webhooks import config_file, tls
from clusterregistry.apiserver.webhooks.config_file import Endpoint
from clusterregistry.apiserver.webhooks.token import TokenFromFile

WHOM = "the host cluster"


def endpoint(access: Access) -> Endpoint:
    """The host cluster's base address. Raises StartupProblem, with what to do about it."""
    if isinstance(access, Path):
        return config_file.load(access, whom=WHOM)
    return _service_account(access)


def at(base: Endpoint, path: str) -> Endpoint:
    """The endpoint of one path of the host cluster."""
    return replace(base, url=base.url.rstrip("/") + path)


def _service_account(access: InCluster) -> Endpoint:
    context = tls.context()
    try:
        tls.trust(context, tls.content(access.files / "ca.crt"))
        token = TokenFromFile(access.files / "token")
    except ValueError as error:
        raise OperatorError(
            f"the service account of this pod cannot be used: {error}",
            remedy="let the pod have one (automountServiceAccountToken), or give --kubeconfig",
        ) from None
    return Endpoint(url=access.url, tls=context, token=token)
