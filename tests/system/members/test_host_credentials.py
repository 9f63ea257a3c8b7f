"""Credentials that access rules take from a real host cluster: Secrets, and tokens of its service accounts."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry.client.rest_config import Pem, RestConfig
from clusterregistry.controllers.access import AccessRules, open_access
from clusterregistry.controllers.access.configuration import API_VERSION, KIND
from clusterregistry.controllers.access.rules import AccessParts
from clusterregistry.controllers.observer.observation import Observation, Reason
from clusterregistry.controllers.observer.observer import observe_once
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.system.members.members import OBSERVERS, RBAC, Member, Members

pytestmark = pytest.mark.e2e

NAMESPACE = "access-rules"
ISSUER = "https://kubernetes.default.svc"
SETTINGS = ObserverSettings(deadline=60.0)
RIGHTS: list[dict[str, Any]] = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
]
"""What a program with rules of the kinds ``secret`` and ``tokenRequest`` needs of the host, in one namespace."""


class Host:
    """A member in the part of the host cluster, and the account of the program in it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        member.observer_token()
        root = f"/api/v1/namespaces/{NAMESPACE}"
        if member.admin.get(root) is None:
            member.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            member.create(f"{root}/serviceaccounts", {"metadata": {"name": "program"}})
            for namespace in (NAMESPACE, OBSERVERS):
                self._allow(namespace)
        made = member.create(
            f"{root}/serviceaccounts/program/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )
        self.config = RestConfig(
            server=member.url,
            user_agent="access-test",
            certificate_authority=Pem(data=member.serving.pem),
            token=made["status"]["token"],
        )

    def _allow(self, namespace: str) -> None:
        rbac = f"{RBAC}/namespaces/{namespace}"
        self.member.create(f"{rbac}/roles", {"metadata": {"name": "program"}, "rules": RIGHTS})
        self.member.create(
            f"{rbac}/rolebindings",
            {
                "metadata": {"name": "program"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "program"},
                "subjects": [{"kind": "ServiceAccount", "name": "program", "namespace": NAMESPACE}],
            },
        )

    def put_secret(self, name: str, **data: str) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        root = f"/api/v1/namespaces/{NAMESPACE}/secrets"
        self.member.admin.delete(f"{root}/{name}")
        self.member.create(root, {"metadata": {"name": name}, "data": encoded})

    def rules(self, folder: Path, use: dict[str, Any]) -> AccessRules:
        document = {"apiVersion": API_VERSION, "kind": KIND, "rules": [{"match": {}, "use": use}]}
        (folder / "access.yaml").write_text(yaml.safe_dump(document))
        return open_access(folder / "access.yaml", host=self.config)


@pytest.fixture
def host(members: Members) -> Host:
    return Host(members[0])


def cluster(member: Member) -> dict[str, Any]:
    endpoints = {
        "serverEndpoints": [{"serverAddress": member.url}],
        "caBundle": base64.b64encode(member.serving.pem).decode(),
    }
    return {"metadata": {"name": member.name, "uid": "u"}, "spec": {"kubernetesApiEndpoints": endpoints}}


async def observed(host: Host, folder: Path, use: dict[str, Any]) -> Observation:
    access = host.rules(folder, use)
    try:
        return await observe_once(cluster(host.member), access, settings=SETTINGS)
    finally:
        await access.close()


async def test_a_token_for_the_audience_of_the_cluster_opens_it(host: Host, tmp_path: Path) -> None:
    use = {"namespace": OBSERVERS, "serviceAccount": OBSERVERS, "audience": ISSUER, "expirationSeconds": 600}
    observation = await observed(host, tmp_path, {"tokenRequest": use})
    assert observation.failure is None
    assert observation.nodes.value is not None
    assert observation.credential is not None
    assert observation.credential.expires_at is not None


async def test_a_token_for_another_audience_is_worth_nothing_here(host: Host, tmp_path: Path) -> None:
    use = {"namespace": OBSERVERS, "serviceAccount": OBSERVERS, "audience": "https://{name}"}
    failure = (await observed(host, tmp_path, {"tokenRequest": use})).failure
    assert failure is not None
    assert failure.reason is Reason.UNAUTHORIZED


async def test_a_token_and_a_kubeconfig_in_secrets(host: Host, tmp_path: Path) -> None:
    token = host.member.observer_token()
    user = {"name": "u", "user": {"token": token}}
    kubeconfig = json.dumps({"apiVersion": "v1", "kind": "Config", "users": [user]})
    host.put_secret(host.member.name, token=token, value=kubeconfig)
    for key in ("token", "value"):
        observation = await observed(host, tmp_path, {"secret": {"namespace": NAMESPACE, "key": key}})
        assert observation.failure is None
        assert observation.nodes.value is not None


async def test_the_account_of_a_pod_opens_its_own_cluster_and_is_sent_to_no_other(
    host: Host, members: Members, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(host.member.observer_token())
    (tmp_path / "ca.crt").write_bytes(host.member.serving.pem)
    rule = {"match": {"selector": "!other"}, "use": {"inCluster": {}}}
    (tmp_path / "access.yaml").write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, "rules": [rule]}))
    access = AccessRules(tmp_path / "access.yaml", AccessParts(service_account=tmp_path))
    own = await observe_once(cluster(host.member), access, settings=SETTINGS)
    assert own.failure is None
    assert own.nodes.value is not None
    failure = (await observe_once(cluster(members[1]), access, settings=SETTINGS)).failure
    assert failure is not None
    assert failure.reason is Reason.CREDENTIAL_MISSING
    await access.close()


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ({"secret": {"namespace": NAMESPACE, "name": "missing"}}, f"has no Secret {NAMESPACE}/missing"),
        ({"secret": {"namespace": "kube-system"}}, "does not let this program get Secret kube-system/"),
        (
            {"tokenRequest": {"namespace": "default", "serviceAccount": "default", "audience": "a"}},
            "does not let this program create a token for ServiceAccount default/default",
        ),
        (
            {"tokenRequest": {"namespace": OBSERVERS, "serviceAccount": "missing", "audience": "a"}},
            f"has no ServiceAccount {OBSERVERS}/missing",
        ),
    ],
)
async def test_what_the_host_does_not_give(host: Host, tmp_path: Path, use: dict[str, Any], said: str) -> None:
    failure = (await observed(host, tmp_path, use)).failure
    assert failure is not None
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert said in failure.message
