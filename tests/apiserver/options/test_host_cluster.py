"""Options of aggregated mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.hostcluster.in_cluster import InCluster
from clusterregistry.apiserver.options import CompletedOptions, OptionsError
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.resource_storage import served_resources
from clusterregistry.registry.product import PRODUCT
from tests.product import load

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("something")
    return path


def aggregated(directory: Path, *arguments: str, pod: bool = True) -> CompletedOptions:
    return load(arguments, {"HOME": str(directory), **(POD if pod else {})}, aggregated=True)


def host(directory: Path, *arguments: str, pod: bool = True) -> HostCluster:
    found = aggregated(directory, *arguments, pod=pod).host
    assert found is not None
    return found


def problems(directory: Path, *arguments: str, pod: bool = True) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        aggregated(directory, *arguments, pod=pod)
    return [str(problem) for problem in raised.value.problems]


def test_a_pod_needs_no_options(tmp_path: Path) -> None:
    found = host(tmp_path)
    assert found.authentication == found.authorization == InCluster(host="10.0.0.1", port="443")
    assert (found.reads_client_cas, found.reads_front_proxies) == (True, True)


def test_elsewhere_a_kubeconfig_is_needed(tmp_path: Path, file: Path) -> None:
    assert problems(tmp_path, pod=False) == [
        "--kubeconfig: must say how to reach the host cluster, since this is no pod of it"
    ]
    assert problems(tmp_path, f"--authentication-kubeconfig={file}", pod=False)
    assert host(tmp_path, f"--kubeconfig={file}", pod=False).authorization == file


def test_a_kubeconfig_for_one_purpose_counts_more(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "other"
    other.write_text("something else")
    found = host(tmp_path, f"--kubeconfig={file}", f"--authentication-kubeconfig={other}")
    assert (found.authentication, found.authorization) == (other, file)
    assert host(tmp_path, f"--authorization-kubeconfig={other}").authorization == other


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    flags = ("--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig")
    assert [problem.split(":")[0] for problem in problems(tmp_path, *(f"{flag}=/none" for flag in flags))] == [*flags]


def test_authorities_that_are_given_are_not_looked_up(tmp_path: Path, file: Path) -> None:
    assert host(tmp_path, f"--client-ca-file={file}").reads_client_cas is False
    assert host(tmp_path, f"--requestheader-client-ca-file={file}").reads_front_proxies is False
    found = aggregated(tmp_path, "--authentication-skip-lookup", f"--client-ca-file={file}")
    assert found.host is not None
    assert found.host.reads_configmap is False
    assert found.client_ca_files == (file,)
    assert "no front proxy is trusted" in found.warnings[0]
    proxies = f"--requestheader-client-ca-file={file}"
    assert aggregated(tmp_path, "--authentication-skip-lookup", proxies).warnings == ()


def test_the_generated_authority_signs_no_users(tmp_path: Path) -> None:
    assert aggregated(tmp_path).client_ca_files == ()


def test_answers_of_the_host_are_cached_for_ten_seconds_by_default(tmp_path: Path) -> None:
    held = aggregated(tmp_path).webhooks
    assert held.authentication_token_webhook_cache_ttl == 10
    assert held.authorization_webhook_cache_authorized_ttl == 10
    assert held.authorization_webhook_cache_unauthorized_ttl == 10
    longer = aggregated(tmp_path, "--authentication-token-webhook-cache-ttl=2m").webhooks
    assert longer.authentication_token_webhook_cache_ttl == 120


def test_what_is_left_to_the_host_cluster_is_refused(tmp_path: Path, file: Path) -> None:
    found = problems(
        tmp_path,
        f"--token-auth-file={file}",
        "--authorization-mode=AlwaysDeny",
        "--oidc-issuer-url=https://issuer.example.com",
        "--oidc-client-id=registry",
        f"--authentication-token-webhook-config-file={file}",
    )
    assert [problem.split(":")[0] for problem in found] == [
        "--token-auth-file",
        "--authorization-mode",
        "--oidc-issuer-url",
        "--oidc-client-id",
        "--authentication-token-webhook-config-file",
    ]
    assert all("here the host cluster says who users are" in problem for problem in found)


@pytest.mark.parametrize("flag", ["--kubeconfig=/x", "--authentication-skip-lookup"])
def test_a_server_on_its_own_has_no_host_cluster(tmp_path: Path, flag: str) -> None:
    with pytest.raises(OptionsError, match="only for `aggregated`"):
        load([flag], {"HOME": str(tmp_path)})


def test_only_the_registrys_own_kinds_are_served(tmp_path: Path) -> None:
    assert {each.group for each in served_resources(aggregated(tmp_path), PRODUCT)} == {"clusterregistry.k8s.io"}
    alone = {each.group for each in served_resources(load([], {"HOME": str(tmp_path)}), PRODUCT)}
    native = {"", "certificates.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"}
    assert alone == {"clusterregistry.k8s.io", *native}
