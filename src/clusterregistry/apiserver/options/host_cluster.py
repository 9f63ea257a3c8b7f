"""Options about the host cluster of aggregated mode: the group, what is wrong with it, and what follows from it."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.hostcluster.in_cluster import Access, in_cluster
from clusterregistry.apiserver.options import checks
from clusterregistry.cli.options.field import option, options_of
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import BOOLEAN, FILE

DEFAULTS: Mapping[str, Any] = {
    "authentication_token_webhook_cache_ttl": 10.0,
    "authorization_webhook_cache_authorized_ttl": 10.0,
    "authorization_webhook_cache_unauthorized_ttl": 10.0,
}
"""What is different in aggregated mode when nobody says anything: the figures of kube-apiserver's extensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostClusterOptions:
    """Host cluster (only for `PROGRAM aggregated`)."""

    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="How to reach the host cluster, and who this server is there. Its user needs the ClusterRole "
        "`system:auth-delegator` and, in the namespace kube-system, the Role "
        "`extension-apiserver-authentication-reader`.",
        default_shown="the service account of the pod",
        example="--kubeconfig=/etc/PROGRAM/host.kubeconfig",
    )
    authentication_kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The same for authentication: who users are is asked with it, and front proxies are read with it.",
        default_shown="as --kubeconfig",
        example="--authentication-kubeconfig=/etc/PROGRAM/authentication.kubeconfig",
    )
    authorization_kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The same for authorization: what users may do is asked with it.",
        default_shown="as --kubeconfig",
        example="--authorization-kubeconfig=/etc/PROGRAM/authorization.kubeconfig",
    )
    authentication_skip_lookup: bool = option(
        False,
        kind=BOOLEAN,
        help="Whether to leave the configmap kube-system/extension-apiserver-authentication alone: only the "
        "authorities of --client-ca-file and --requestheader-client-ca-file count then. Without it, each of these two "
        "flags stands in for its part of the configmap.",
        example="--authentication-skip-lookup --requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCluster:
    """How aggregated mode uses its host cluster."""

    authentication: Access
    authorization: Access
    reads_client_cas: bool
    """Whether the host cluster says whose certificates are users'."""
    reads_front_proxies: bool
    """Whether it says whose certificates are front proxies', and how these speak."""

    @property
    def reads_configmap(self) -> bool:
        return self.reads_client_cas or self.reads_front_proxies


def settings(
    options: HostClusterOptions,
    environ: Mapping[str, str],
    *,
    client_ca_file: Path | None,
    proxy_ca_file: Path | None,
) -> HostCluster | None:
    """None when nothing says how to reach the host cluster; see ``problems``."""
    pod, looks = in_cluster(environ), not options.authentication_skip_lookup
    authentication = options.authentication_kubeconfig or options.kubeconfig or pod
    authorization = options.authorization_kubeconfig or options.kubeconfig or pod
    if authentication is None or authorization is None:
        return None
    return HostCluster(
        authentication=authentication,
        authorization=authorization,
        reads_client_cas=looks and client_ca_file is None,
        reads_front_proxies=looks and proxy_ca_file is None,
    )


def problems(options: HostClusterOptions, host: HostCluster | None) -> list[Problem]:
    """Everything that is wrong with them in aggregated mode."""
    found = checks.readable_file("--kubeconfig", options.kubeconfig)
    found += checks.readable_file("--authentication-kubeconfig", options.authentication_kubeconfig)
    found += checks.readable_file("--authorization-kubeconfig", options.authorization_kubeconfig)
    if host is None:
        found.append(Problem("--kubeconfig", "must say how to reach the host cluster, since this is no pod of it"))
    return found


def warnings(host: HostCluster | None, proxy_ca_file: Path | None) -> tuple[str, ...]:
    if host is None or host.reads_front_proxies or proxy_ca_file is not None:
        return ()
    why = "no front proxy is trusted: nobody is known who comes through kube-apiserver"
    return (f"{why}. Give --requestheader-client-ca-file, or leave --authentication-skip-lookup out",)


OURS = frozenset({"client_ca_file", "anonymous_auth", "authorization_filtered_lists", "api_audiences", *DEFAULTS})
"""What of authentication and authorization is decided here also in aggregated mode."""


def left_to_the_host(groups: Iterable[Any]) -> list[Problem]:
    """In aggregated mode the host cluster knows users and their rights: whatever says something else is refused."""
    why = "is only for `standalone`: here the host cluster says who users are and what they may do"
    return [problem for group in groups for problem in _given(group, why, except_for=OURS)]


def misplaced(options: HostClusterOptions) -> list[Problem]:
    """What was given to a server that is on its own."""
    own = "the kubeconfig for this server is written to DATA_DIR/admin.kubeconfig"
    return list(_given(options, f"is only for `aggregated`: there is no host cluster here, and {own}"))


def _given(group: Any, why: str, *, except_for: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """A problem for every option of a group that was given and would be ignored."""
    for each in options_of(type(group)):
        if each.field not in except_for and getattr(group, each.field) != each.default:
            yield Problem(f"--{each.flag}", why)
