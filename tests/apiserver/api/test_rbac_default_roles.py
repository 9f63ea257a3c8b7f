"""The roles and bindings that every registry has: made at the first start, repaired at every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, NOBODY, ROLES, VIEWER, binding, role, rule, rules_of

Start = Callable[[], AbstractContextManager[InProcessClient]]
ANONYMOUS = {"Authorization": None}
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts the same registry, again and again."""

    @contextmanager
    def started() -> Iterator[InProcessClient]:
        with InProcess(tmp_path).running() as server:
            yield server.client()

    return started


def names(client: InProcessClient, collection: str) -> list[str]:
    return [item["metadata"]["name"] for item in client.get(collection).expect(200)["items"]]


def test_a_new_registry_has_the_default_roles(start: Start) -> None:
    with start() as client:
        assert names(client, ROLES) == [
            "admin",
            "cluster-admin",
            "edit",
            "system:aggregate-to-admin",
            "system:aggregate-to-edit",
            "system:aggregate-to-view",
            "system:basic-user",
            "system:certificates.k8s.io:kube-apiserver-client-approver",
            "system:clusterregistry:controller",
            "system:discovery",
            "system:monitoring",
            "system:public-info-viewer",
            "view",
        ]
        assert names(client, BINDINGS) == [
            "cluster-admin",
            "system:basic-user",
            "system:clusterregistry:controller",
            "system:discovery",
            "system:monitoring",
            "system:public-info-viewer",
        ]
        for collection in (ROLES, BINDINGS):
            for item in client.get(collection).expect(200)["items"]:
                assert item["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
                assert item["metadata"]["annotations"] == {AUTO_UPDATE: "true"}


def test_another_start_writes_nothing(start: Start) -> None:
    with start() as client:
        before = client.get(ROLES).expect(200)
    with start() as client:
        assert client.get(ROLES).expect(200) == before


@pytest.mark.parametrize(
    ("path", "everybody", "user"),
    [
        ("/readyz", 200, 200),
        ("/version", 200, 200),
        ("/apis", 403, 200),
        ("/openapi/v3", 403, 200),
        ("/metrics", 403, 403),
    ],
)
def test_the_default_roles_open_health_to_all_and_discovery_to_users(
    path: str, everybody: int, user: int, local: InProcessClient
) -> None:
    assert local.get(path, headers=ANONYMOUS).status == everybody
    assert local.get(path, headers=NOBODY).status == user


def test_view_edit_and_admin_are_about_clusters(start: Start) -> None:
    def may(client: InProcessClient) -> list[bool]:
        status = {"status": {"nodes": {"total": 1}}}
        answers = [
            client.get(path_of("a"), headers=VIEWER),
            client.patch(path_of("a"), {"metadata": {"labels": {"x": "y"}}}, headers=VIEWER),
            client.patch(path_of("a") + "/status", status, headers=VIEWER),
            client.get(ROLES, headers=VIEWER),
        ]
        return [answer.status == 200 for answer in answers]

    with start() as client:
        client.post(CLUSTERS, cluster("a")).expect(201)
        assert may(client) == [False, False, False, False]
        for name, expected in (
            ("view", [True, False, False, False]),
            ("edit", [True, True, False, False]),
            ("admin", [True, True, True, False]),
            ("cluster-admin", [True, True, True, True]),
        ):
            client.post(BINDINGS, binding(f"b-{name}", name, Group="viewers")).expect(201)
            assert may(client) == expected
            client.delete(f"{BINDINGS}/b-{name}").expect(200)


def test_what_is_missing_comes_back_and_what_was_added_stays(start: Start) -> None:
    more = {"verbs": ["get"], "nonResourceURLs": ["/more"]}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}
    with start() as client:
        wanted = rules_of(client, "system:public-info-viewer") or []
        client.delete(f"{ROLES}/system:discovery").expect(200)
        client.patch(f"{ROLES}/system:public-info-viewer", {"metadata": {"labels": None}, "rules": [more]}).expect(200)
        client.patch(f"{BINDINGS}/system:discovery", {"subjects": [subject]}).expect(200)
        client.patch(
            f"{ROLES}/view", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        ).expect(200)
    with start() as client:
        assert rules_of(client, "system:discovery")
        repaired = client.get(f"{ROLES}/system:public-info-viewer").expect(200)
        assert repaired["rules"][0] == more
        assert {url for each in repaired["rules"][1:] for url in each["nonResourceURLs"]} == set(
            wanted[0]["nonResourceURLs"]
        )
        assert repaired["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults"}
        subjects = client.get(f"{BINDINGS}/system:discovery").expect(200)["subjects"]
        assert [each["name"] for each in subjects] == ["jane", "system:authenticated"]
        assert len(client.get(f"{ROLES}/view").expect(200)["aggregationRule"]["clusterRoleSelectors"]) == 2


def test_one_that_is_not_to_be_updated_stays_as_it_is(start: Start) -> None:
    annotation: dict[str, Any] = {"metadata": {"annotations": {AUTO_UPDATE: "false"}}}
    with start() as client:
        client.patch(f"{ROLES}/system:discovery", annotation | {"rules": None}).expect(200)
        client.patch(f"{BINDINGS}/system:public-info-viewer", annotation | {"subjects": None}).expect(200)
    with start() as client:
        assert rules_of(client, "system:discovery") is None
        assert "subjects" not in client.get(f"{BINDINGS}/system:public-info-viewer").expect(200)
        client.get("/readyz", headers=ANONYMOUS).expect(403)


def test_a_default_binding_of_another_role_is_replaced(start: Start) -> None:
    with start() as client:
        client.post(ROLES, role("other", rule("get"))).expect(201)
        client.delete(f"{BINDINGS}/system:discovery").expect(200)
        client.post(BINDINGS, binding("system:discovery", "other", User="jane")).expect(201)
    with start() as client:
        made = client.get(f"{BINDINGS}/system:discovery").expect(200)
        assert (made["roleRef"]["name"], len(made["subjects"])) == ("system:discovery", 1)
