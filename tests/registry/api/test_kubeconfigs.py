"""The kubeconfig of a cluster: its address, its authorities, and which programs it may start."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.exec_plugins import PLUGINS, PluginError, exec_entry
from clusterregistry.api.clusterregistry.kubeconfigs import ORIGIN, SIGN_IN, NoKubeconfigError, kubeconfig_of, merged

INSIDE, OUTSIDE = "10.1.2.3", "198.51.100.7"
PEM = b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
AWS = {"exec": "aws", "clusterName": "paris"}
AZURE = {"exec": "kubelogin", "serverID": "6dae42f8-4368-4678-94ff-3960e28e3630"}
OIDC = {"exec": "kubectl-oidc_login", "issuerURL": "https://login.example.com/realms/a", "clientID": "kubernetes"}


def cluster(name: str = "paris-1", **spec: Any) -> dict[str, Any]:
    endpoints = [{"clientCIDR": "10.0.0.0/8", "serverAddress": "10.0.0.1"}, {"serverAddress": "paris.example.com:6443"}]
    spec.setdefault("kubernetesApiEndpoints", {"serverEndpoints": endpoints})
    return {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec}


def providers(*configs: Any) -> dict[str, Any]:
    return {"providers": [{"name": "corp", "config": each} for each in configs]}


def made(given_cluster: dict[str, Any], by: str = OUTSIDE) -> dict[str, Any]:
    return kubeconfig_of(given_cluster, lambda _url: [by])


def user(*configs: Any) -> dict[str, Any]:
    content: dict[str, Any] = made(cluster(authInfo=providers(*configs)))["users"][0]["user"]
    return content


def reason(*configs: Any) -> str:
    content = user(*configs)
    assert "exec" not in content
    return next(str(each["extension"]["reason"]) for each in content["extensions"] if each["name"] == SIGN_IN)


def test_all_entries_have_the_name_of_the_cluster() -> None:
    config = made(cluster())
    assert (config["kind"], config["apiVersion"], config["current-context"]) == ("Config", "v1", "paris-1")
    assert [config[each][0]["name"] for each in ("clusters", "users", "contexts")] == ["paris-1"] * 3
    context = config["contexts"][0]["context"]
    assert (context["cluster"], context["user"]) == ("paris-1", "paris-1")
    origin = {"name": ORIGIN, "extension": {"name": "paris-1", "uid": "uid-of-paris-1"}}
    for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        assert origin in config[plural][0][singular]["extensions"]


def test_the_server_is_that_for_the_address_of_the_client() -> None:
    assert made(cluster(), INSIDE)["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:443"
    assert made(cluster(), f"::ffff:{INSIDE}")["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:443"
    assert made(cluster(), OUTSIDE)["clusters"][0]["cluster"]["server"] == "https://paris.example.com:6443"
    assert made(cluster(), "")["clusters"][0]["cluster"]["server"] == "https://paris.example.com:6443"


def test_the_authorities_are_those_of_the_cluster() -> None:
    bundle = base64.b64encode(PEM).decode()
    endpoints = {"serverEndpoints": [{"serverAddress": "a.example.com"}], "caBundle": bundle}
    entry = made(cluster(kubernetesApiEndpoints=endpoints))["clusters"][0]["cluster"]
    assert entry["certificate-authority-data"] == bundle
    assert "certificate-authority-data" not in made(cluster())["clusters"][0]["cluster"]


@pytest.mark.parametrize(
    ("endpoints", "message"),
    [
        (None, "has no entry"),
        ({"serverEndpoints": []}, "has no entry"),
        ({"serverEndpoints": [{"serverAddress": "http://a.example.com"}]}, "https URL"),
        ({"serverEndpoints": [{"serverAddress": "10.0.0.1", "clientCIDR": "10.0.0.0/8"}]}, "your address"),
        ({"serverEndpoints": [{"serverAddress": "a.example.com"}], "caBundle": "?"}, "not base64"),
    ],
)
def test_a_cluster_that_cannot_be_reached_has_none(endpoints: Any, message: str) -> None:
    with pytest.raises(NoKubeconfigError, match=message):
        made(cluster(kubernetesApiEndpoints=endpoints))


def test_a_provider_names_the_program() -> None:
    entry = user(AWS | {"region": "eu-west-1", "roleARN": "arn:aws:iam::123456789012:role/team/reader"})["exec"]
    assert (entry["command"], entry["args"]) == (
        "aws",
        [
            "eks",
            "get-token",
            "--output=json",
            "--cluster-name=paris",
            "--region=eu-west-1",
            "--role-arn=arn:aws:iam::123456789012:role/team/reader",
        ],
    )
    assert entry["interactiveMode"] == "IfAvailable"
    assert user({"exec": "gke-gcloud-auth-plugin"})["exec"]["provideClusterInfo"] is True
    assert user(AZURE | {"login": "azurecli"})["exec"]["args"] == [
        "get-token",
        f"--server-id={AZURE['serverID']}",
        "--login=azurecli",
    ]
    assert user(OIDC)["exec"]["args"][1:] == [
        "--oidc-issuer-url=https://login.example.com/realms/a",
        "--oidc-client-id=kubernetes",
    ]


def test_the_first_provider_that_makes_an_entry_counts() -> None:
    assert user({}, {"exec": "sh"}, OIDC, AWS)["exec"]["command"] == "kubectl-oidc_login"


@pytest.mark.parametrize(
    ("command", "words", "made_of_them"),
    [
        (
            "aws",
            ["--region", "eu-west-3", "eks", "get-token", "--cluster-name", "paris", "--output", "json"],
            ["eks", "get-token", "--output=json", "--cluster-name=paris", "--region=eu-west-3"],
        ),
        ("gke-gcloud-auth-plugin", [], []),
        (
            "kubectl",
            ["oidc-login", "get-token", "--oidc-issuer-url=https://a.example.com", "--oidc-client-id=k"],
            ["get-token", "--oidc-issuer-url=https://a.example.com", "--oidc-client-id=k"],
        ),
    ],
)
def test_an_imported_command_is_made_anew_of_what_is_allowed(
    command: str, words: list[str], made_of_them: list[str]
) -> None:
    entry = user({"command": command, "args": json.dumps(words)})["exec"]
    assert entry["args"] == made_of_them
    assert "/" not in entry["command"]


@pytest.mark.parametrize(
    "config",
    [
        {"command": "/usr/bin/aws"},
        {"command": "sh", "args": '["-c", "id"]'},
        {"command": "kubectl", "args": '["delete"]'},
        {"command": "aws", "args": '["eks", "get-token", "--cluster-name", "a", "--endpoint-url", "http://x"]'},
        {"command": "aws", "args": '["eks", "get-token", "--cluster-name", "--debug"]'},
        {"command": "aws", "args": '["eks", "get-token", "--cluster-name"]'},
        {"command": "aws", "args": "eks"},
        {"command": "aws", "args": "[[]]"},
        {"command": "gke-gcloud-auth-plugin", "args": '["--x"]'},
    ],
)
def test_an_imported_command_with_anything_else_makes_no_entry(config: dict[str, str]) -> None:
    assert reason(config)


def test_without_a_program_the_user_is_empty_with_a_reason() -> None:
    assert "no provider" in reason()
    assert "no provider" in reason({"file": "somewhere"}, "nonsense", None)
    assert "one of aws" in reason({"exec": "/tmp/aws"})


@pytest.mark.parametrize(
    "config",
    [
        {"exec": "sh"},
        {"exec": "./aws", "clusterName": "paris"},
        {"exec": "aws "},
        {"exec": ["aws"]},
        {"exec": "aws"},
        AWS | {"clusterName": "--endpoint-url"},
        AWS | {"clusterName": "a b"},
        AWS | {"clusterName": "paris\n"},
        AWS | {"region": "eu-west-1 --debug"},
        AWS | {"roleARN": "arn:aws:sts::1:role/a"},
        AZURE | {"serverID": "api"},
        AZURE | {"login": "spn"},
        OIDC | {"issuerURL": "http://login.example.com"},
        OIDC | {"issuerURL": "https://user@login.example.com"},
        OIDC | {"clientID": "-x"},
    ],
)
def test_what_a_writer_may_not_make_others_run(config: Any) -> None:
    text = reason(config)
    assert not any(value in text for value in config.values() if isinstance(value, str) and value not in PLUGINS)


@given(st.dictionaries(st.sampled_from(["exec", "clusterName", "region", "serverID", "clientID", "args"]), st.text()))
def test_only_known_programs_with_bound_values_are_named(config: dict[str, Any]) -> None:
    for command, plugin in PLUGINS.items():
        try:
            entry = exec_entry(config | {"exec": command})
        except PluginError:
            continue
        assert entry is not None
        flags = entry["args"][len(plugin.arguments) :]
        assert all(flag.startswith(tuple(f"{each.flag}=" for each in plugin.parameters)) for flag in flags)


def test_no_value_of_the_cluster_but_those_that_are_meant_to_be_is_in_it() -> None:
    config = {"exec": "aws", "clusterName": "paris", "password": "hunter2"}
    user = {"kind": "Secret", "name": "hidden", "namespace": "vault"}
    text = json.dumps(made(cluster(authInfo=providers(config) | {"user": user})))
    assert "hunter2" not in text
    assert "vault" not in text


def test_several_become_one() -> None:
    config = merged([made(cluster("a")), made(cluster("b"))])
    assert [each["name"] for each in config["contexts"]] == ["a", "b"]
    assert config["current-context"] == ""
    assert merged([made(cluster("a"))]) == made(cluster("a"))
