"""The verbs of any resource, on our real server over TLS."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.client import errors
from clusterregistry.client.rest import (
    Call,
    Client,
    DeleteOptions,
    GroupVersionResource,
    ListOptions,
    PatchType,
    ResourceClient,
    WriteOptions,
    items,
)
from tests.apiserver.server.programs import Program
from tests.client.conftest import CLUSTERS, cluster, program_config
from tests.client.hostile_servers import HostileServer, response, status

APPLY = WriteOptions(field_manager="tests")


def test_paths_are_those_of_the_api() -> None:
    pods = GroupVersionResource("", "v1", "pods")
    assert pods.path() == "/api/v1/pods"
    assert pods.path(namespace="n", name="p", subresource="log") == "/api/v1/namespaces/n/pods/p/log"
    roles = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
    assert roles.path(name="system:admin") == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:admin"
    assert roles.path(name="a b?c") == "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%20b%3Fc"


@pytest.mark.parametrize("name", ["..", ".", "a/b"])
def test_a_name_cannot_lead_to_another_path(name: str) -> None:
    with pytest.raises(ValueError, match="part of a path"):
        CLUSTERS.path(name=name)


async def test_an_object_without_a_name_is_no_collection(hostile: Client, server: HostileServer) -> None:
    with pytest.raises(ValueError, match="name"):
        await hostile.resource(CLUSTERS).delete("")
    assert server.received == []


async def test_an_object_is_created_read_updated_and_deleted(clusters: ResourceClient) -> None:
    created = await clusters.create(cluster("a", labels={"x": "1"}))
    assert (await clusters.get("a")) == created
    created["metadata"]["labels"] = {"x": "2"}
    updated = await clusters.update(created)
    assert updated["metadata"]["labels"] == {"x": "2"}
    with pytest.raises(errors.ConflictError):
        await clusters.update(created)
    await clusters.delete("a")
    with pytest.raises(errors.NotFoundError) as raised:
        await clusters.get("a")
    assert (raised.value.code, raised.value.details["name"]) == (404, "a")


@pytest.mark.parametrize(
    ("patch", "patch_type"),
    [
        ({"metadata": {"labels": {"x": "2"}}}, PatchType.MERGE),
        ([{"op": "add", "path": "/metadata/labels", "value": {"x": "2"}}], PatchType.JSON),
    ],
)
async def test_an_object_is_patched(clusters: ResourceClient, patch: object, patch_type: PatchType) -> None:
    await clusters.create(cluster("a"))
    patched = await clusters.patch("a", patch, patch_type=patch_type)
    assert patched["metadata"]["labels"] == {"x": "2"}


async def test_an_object_is_applied_and_conflicts_are_forced(clusters: ResourceClient) -> None:
    await clusters.apply(cluster("a", labels={"x": "1"}), APPLY)
    other = WriteOptions(field_manager="other")
    with pytest.raises(errors.ConflictError) as raised:
        await clusters.apply(cluster("a", labels={"x": "2"}), other)
    assert raised.value.causes[0]["reason"] == "FieldManagerConflict"
    forced = await clusters.apply(cluster("a", labels={"x": "2"}), WriteOptions(field_manager="other", force=True))
    assert forced["metadata"]["labels"] == {"x": "2"}


async def test_the_status_is_written_as_a_subresource(clusters: ResourceClient) -> None:
    created = await clusters.create(cluster("a"))
    assert (await clusters.update(created, subresource="status"))["metadata"]["name"] == "a"
    assert (await clusters.get("a", subresource="status"))["metadata"]["name"] == "a"


async def test_a_dry_run_changes_nothing(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a"), WriteOptions(dry_run=True))
    assert items(await clusters.list()) == []


async def test_preconditions_protect_from_deleting_another_object(clusters: ResourceClient) -> None:
    created = await clusters.create(cluster("a"))
    with pytest.raises(errors.ConflictError):
        await clusters.delete("a", DeleteOptions(uid="another"))
    await clusters.delete("a", DeleteOptions(uid=created["metadata"]["uid"], propagation_policy="Background"))


async def test_a_list_comes_in_pages_of_one_version(clusters: ResourceClient) -> None:
    for number in range(7):
        await clusters.create(cluster(f"c{number}", labels={"even": str(number % 2 == 0).lower()}))
    pages = [page async for page in clusters.pages(page_size=3)]
    assert [len(items(page)) for page in pages] == [3, 3, 1]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1
    whole = await clusters.list_all(page_size=2)
    assert [obj["metadata"]["name"] for obj in whole["items"]] == [f"c{number}" for number in range(7)]
    assert not whole["metadata"].get("continue")
    even = await clusters.list_all(ListOptions(label_selector="even=true"))
    assert len(even["items"]) == 4
    with pytest.raises(errors.LimitError):
        await clusters.list_all(page_size=2, max_items=5)


async def test_a_selected_part_of_a_collection_is_deleted(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a", labels={"x": "1"}))
    await clusters.create(cluster("b"))
    await clusters.delete_collection(ListOptions(label_selector="x=1"))
    assert [obj["metadata"]["name"] for obj in items(await clusters.list())] == ["b"]


async def test_pages_that_expire_are_listed_anew_as_one(hostile: Client, server: HostileServer) -> None:
    page = b'{"metadata": {"continue": "c", "resourceVersion": "1"}, "items": [{}]}'
    whole = b'{"metadata": {"resourceVersion": "2"}, "items": [{}, {}]}'
    server.answers = [response(page), status(410, "Expired"), response(whole)]
    assert len((await hostile.resource(CLUSTERS).list_all())["items"]) == 2
    assert [received.target.partition("?")[2] for received in server.received] == [
        "limit=500",
        "limit=500&continue=c",
        "",
    ]


@pytest.mark.parametrize("body", [b'{"items": 3}', b'{"items": [3]}'])
async def test_what_is_no_list_is_malformed(hostile: Client, server: HostileServer, body: bytes) -> None:
    server.answers = [response(body)]
    with pytest.raises(errors.MalformedResponseError):
        await hostile.resource(CLUSTERS).list_all()


async def test_failures_are_typed_by_the_reason_of_the_status(clusters: ResourceClient, program: Program) -> None:
    await clusters.create(cluster("a"))
    with pytest.raises(errors.AlreadyExistsError):
        await clusters.create(cluster("a"))
    with pytest.raises(errors.InvalidError) as raised:
        await clusters.create(cluster("No_Name"))
    assert raised.value.causes[0]["field"] == "metadata.name"
    with pytest.raises(errors.BadRequestError):
        await clusters.list(ListOptions(label_selector="=="))
    for token, kind in (("nobodytoken", errors.ForbiddenError), ("wrong", errors.UnauthorizedError)):
        async with Client(program_config(program, token=token)) as other:
            with pytest.raises(kind):
                await other.resource(CLUSTERS).get("a")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (409, "Conflict", errors.ConflictError),
        (410, "Expired", errors.ExpiredError),
        (410, "Gone", errors.GoneError),
        (500, "ServerTimeout", errors.ServerTimeoutError),
        (504, "Timeout", errors.TimeoutStatusError),
        (413, "RequestEntityTooLarge", errors.RequestEntityTooLargeError),
        (418, "Teapot", errors.APIStatusError),
        (405, "", errors.MethodNotAllowedError),
    ],
)
async def test_each_reason_has_its_error(
    server: HostileServer, hostile: Client, *, code: int, reason: str, kind: type[errors.APIStatusError]
) -> None:
    server.answers = [status(code, reason, message="why")]
    with pytest.raises(errors.APIStatusError, match=r"^why$") as raised:
        await hostile.call(Call("POST", "/it", body={}))
    assert (type(raised.value), raised.value.code) == (kind, code)


async def test_texts_and_logs_are_read_as_text(rest: Client, server: HostileServer, hostile: Client) -> None:
    assert await rest.text(Call("GET", "/readyz")) == "ok"
    server.answers = [response("line one\nline two\n")]
    pods = hostile.resource(GroupVersionResource("", "v1", "pods"), namespace="n")
    assert await pods.log("p", container="c", tailLines=2, previous=True) == "line one\nline two\n"
    assert server.received[0].target == "/api/v1/namespaces/n/pods/p/log?container=c&tailLines=2&previous=true"


async def test_many_calls_at_a_time_share_connections(program: Program) -> None:
    async with Client(program_config(program, max_connections=4)) as client:
        answers = await asyncio.gather(*(client.text(Call("GET", "/readyz")) for _ in range(40)))
    assert set(answers) == {"ok"}
