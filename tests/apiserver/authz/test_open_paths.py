from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.user import ANONYMOUS_USER
from clusterregistry.apiserver.authz.interface import Attributes, PathRule
from clusterregistry.apiserver.authz.modes import OpenPaths

OPEN = OpenPaths("/healthz", "/livez")


def asked(path: str, verb: str = "get", *, resource: bool = False) -> Attributes:
    return Attributes(user=ANONYMOUS_USER, verb=verb, is_resource_request=resource, path=path)


@pytest.mark.parametrize("verb", ["get", "head", "post"])
def test_everybody_may_use_them(verb: str) -> None:
    assert OPEN.authorize(asked("/healthz", verb)).allowed


@pytest.mark.parametrize("path", ["/healthz/ping", "/health", "/healthz/", "/readyz", ""])
def test_other_paths_are_left_to_others(path: str) -> None:
    assert not OPEN.authorize(asked(path)).allowed


def test_a_resource_is_no_path() -> None:
    assert not OPEN.authorize(asked("/healthz", resource=True)).allowed


def test_they_are_listed() -> None:
    assert OPEN.rules_of(ANONYMOUS_USER).path_rules == (
        PathRule(verbs=("*",), non_resource_urls=("/healthz", "/livez")),
    )
