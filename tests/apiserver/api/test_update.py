"""PUT: creation, conflicts, what cannot be changed."""

from __future__ import annotations

from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of

UID = "11111111-2222-3333-4444-555555555555"


def test_put_to_a_free_name_creates(client: Client) -> None:
    made = client.put(path_of("a"), cluster("a")).expect(201)
    assert made["metadata"]["generation"] == 1
    assert client.get(path_of("a")).expect(200) == made


def test_put_to_a_taken_name_updates(client: Client) -> None:
    made = client.put(path_of("a"), cluster("a", "aws")).expect(201)
    changed = client.put(path_of("a"), cluster("a", "gce")).expect(200)
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["spec"] == {"cloudProvider": {"name": "gce"}}


def test_put_with_the_version_or_uid_of_a_deleted_object_creates_nothing(client: Client) -> None:
    for metadata in ({"resourceVersion": "5"}, {"uid": UID}, {"resourceVersion": "5", "uid": UID}):
        refused = client.put(path_of("a"), cluster("a", **metadata)).refused(409, "Conflict")
        assert refused["details"] == {"name": "a", "group": "clusterregistry.k8s.io", "kind": "clusters"}
        client.get(path_of("a")).refused(404, "NotFound")


def test_put_with_an_empty_resource_version_creates(client: Client) -> None:
    for name, version in (("a", ""), ("b", "0")):
        client.put(path_of(name), cluster(name, resourceVersion=version)).expect(201)


def test_put_that_creates_drops_the_status(client: Client) -> None:
    assert "status" not in client.put(path_of("a"), {**cluster("a"), "status": {"nodes": {"total": 1}}}).expect(201)


def test_put_that_creates_validates(client: Client) -> None:
    refused = client.put(path_of("a"), cluster("a", labels={"bad key": "x"})).refused(422, "Invalid")
    assert causes(refused) == [("metadata.labels", "FieldValueInvalid")]
    client.get(path_of("a")).refused(404, "NotFound")


def test_put_to_a_path_that_is_no_name_is_invalid(client: Client) -> None:
    refused = client.put(path_of("Bad_Name"), cluster("Bad_Name")).refused(422, "Invalid")
    assert ("metadata.name", "FieldValueInvalid") in causes(refused)


def test_the_name_must_be_that_of_the_path(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    for path in ("a", "free"):
        for given in (cluster("b"), cluster(""), cluster("A"), cluster("", generateName="a")):
            client.put(path_of(path), given).refused(400, "BadRequest")
    assert names(client.get(CLUSTERS).expect(200)) == ["a"]


def test_status_never_creates(client: Client) -> None:
    client.put(path_of("a") + "/status", {**cluster("a"), "status": {}}).refused(404, "NotFound")
    client.get(path_of("a")).refused(404, "NotFound")


def test_an_update_needs_a_name_in_its_path(client: Client) -> None:
    for answer in (client.put(CLUSTERS, cluster("a")), client.patch(CLUSTERS, {})):
        assert answer.refused(400, "BadRequest")["message"] == "name must be provided"


def test_an_update_without_a_resource_version_is_unconditional(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", "aws")).expect(201)
    for provider, version in (("gce", None), ("azure", ""), ("other", "0")):
        changed = client.put(path_of("a"), cluster("a", provider, resourceVersion=version)).expect(200)
        assert changed["spec"]["cloudProvider"]["name"] == provider


def test_an_update_from_a_stale_object_is_refused_and_changes_nothing(client: Client) -> None:
    stale = client.post(CLUSTERS, cluster("a", "aws")).expect(201)
    newer = client.put(path_of("a"), cluster("a", "gce")).expect(200)
    stale["spec"]["cloudProvider"]["name"] = "azure"
    refused = client.put(path_of("a"), stale).refused(409, "Conflict")
    assert "the object has been modified" in refused["message"]
    assert client.get(path_of("a")).expect(200) == newer


def test_a_conflict_comes_before_validation(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(path_of("a"), cluster("a", labels={"bad key": ""}, resourceVersion="1")).refused(409, "Conflict")


def test_a_resource_version_from_the_future_is_a_conflict(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(path_of("a"), cluster("a", resourceVersion="999999999")).refused(409, "Conflict")


def test_a_resource_version_that_is_no_number_is_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    for version in ("abc", "-1", "1.5", " 1", "0x10"):
        answer = client.put(path_of("a"), cluster("a", "gce", resourceVersion=version))
        assert answer.status in (400, 409)
    assert client.get(path_of("a")).expect(200)["spec"] == {"cloudProvider": {"name": "aws"}}


def test_another_uid_means_another_object(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    refused = client.put(path_of("a"), cluster("a", "gce", uid=UID)).refused(409, "Conflict")
    assert f"UID in precondition: {UID}, UID in object meta: {made['metadata']['uid']}" in refused["message"]


def test_the_objects_own_uid_is_fine(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(path_of("a"), cluster("a", "gce", uid=made["metadata"]["uid"])).expect(200)


def test_what_is_left_out_is_removed(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1"}, annotations={"y": "2"})).expect(201)
    changed = client.put(path_of("a"), cluster("a", provider=None)).expect(200)
    assert "spec" not in changed
    assert changed["metadata"].keys() == {"name", "uid", "generation", "creationTimestamp", "resourceVersion"}


def test_what_only_the_server_sets_cannot_be_changed(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]
    given = {"creationTimestamp": "2001-02-03T04:05:06Z", "generation": 99, "selfLink": "/x", "namespace": "default"}
    changed = client.put(path_of("a"), cluster("a", "aws", **given)).expect(200)["metadata"]
    assert changed == made


def test_an_object_read_earlier_can_be_sent_back_whole(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    made["metadata"]["labels"] = {"x": "1"}
    changed = client.put(path_of("a"), made).expect(200)
    assert changed["metadata"]["labels"] == {"x": "1"}
    client.put(path_of("a"), changed).expect(200)


def test_generate_name_may_be_changed_in_an_object(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("", generateName="gen-")).expect(201)
    name = made["metadata"]["name"]
    client.put(path_of(name), cluster(name)).expect(200)
