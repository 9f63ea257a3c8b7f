"""Bootstrap tokens: which of them are stored, and which are users."""

from __future__ import annotations

import time
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import expiration_time
from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.in_process import InProcessClient
from tests.registry.agents.tokens import CLUSTERS, SECRET, TOKENS, new_token, token, with_token

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def test_a_token_is_a_user_for_one_cluster(local: InProcessClient) -> None:
    name = new_token(local, "edge")
    user = local.post(WHO, REVIEW, headers=with_token(name)).expect(201)["status"]["userInfo"]
    assert user["username"] == f"system:bootstrap:{name}"
    assert user["groups"] == ["system:bootstrappers", "system:bootstrappers:clusterregistry", "system:authenticated"]
    assert user["extra"] == {"clusterregistry.k8s.io/cluster-name": ["edge"]}
    assert user["uid"] == local.get(f"{TOKENS}/{name}").expect(200)["metadata"]["uid"]


def test_what_is_no_token_is_refused(local: InProcessClient) -> None:
    name = new_token(local, "edge")
    for wrong in (f"{name}.{SECRET[::-1]}", f"{name}.", name, f"{name}.{SECRET}x", f"other00.{SECRET}", f".{SECRET}"):
        local.get(CLUSTERS, headers={"Authorization": f"Bearer {wrong}"}).refused(401, "Unauthorized")


def test_a_deleted_token_counts_no_more(local: InProcessClient) -> None:
    name = new_token(local, "edge")
    local.post(WHO, REVIEW, headers=with_token(name)).expect(201)
    local.delete(f"{TOKENS}/{name}").expect(200)
    local.post(WHO, REVIEW, headers=with_token(name)).refused(401, "Unauthorized")


def test_a_token_ends(local: InProcessClient) -> None:
    name = new_token(local, "edge", seconds=60.0)
    local.post(WHO, REVIEW, headers=with_token(name)).expect(201)
    soon = {"spec": {"expirationTime": expiration_time(time.time() + 2)}}
    local.patch(f"{TOKENS}/{name}", soon).expect(200)
    until = time.monotonic() + 30
    while local.post(WHO, REVIEW, headers=with_token(name)).status == 201:
        assert time.monotonic() < until
        time.sleep(0.1)
    local.post(WHO, REVIEW, headers=with_token(name)).refused(401, "Unauthorized")


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no cluster": (token("aaaaaa", "edge", clusterName=None), "spec.clusterName"),
    "no hash": (token("aaaaaa", "edge", secretHash=None), "spec.secretHash"),
    "no end": (token("aaaaaa", "edge", expirationTime=None), "spec.expirationTime"),
    "a secret": (token("aaaaaa", "edge", secretHash=SECRET), "spec.secretHash"),
    "a past end": (token("aaaaaa", "edge", seconds=-5.0), "spec.expirationTime"),
    "a far end": (token("aaaaaa", "edge", seconds=90 * 86400.0), "spec.expirationTime"),
    "no time": (token("aaaaaa", "edge", expirationTime="tomorrow"), "spec.expirationTime"),
    "a bad cluster": (token("aaaaaa", "Edge_1"), "spec.clusterName"),
    "a bad label": (token("aaaaaa", "edge", clusterLabels={"a b": "c"}), "spec.clusterLabels"),
    "another usage": (token("aaaaaa", "edge", usages=["signing"]), "spec.usages[0]"),
    "a short ID": (token("aaa", "edge"), "metadata.name"),
    "an ID with a dot": (token("aaaaaa.aaa", "edge"), "metadata.name"),
}


@pytest.mark.parametrize("what", INVALID)
def test_an_invalid_token_is_not_stored(local: InProcessClient, what: str) -> None:
    body, field = INVALID[what]
    status = local.post(TOKENS, body).refused(422, "Invalid")
    assert field in {each for each, _ in causes(status)}
    assert SECRET not in status["message"] or what != "a secret"


def test_a_token_stays_for_its_cluster(local: InProcessClient) -> None:
    path = f"{TOKENS}/{new_token(local, 'edge')}"
    for changed in ({"clusterName": "other"}, {"secretHash": "sha256:" + "0" * 64}, {"clusterLabels": {"a": "b"}}):
        local.patch(path, {"spec": changed}).refused(422, "Invalid")
    local.patch(path, {"spec": {"description": "for the lab"}}).expect(200)


def test_a_table_shows_what_a_token_is_for(local: InProcessClient) -> None:
    name = new_token(local, "edge")
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    shown = local.get(f"{TOKENS}/{name}", headers=table).expect(200)
    columns = [each["name"] for each in shown["columnDefinitions"] if not each["priority"]]
    assert columns == ["Name", "Cluster", "Expires", "Usages", "Age"]
    assert shown["rows"][0]["cells"][:2] == [name, "edge"]
    assert shown["rows"][0]["cells"][3] == "join"


def test_default_roles_have_no_rights_on_tokens(client: Client) -> None:
    for role in ("view", "edit", "admin"):
        rules = client.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}").expect(200)["rules"]
        assert "bootstraptokens" not in {each for rule in rules for each in rule.get("resources", ())}


def test_without_v1beta1_there_are_no_tokens(serve: Any) -> None:
    client = serve("--runtime-config=clusterregistry.k8s.io/v1beta1=false")
    assert client.get(TOKENS).status == 404
    client.get("/apis/clusterregistry.k8s.io/v1alpha1/clusters", headers=with_token("aaaaaa")).refused(
        401, "Unauthorized"
    )
