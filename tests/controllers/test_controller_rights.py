"""The rights of the controller: what it needs, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusterregistry.client.rest import JSON, Call, Client, PatchType
from clusterregistry.crinit.credentials.material import CONTROLLER
from clusterregistry.crinit.manifests.controller import CLUSTER_RULES
from clusterregistry.registry.program_roles import CONTROLLER as ROLE
from tests.apiserver.server.programs import Program
from tests.controllers.fleets import USER, config_of, controller_config

GROUP = "/apis/clusterregistry.k8s.io/v1beta1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE_EVENTS = "/api/v1/namespaces/default/events"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
OWN_LEASE = f"{LEASES}/clusterregistry-controller"

ALLOWED = {
    ("GET", f"{GROUP}/clusters"),
    ("GET", f"{GROUP}/clusters/a"),
    ("GET", f"{GROUP}/clusters/a/status"),
    ("PATCH", f"{GROUP}/clusters/a/status"),
    ("PUT", f"{GROUP}/clusters/a/status"),
    ("POST", EVENTS),
    ("PATCH", f"{EVENTS}/a"),
    ("PUT", f"{EVENTS}/a"),
    ("POST", CORE_EVENTS),
    ("PATCH", f"{CORE_EVENTS}/a"),
    ("PUT", f"{CORE_EVENTS}/a"),
    ("POST", LEASES),
    ("GET", OWN_LEASE),
    ("PUT", OWN_LEASE),
}
COLLECTIONS = [
    f"{GROUP}/clusters", EVENTS, CORE_EVENTS, LEASES, REQUESTS, "/api/v1/namespaces", f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings", f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings",
]  # fmt: skip
OBJECTS = [f"{each}/a" for each in COLLECTIONS]
SUBRESOURCES = [
    f"{GROUP}/clusters/a/status", f"{REQUESTS}/a/approval", f"{REQUESTS}/a/status", "/api/v1/namespaces/a/finalize",
]  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    # With filtered lists, a list of leases would be allowed, and show its own alone.
    made = Program(tmp_path_factory.mktemp("registry"), "--authorization-filtered-lists=false")
    with made:
        yield made


@pytest.fixture
async def client(program: Program) -> AsyncIterator[Client]:
    async with Client(controller_config(program)) as made:
        yield made


def everything() -> list[tuple[str, str]]:
    """Requests for all resources of a registry, and others that rights are for."""
    calls = [(method, path) for path in COLLECTIONS for method in ("GET", "POST", "DELETE")]
    calls += [(method, path) for path in (*OBJECTS, OWN_LEASE) for method in ("GET", "PUT", "PATCH", "DELETE")]
    calls += [(method, path) for path in SUBRESOURCES for method in ("GET", "PUT", "PATCH")]
    return [*calls, ("GET", "/metrics"), ("GET", "/debug/pprof/profile")]


async def status_of(client: Client, method: str, path: str) -> int:
    kind = PatchType.MERGE if method == "PATCH" else JSON
    body: dict[str, str] | None = None if method in {"GET", "DELETE"} else {}
    return (await client.exchange(Call(method, path, body=body, content_type=kind))).status


async def test_the_controller_may_do_what_it_does_and_nothing_else(client: Client) -> None:
    calls = everything()
    assert set(calls) >= ALLOWED
    allowed = {(method, path) for method, path in calls if await status_of(client, method, path) != 403}

    assert allowed == ALLOWED


async def test_the_role_is_that_of_the_certificate_that_crinit_issues(program: Program, client: Client) -> None:
    assert ROLE.users == (USER,) == (CONTROLLER,)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await client.call(Call("POST", path, body=review))
    assert answer["status"]["userInfo"]["username"] == USER
    async with Client(config_of(program)) as admin:
        stored = await admin.call(Call("GET", f"{RBAC}/clusterroles/{ROLE.name}"))
    assert stored["rules"] == list(ROLE.rules)
    assert [{**rule, "verbs": sorted(rule["verbs"])} for rule in CLUSTER_RULES] == [
        {**rule, "verbs": sorted(rule["verbs"])} for rule in list(ROLE.rules)[:3]
    ]


async def test_another_user_has_no_such_rights(program: Program) -> None:
    async with Client(config_of(program, token="nobodytoken")) as client:
        assert await status_of(client, "GET", f"{GROUP}/clusters") == 403
