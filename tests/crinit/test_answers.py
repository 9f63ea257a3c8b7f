"""Failures of calls, explained with a remedy. test_no_cluster has those of real connections."""

from __future__ import annotations

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import errors
from clusterregistry.client.kubeconfig import Context
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host import answers, kubeconfig_files
from clusterregistry.crinit.host.client import Client


def explain(error: errors.ClientError) -> OperatorError:
    return answers.explain(error, request="GET /version", url="https://host", context="host")


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (
            errors.ExecPluginError("the plugin failed", install_hint="install it"),
            "the plugin failed",
            "install it",
        ),
        (errors.ExecPluginError("the plugin failed"), "the plugin failed", "try the same context with kubectl"),
        (errors.ConfigError("user.token: x"), "the token of the kubeconfig: user.token: x", "correct"),
        (
            errors.ConfigError('context "host": user.client-key: a', "cluster.certificate-authority: b"),
            'certificates of the context "host": user.client-key: a; cluster.certificate-authority: b',
            "correct",
        ),
        (
            errors.ConfigError("user.client-key: a", "user.token: b"),
            'the context "host" cannot be used: user.client-key: a; user.token: b',
            "correct",
        ),
        (errors.ProxyError("the proxy refuses"), "https://host cannot be reached: the proxy refuses", "cluster up?"),
        (errors.from_code(401, "no"), "no (GET /version: 401)", "sign in again"),
        (errors.from_code(403, "no"), "no (GET /version: 403)", "ask an administrator"),
        (errors.from_code(403, "exceeded quota: x"), "exceeded quota: x (GET /version: 403)", "ResourceQuota"),
        (errors.from_code(403, "it is being terminated"), "it is being terminated (GET /version: 403)", "wait until"),
        (errors.from_code(422, ""), "status 422 (GET /version: 422)", "correct what the message names"),
    ],
)
def test_a_failure_is_explained_with_a_remedy(error: errors.ClientError, message: str, remedy: str) -> None:
    explained = explain(error)
    assert str(explained) == message
    assert remedy in explained.remedy
    assert isinstance(explained, HostError) != isinstance(error, errors.ConfigError)


@pytest.mark.parametrize("server", ["", "http://host", "https://", "host:6443"])
def test_a_context_must_have_an_https_url(server: str) -> None:
    with pytest.raises(OperatorError, match='the cluster of the context "host" has no https URL') as raised:
        Client(Context(name="host", cluster={"server": server}))
    assert "kubectl config set-cluster" in raised.value.remedy


def test_a_context_that_cannot_be_used_is_refused_before_the_first_call() -> None:
    cluster = {"server": "https://host", "proxy-url": "socks5://p"}
    with pytest.raises(
        OperatorError, match=r'the context "host" cannot be used: user\.token: .*; cluster\.proxy-url: .*SOCKS'
    ):
        Client(Context(name="host", cluster=cluster, user={"token": "two words"}))


def test_too_many_kubeconfig_files_are_refused() -> None:
    with pytest.raises(OperatorError, match=r"\$KUBECONFIG names more than 64 files"):
        kubeconfig_files.paths({"KUBECONFIG": ":".join(f"/{number}" for number in range(65))}, explicit="")
