"""Names and pointers that are made of a context, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.client.kubeconfig import Context
from clusterregistry.commands.contexts import cluster_name
from clusterregistry.commands.pointers import provider_of

SECRET = "swordfish-4711"


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("prod", "prod"),
        ("Prod_EU", "prod-eu"),
        ("arn:aws:eks:eu-west-1:123:cluster/prod", "arn-aws-eks-eu-west-1-123-cluster-prod"),
        ("gke_project_europe-west1-b_prod", "gke-project-europe-west1-b-prod"),
        ("admin@kind.example.com", "admin-kind.example.com"),
        ("-.a.-..b.", "a.b"),
        ("Zürich", "z-rich"),
        ("___", ""),
    ],
)
def test_names(context: str, name: str) -> None:
    assert cluster_name(context) == name


@given(st.text(max_size=60))
def test_every_name_is_valid_or_empty(text: str) -> None:
    name = cluster_name(text)
    assert not name or not name_errors(name)
    assert cluster_name(name) == name


@pytest.mark.parametrize(
    ("user", "provider"),
    [
        ({}, None),
        ({"token": SECRET}, ("token", {"kubeconfig": "f", "user": "u"})),
        ({"tokenFile": "/run/token"}, ("token", {"tokenFile": "/run/token"})),
        (
            {"client-certificate": "/a.crt", "client-key": "/a.key"},
            ("client-certificate", {"certificateFile": "/a.crt", "keyFile": "/a.key"}),
        ),
        (
            {"client-certificate-data": SECRET, "client-key-data": SECRET},
            ("client-certificate", {"kubeconfig": "f", "user": "u"}),
        ),
        ({"username": "jane", "password": SECRET}, ("basic", {"kubeconfig": "f", "user": "u"})),
        ({"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}}, ("auth-provider", {})),
        ({"exec": {"command": "/opt/aws"}}, ("exec", {"command": "/opt/aws"})),
        ({"exec": {"command": "aws", "args": ["a", "-b"]}}, ("exec", {"command": "aws", "args": '["a", "-b"]'})),
        ({"exec": {"command": "aws", "args": [f"--password={SECRET}"]}}, ("exec", {"command": "aws"})),
        ({"exec": {"command": "aws", "args": ["--token", SECRET]}}, ("exec", {"command": "aws"})),
        ({"exec": {"command": "aws", "args": [f"https://jane:{SECRET}@host"]}}, ("exec", {"command": "aws"})),
        ({"exec": {"command": "aws", "args": [7]}}, ("exec", {"command": "aws"})),
        ({"exec": {"env": [{"name": "A", "value": SECRET}, 7]}}, ("exec", {})),
    ],
)
def test_pointers(user: dict[str, Any], provider: tuple[str, dict[str, str]] | None) -> None:
    made, notes = provider_of(Context(name="c", user_name="u", cluster={}, user=user), "f")
    assert (made and (made["type"], made["config"])) == provider
    assert SECRET not in json.dumps([made, notes])


_FIELDS = ("token", "tokenFile", "client-certificate-data", "client-key-data", "username", "password", "as", "exec")
_VALUES = st.none() | st.just(SECRET) | st.integers() | st.lists(st.just(SECRET), max_size=2)


@given(st.dictionaries(st.sampled_from(_FIELDS), _VALUES), st.dictionaries(st.sampled_from(("args", "env")), _VALUES))
def test_no_value_of_a_user_makes_it_fail(user: dict[str, Any], plugin: dict[str, Any]) -> None:
    provider_of(Context(name="c", user_name="u", cluster={}, user={**user, "exec": plugin}), "f")
    provider_of(Context(name="c", user_name="u", cluster={}, user=user), "f")
