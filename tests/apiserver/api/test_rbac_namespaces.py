"""Roles and RoleBindings: what they hold, whom they give rights in their namespace, and who may write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import summary
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import TABLE
from tests.apiserver.api.rbac_objects import (
    BINDINGS,
    GROUP,
    NOBODY,
    ROLES,
    VIEWER,
    binding,
    local_binding,
    local_bindings,
    local_role,
    local_roles,
    role,
    rule,
)

ALL_ROLES, ALL_BINDINGS = f"/apis/{GROUP}/v1/roles", f"/apis/{GROUP}/v1/rolebindings"
HERE, THERE = "default", "kube-public"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("namespaces")).running() as started:
        yield started


@pytest.fixture
def client(server: InProcess) -> Iterator[InProcessClient]:
    client = server.client()
    yield client
    for namespace in (HERE, THERE):
        client.delete(local_bindings(namespace)).expect(200)
        client.delete(local_roles(namespace)).expect(200)
    for path in (BINDINGS, ROLES):
        for item in client.get(path).expect(200)["items"]:
            if "labels" not in item["metadata"]:
                client.delete(f"{path}/{item['metadata']['name']}").expect(200)


def on_roles(*verbs: str, names: tuple[str, ...] = ()) -> dict[str, Any]:
    return rule(*verbs, resource="roles", group=GROUP, names=names)


def grant(client: InProcessClient, namespace: str, *rules: dict[str, Any], name: str = "rights") -> None:
    """Gives rights in a namespace to the user nobody."""
    client.put(f"{local_roles(namespace)}/{name}", local_role(name, *rules))
    client.put(f"{local_bindings(namespace)}/{name}", local_binding(name, name, User="nobody"))


def keys(listed: dict[str, Any]) -> list[str]:
    return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in listed["items"]]


# What they hold


def test_a_role_is_stored_in_its_namespace(client: InProcessClient) -> None:
    made = client.post(local_roles(HERE), local_role("reader", rule("get"))).expect(201)
    assert (made["kind"], made["metadata"]["namespace"]) == ("Role", HERE)
    assert client.get(f"{local_roles(HERE)}/reader").expect(200) == made
    client.get(f"{local_roles(THERE)}/reader").refused(404, "NotFound")
    assert keys(client.get(ALL_ROLES).expect(200)) == [f"{HERE}/reader"]
    assert client.post(local_roles(HERE), local_role("empty")).expect(201)["rules"] is None


@pytest.mark.parametrize(
    ("rules", "causes"),
    [
        (
            [{}],
            [
                ("rules[0].verbs", "Required value: verbs must contain at least one value"),
                ("rules[0].apiGroups", "Required value: resource rules must supply at least one api group"),
                ("rules[0].resources", "Required value: resource rules must supply at least one resource"),
            ],
        ),
        (
            [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            [
                (
                    "rules[0].nonResourceURLs",
                    'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
                )
            ],
        ),
        (
            [{"verbs": ["get"], "resources": ["r"], "nonResourceURLs": ["/x"]}],
            [
                (
                    "rules[0].nonResourceURLs",
                    'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
                ),
                (
                    "rules[0].nonResourceURLs",
                    'Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
                ),
            ],
        ),
    ],
)
def test_a_role_with_invalid_rules_is_refused(
    client: InProcessClient, rules: list[dict[str, Any]], causes: list[tuple[str, str]]
) -> None:
    refused = client.post(local_roles(HERE), local_role("bad", *rules)).refused(422, "Invalid")
    assert [(each["field"], each["message"]) for each in refused["details"]["causes"]] == causes


def test_a_role_aggregates_nothing(client: InProcessClient) -> None:
    body = local_role("sum", rule("get")) | {"aggregationRule": {"clusterRoleSelectors": [{}]}}
    answer = client.post(local_roles(HERE), body)
    assert "aggregationRule" not in answer.expect(201)
    assert answer.warnings == ['unknown field "aggregationRule"']


def test_a_role_binding_has_defaults(client: InProcessClient) -> None:
    body = local_binding("b", "r") | {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "bot"}],
    }
    made = client.post(local_bindings(HERE), body).expect(201)
    assert made["roleRef"] == {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    assert made["subjects"] == [
        {"kind": "User", "apiGroup": GROUP, "name": "u"},
        {"kind": "ServiceAccount", "name": "bot"},
    ]


@pytest.mark.parametrize(
    ("part", "causes"),
    [
        (
            {"roleRef": {"apiGroup": GROUP, "kind": "Pod", "name": "r"}},
            [("roleRef.kind", 'Unsupported value: "Pod": supported values: "Role", "ClusterRole"')],
        ),
        (
            {"roleRef": {"apiGroup": "x", "kind": "Role", "name": "a/b"}},
            [
                ("roleRef.apiGroup", f'Unsupported value: "x": supported values: "{GROUP}"'),
                ("roleRef.name", "Invalid value: \"a/b\": may not contain '/'"),
            ],
        ),
        (
            {"subjects": [{"kind": "Robot", "name": ""}]},
            [
                ("subjects[0].name", "Required value"),
                ("subjects[0].kind", 'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'),
            ],
        ),
    ],
)
def test_an_invalid_role_binding_is_refused(
    client: InProcessClient, part: dict[str, Any], causes: list[tuple[str, str]]
) -> None:
    refused = client.post(local_bindings(HERE), local_binding("bad", "r") | part).refused(422, "Invalid")
    assert [(each["field"], each["message"]) for each in refused["details"]["causes"]] == causes


def test_the_role_of_a_binding_does_not_change(client: InProcessClient) -> None:
    client.post(local_bindings(HERE), local_binding("b", "r", User="u")).expect(201)
    refused = client.put(f"{local_bindings(HERE)}/b", local_binding("b", "other")).refused(422, "Invalid")
    assert refused["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: {{"APIGroup":"{GROUP}","Kind":"Role","Name":"other"}}: cannot change roleRef',
            "field": "roleRef",
        }
    ]
    client.put(f"{local_bindings(HERE)}/b", local_binding("b", "r", User="v")).expect(200)


def test_tables_of_roles_and_bindings(client: InProcessClient) -> None:
    client.post(local_roles(HERE), local_role("r", rule("get"))).expect(201)
    body = local_binding("b", "r", User="u", Group="g")
    body["subjects"].append({"kind": "ServiceAccount", "name": "bot", "namespace": "n"})
    client.post(local_bindings(HERE), body).expect(201)
    roles = client.get(local_roles(HERE), headers=TABLE).expect(200)
    assert [each["name"] for each in roles["columnDefinitions"]] == ["Name", "Created At"]
    bindings = client.get(local_bindings(HERE), headers=TABLE).expect(200)
    assert [(each["name"], each["priority"]) for each in bindings["columnDefinitions"]] == [
        ("Name", 0),
        ("Role", 0),
        ("Age", 0),
        ("Users", 1),
        ("Groups", 1),
        ("ServiceAccounts", 1),
    ]
    cells = bindings["rows"][0]["cells"]
    assert [*cells[:2], *cells[3:]] == ["b", "Role/r", "u", "g", "n/bot"]


@pytest.mark.parametrize("path", [local_roles(HERE), local_bindings(HERE)])
def test_roles_and_bindings_travel_as_protobuf(client: InProcessClient, path: str) -> None:
    grant(client, HERE, rule("get"))
    listed = client.get(path, headers={"Accept": PROTOBUF})
    assert (listed.status, listed.body[:4]) == (200, b"k8s\0")
    one = client.get(f"{path}/rights", headers={"Accept": PROTOBUF})
    answer = client.request("PUT", f"{path}/rights", body=one.body, headers={"Content-Type": PROTOBUF})
    assert answer.expect(200) == client.get(f"{path}/rights").expect(200)


# Whom they give rights


def test_a_right_in_a_namespace_counts_there_alone(client: InProcessClient) -> None:
    grant(client, HERE, on_roles("get", "list", "watch"))
    client.get(f"{local_roles(HERE)}/rights", headers=NOBODY).expect(200)
    assert keys(client.get(local_roles(HERE), headers=NOBODY).expect(200)) == [f"{HERE}/rights"]
    refused = client.get(local_roles(THERE), headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"] == (
        f'roles.{GROUP} is forbidden: User "nobody" cannot list resource "roles" in API group "{GROUP}" '
        f'in the namespace "{THERE}"'
    )
    client.get(f"{local_roles(HERE)}/rights", headers=VIEWER).expect(403)
    client.delete(f"{local_bindings(HERE)}/rights").expect(200)
    client.get(f"{local_roles(HERE)}/rights", headers=NOBODY).expect(403)


def test_a_whole_namespace_does_not_open_the_list_of_all(client: InProcessClient) -> None:
    """As kube-apiserver: a client that may list one namespace has to name it."""
    grant(client, HERE, on_roles("get", "list", "watch"))
    refused = client.get(ALL_ROLES, headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith("at the cluster scope")
    client.get(ALL_ROLES, headers=NOBODY, watch="true").refused(403, "Forbidden")


def test_a_cluster_role_is_bound_in_a_namespace(client: InProcessClient) -> None:
    client.post(ROLES, role("readers", on_roles("list"))).expect(201)
    body = local_binding("b", "readers", kind="ClusterRole", Group="viewers")
    client.post(local_bindings(HERE), body).expect(201)
    client.get(local_roles(HERE), headers=VIEWER).expect(200)
    client.get(local_roles(THERE), headers=VIEWER).expect(403)
    client.delete(f"{ROLES}/readers").expect(200)
    refused = client.get(local_roles(HERE), headers=VIEWER).refused(403, "Forbidden")
    assert refused["message"].endswith(': RBAC: clusterrole.rbac.authorization.k8s.io "readers" not found')


def test_a_missing_role_is_named(client: InProcessClient) -> None:
    client.post(local_bindings(HERE), local_binding("b", "gone", User="nobody")).expect(201)
    refused = client.get(local_roles(HERE), headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith(': RBAC: role.rbac.authorization.k8s.io "gone" not found')


# Filtered lists and watches


def fill(client: InProcessClient, *names: str) -> None:
    for namespace in (HERE, THERE):
        for name in names:
            client.post(local_roles(namespace), local_role(name)).expect(201)


def test_a_list_of_a_namespace_shows_what_is_named_there(client: InProcessClient) -> None:
    fill(client, "a", "b")
    grant(client, HERE, on_roles("get", names=("a", "zz")))
    assert keys(client.get(local_roles(HERE), headers=NOBODY).expect(200)) == [f"{HERE}/a"]
    assert keys(client.get(ALL_ROLES, headers=NOBODY).expect(200)) == [f"{HERE}/a"]
    named = {"fieldSelector": "metadata.name=a"}
    assert keys(client.get(ALL_ROLES, headers=NOBODY, **named).expect(200)) == [f"{HERE}/a"]
    client.get(ALL_ROLES, headers=NOBODY, fieldSelector="metadata.name=b").expect(403)
    client.get(local_roles(THERE), headers=NOBODY).expect(403)
    client.get(local_roles(THERE), headers=NOBODY, **named).expect(403)


def test_a_list_of_all_namespaces_shows_what_is_named_anywhere(client: InProcessClient) -> None:
    fill(client, "a", "b")
    client.post(ROLES, role("names", on_roles("get", names=("b",)))).expect(201)
    client.post(BINDINGS, binding("names", "names", User="nobody")).expect(201)
    assert keys(client.get(ALL_ROLES, headers=NOBODY).expect(200)) == [f"{HERE}/b", f"{THERE}/b"]
    assert keys(client.get(local_roles(THERE), headers=NOBODY).expect(200)) == [f"{THERE}/b"]
    grant(client, HERE, on_roles("list"))
    shown = [f"{HERE}/a", f"{HERE}/b", f"{HERE}/rights", f"{THERE}/b"]
    assert keys(client.get(ALL_ROLES, headers=NOBODY).expect(200)) == shown


def test_a_name_in_a_namespace_shows_nothing_of_a_root_scoped_kind(client: InProcessClient) -> None:
    grant(client, HERE, rule("get", names=["a"]), rule("get", resource="clusterroles", group=GROUP, names=["view"]))
    client.get(ROLES, headers=NOBODY).expect(403)
    client.get(f"{ROLES}/view", headers=NOBODY).expect(403)


@pytest.mark.parametrize("path", [local_roles(HERE), ALL_ROLES])
def test_a_watch_follows_changes_of_rights_in_namespaces(client: InProcessClient, path: str) -> None:
    fill(client, "a", "b")
    grant(client, HERE, on_roles("get", names=("a",)))
    with client.watch(path, headers=NOBODY) as watch:
        assert summary(watch.take(1)) == [("ADDED", "a")]
        client.put(f"{local_roles(HERE)}/rights", local_role("rights", on_roles("get", names=("a", "b")))).expect(200)
        client.put(f"{local_roles(THERE)}/b", local_role("b", rule("get"))).expect(200)
        assert summary(watch.take(1)) == [("ADDED", "b")]
        client.put(f"{local_roles(HERE)}/b", local_role("b", rule("get"))).expect(200)
        assert summary(watch.take(1)) == [("MODIFIED", "b")]
        client.put(f"{local_roles(HERE)}/rights", local_role("rights", on_roles("get", names=("b",)))).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "a")]


def test_a_watch_from_before_a_change_of_rights_begins_again(client: InProcessClient) -> None:
    fill(client, "a", "b")
    grant(client, HERE, on_roles("get", names=("a",)))
    before = client.get(local_roles(HERE)).expect(200)["metadata"]["resourceVersion"]
    client.put(f"{local_roles(HERE)}/rights", local_role("rights", on_roles("get", names=("b",)))).expect(200)
    with client.watch(local_roles(HERE), headers=NOBODY, resourceVersion=before) as watch:
        assert watch.next()["object"]["code"] == 410


# Who may write them


def test_a_role_needs_the_rights_that_it_gives_in_its_namespace(client: InProcessClient) -> None:
    grant(client, HERE, on_roles("create", "update"), rule("get", resource="leases", group="g"))
    client.post(local_roles(HERE), local_role("ok", rule("get", resource="leases", group="g")), headers=NOBODY).expect(
        201
    )
    refused = client.post(local_roles(HERE), local_role("x", rule("get", "list", group="g")), headers=NOBODY)
    assert refused.refused(403, "Forbidden")["message"] == (
        f'roles.{GROUP} "x" is forbidden: user "nobody" (groups=["system:authenticated"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:["g"], Resources:["clusters"], Verbs:["get" "list"]}'
    )
    grant(client, THERE, on_roles("create", "update"))
    there = client.post(local_roles(THERE), local_role("x", rule("get", resource="leases", group="g")), headers=NOBODY)
    there.refused(403, "Forbidden")
    update = client.put(f"{local_roles(HERE)}/ok", local_role("ok", rule("list", group="g")), headers=NOBODY)
    update.refused(403, "Forbidden")


def test_escalate_on_the_role_of_a_namespace_gives_the_right_to_write_any_rules(client: InProcessClient) -> None:
    grant(client, HERE, on_roles("create", "update"), on_roles("escalate", names=("any",)))
    everything = rule("*", resource="*", group="*")
    client.put(f"{local_roles(HERE)}/any", local_role("any", everything), headers=NOBODY).expect(201)
    client.put(f"{local_roles(HERE)}/other", local_role("other", everything), headers=NOBODY).expect(403)
    client.put(f"{local_roles(THERE)}/any", local_role("any", everything), headers=NOBODY).expect(403)


def on_bindings(*verbs: str) -> dict[str, Any]:
    return rule(*verbs, resource="rolebindings", group=GROUP)


def test_a_binding_needs_the_rights_of_its_role_in_its_namespace(client: InProcessClient) -> None:
    leases = rule("get", resource="leases", group="g")
    grant(client, HERE, on_bindings("create", "update"), leases)
    grant(client, THERE, on_bindings("create", "update"))
    client.post(ROLES, role("all-leases", leases)).expect(201)
    for namespace, status in ((HERE, 201), (THERE, 403)):
        client.post(local_roles(namespace), local_role("some", leases)).expect(201)
        for name, kind in (("some", "Role"), ("all-leases", "ClusterRole")):
            body = local_binding(f"{name}-of-a", name, kind=kind, User="x")
            client.post(local_bindings(namespace), body, headers=NOBODY).expect(status)
    missing = client.post(local_bindings(HERE), local_binding("x", "missing"), headers=NOBODY)
    assert missing.refused(404, "NotFound")["message"] == f'rolebindings.{GROUP} "missing" not found'
    client.post(local_bindings(HERE), local_binding("x", "cluster-admin", kind="ClusterRole"), headers=NOBODY).expect(
        403
    )
    odd = local_binding("x", "some", kind="Odd")
    client.post(local_bindings(HERE), odd, headers=NOBODY).refused(422, "Invalid")


@pytest.mark.parametrize(("resource", "kind"), [("roles", "Role"), ("clusterroles", "ClusterRole")])
def test_bind_on_a_role_gives_the_right_to_bind_it_in_the_namespace(
    client: InProcessClient, resource: str, kind: str
) -> None:
    bind = rule("bind", resource=resource, group=GROUP, names=["free"])
    everything = rule("*", resource="*", group="*")
    client.post(ROLES, role("free", everything)).expect(201)
    client.post(ROLES, role("closed", everything)).expect(201)
    for namespace in (HERE, THERE):
        client.post(local_roles(namespace), local_role("free", everything)).expect(201)
        client.post(local_roles(namespace), local_role("closed", everything)).expect(201)
    grant(client, HERE, on_bindings("create"), bind)
    grant(client, THERE, on_bindings("create"))

    def bound(namespace: str, name: str) -> int:
        body = local_binding(name, name, kind=kind, User="x")
        return client.post(local_bindings(namespace), body, headers=NOBODY).status

    assert [bound(HERE, "free"), bound(HERE, "closed"), bound(THERE, "free")] == [201, 403, 403]


def test_a_missing_role_of_the_writer_is_named_in_the_refusal(client: InProcessClient) -> None:
    grant(client, HERE, on_roles("create"))
    client.post(local_bindings(HERE), local_binding("gone", "gone", User="nobody")).expect(201)
    refused = client.post(local_roles(HERE), local_role("x", rule("get")), headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith('; resolution errors: [roles.rbac.authorization.k8s.io "gone" not found]')


def test_the_default_roles_give_rights_in_a_namespace(client: InProcessClient) -> None:
    body = local_binding("admins", "admin", kind="ClusterRole", User="nobody")
    client.post(local_bindings(HERE), body).expect(201)
    client.post(local_roles(HERE), local_role("mine", on_roles("get")), headers=NOBODY).expect(201)
    client.post(local_roles(HERE), local_role("more", rule("get", group="g")), headers=NOBODY).expect(403)
    client.post(local_bindings(HERE), local_binding("b", "mine", User="x"), headers=NOBODY).expect(201)
    client.post(local_roles(THERE), local_role("mine"), headers=NOBODY).expect(403)
