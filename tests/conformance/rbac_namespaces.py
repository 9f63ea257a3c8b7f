"""Random policies with rights in namespaces, and what a server decides by them.

    E2E=1 python -m tests.conformance.rbac_namespaces      records kube-apiserver's decisions anew

``rbac-namespaces.json`` has policies, each with the reviews that were asked and kube-apiserver's answers. A review is a
list: the user, its groups, verb, API group, resource, subresource, name and namespace. The answer is whether it is
allowed, and the missing roles that a refusal names. Rules are those of one user in a namespace.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from clusterregistry.client.rest import Call
from clusterregistry.client.sync import SyncClient
from tools.exchanges import access

Object = dict[str, Any]

RECORDED = Path(__file__).with_name("rbac-namespaces.json")
GROUP = "rbac.authorization.k8s.io"
SUBJECTS = ("User", "Group", "ServiceAccount")
NAMESPACES = ("default", "kube-public", "kube-system")
"""Namespaces that every server has."""

_SEED, _POLICIES, _REVIEWS, _RULES = 18, 25, 44, 3
_NAMED = 0.3
"""The share of rules with resource names."""

_USERS = ("ann", "bob", "system:serviceaccount:default:bot", "system:serviceaccount:kube-public:bot")
_GROUPS = ("devs", "ops")
_VERBS = ("get", "list", "create", "bind")
_API_GROUPS = ("", GROUP)
_RESOURCES = ("leases", "roles", "namespaces")
_PATTERNS = (*_RESOURCES, *_RESOURCES, "leases/status", "*/status", "*", "leases/*")
_NAMES = ("a", "b", "default", "kube-public")
_PROBLEM = re.compile(r'(?:cluster)?role\.rbac\.authorization\.k8s\.io "[^"]*" not found')


class Server:
    """Asks a server over one connection."""

    def __init__(self, url: str, *, ca_file: Path, token: str) -> None:
        self._client = SyncClient(access(url, ca_file=ca_file, token=token))

    def call(self, method: str, path: str, body: Object | None = None, *headers: tuple[str, str]) -> tuple[int, Object]:
        response = self._client.exchange(Call(method, path, body=body, fields=headers))
        return response.status, json.loads(response.body)

    def close(self) -> None:
        self._client.close()

    def create(self, objects: Sequence[Object]) -> None:
        for obj in objects:
            status, answer = self.call("POST", _collection(obj), {"apiVersion": f"{GROUP}/v1", **obj})
            assert status == 201, answer

    def delete(self, objects: Sequence[Object]) -> None:
        for obj in objects:
            self.call("DELETE", f"{_collection(obj)}/{obj['metadata']['name']}")

    def review(self, question: Sequence[Any]) -> list[Any]:
        """Whether it is allowed, and the roles that are missing."""
        user, groups, verb, group, resource, subresource, name, namespace = question
        attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        spec = {
            "user": user,
            "groups": groups,
            "resourceAttributes": {**attributes, "name": name, "namespace": namespace},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status, answer = self.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        assert status == 201, answer
        decided = answer["status"]
        reason = "" if decided["allowed"] else decided.get("reason", "")
        return [decided["allowed"], sorted(_PROBLEM.findall(reason))]

    def rules(self, user: str, groups: Sequence[str], namespace: str) -> list[str]:
        """The rules of a user in a namespace, and the problems, in no order. Those of all users are left out."""
        headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        status, answer = self.call("POST", path, body, *headers)
        assert status == 201, answer
        found = answer["status"]
        rules = [json.dumps(_sorted(rule), sort_keys=True) for rule in found["resourceRules"] if not _is_default(rule)]
        return sorted([*rules, *_PROBLEM.findall(found.get("evaluationError", ""))])


def _is_default(rule: Object) -> bool:
    """Whether it is one that every user has."""
    return rule["apiGroups"] in (["authentication.k8s.io"], ["authorization.k8s.io"])


def _sorted(rule: Object) -> Object:
    return {name: sorted(values) for name, values in rule.items()}


def answers(server: Server, policy: Object) -> Object:
    """What a server decides by a policy, which it has for that time."""
    objects = [*policy["roles"], *policy["bindings"]]
    server.create(objects)
    try:
        _wait_for(server, policy)
        return {
            "reviews": [server.review(question) for question in policy["reviews"]],
            "rules": [server.rules(*question) for question in policy["rules"]],
        }
    finally:
        server.delete(objects)


def _wait_for(server: Server, policy: Object) -> None:
    """Waits until the last of the bindings counts: kube-apiserver learns of it through a watch."""
    end = time.monotonic() + 30
    sentinel = ("sentinel", [policy["sentinel"]], "get", "", "things", "", "", "default")
    while not server.review(sentinel)[0]:
        assert time.monotonic() < end, "the policy does not count"
        time.sleep(0.05)


def _collection(obj: Object) -> str:
    plural, namespace = f"{obj['kind'].lower()}s", obj["metadata"].get("namespace")
    return f"/apis/{GROUP}/v1/{f'namespaces/{namespace}/' if namespace else ''}{plural}"


# Random policies


def policies(seed: int) -> Iterator[Object]:
    chance = random.Random(seed)
    for number in range(_POLICIES):
        yield _Generator(chance, f"p{number}").policy()


class _Generator:
    def __init__(self, chance: random.Random, name: str) -> None:
        self._chance, self._name = chance, name

    def policy(self) -> Object:
        roles = [*self._roles(), self._object("ClusterRole", "sentinel", rules=[_SENTINEL])]
        sentinel = {"kind": "Group", "apiGroup": GROUP, "name": self._name}
        last = self._object(
            "RoleBinding",
            "sentinel",
            namespace="default",
            roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": f"{self._name}-sentinel"},
            subjects=[sentinel],
        )
        return {
            "sentinel": self._name,
            "roles": roles,
            "bindings": [*self._bindings(), last],
            "reviews": [self._review() for _ in range(_REVIEWS)],
            "rules": [self._user_in_namespace() for _ in range(_RULES)],
        }

    def _user_in_namespace(self) -> list[Any]:
        return [self._one_of(_USERS), self._some(_GROUPS), self._one_of((*NAMESPACES, "absent"))]

    def _roles(self) -> Iterator[Object]:
        for number in range(self._chance.randint(1, 3)):
            yield self._object("ClusterRole", f"r{number}", rules=self._rules())
        for namespace in NAMESPACES:
            for number in range(self._chance.randint(1, 3)):
                yield self._object("Role", f"r{number}", namespace=namespace, rules=self._rules())

    def _bindings(self) -> Iterator[Object]:
        for number in range(self._chance.randint(0, 2)):
            yield self._object(
                "ClusterRoleBinding",
                f"b{number}",
                roleRef=self._role_ref("ClusterRole"),
                subjects=self._subjects(namespaced=False),
            )
        for namespace in NAMESPACES:
            for number in range(self._chance.randint(1, 4)):
                yield self._object(
                    "RoleBinding",
                    f"b{number}",
                    namespace=namespace,
                    roleRef=self._role_ref(self._one_of(("Role", "ClusterRole"))),
                    subjects=self._subjects(namespaced=True),
                )

    def _object(self, kind: str, name: str, *, namespace: str = "", **more: Any) -> Object:
        metadata = {"name": f"{self._name}-{name}"} | ({"namespace": namespace} if namespace else {})
        return {"kind": kind, "metadata": metadata, **more}

    def _rules(self) -> list[Object]:
        return [self._rule() for _ in range(self._chance.randint(1, 3))]

    def _rule(self) -> Object:
        rule = {
            "verbs": self._some((*_VERBS, "*"), least=1, most=3),
            "apiGroups": self._some((*_API_GROUPS, "*"), least=1),
            "resources": self._some(_PATTERNS, least=1, most=4),
        }
        names = self._some(_NAMES) if self._chance.random() < _NAMED else []
        return {**rule, "resourceNames": names} if names else rule

    def _role_ref(self, kind: str) -> Object:
        # One more than there are: some bindings are to no role.
        return {"apiGroup": GROUP, "kind": kind, "name": f"{self._name}-r{self._chance.randint(0, 2)}"}

    def _subjects(self, *, namespaced: bool) -> list[Object]:
        return [self._subject(namespaced=namespaced) for _ in range(self._chance.randint(1, 3))]

    def _subject(self, *, namespaced: bool) -> Object:
        kind = self._one_of(SUBJECTS)
        if kind != "ServiceAccount":
            return {"kind": kind, "apiGroup": GROUP, "name": self._one_of(_GROUPS if kind == "Group" else _USERS)}
        home = self._one_of((*NAMESPACES, "") if namespaced else NAMESPACES)
        return {"kind": kind, "name": "bot"} | ({"namespace": home} if home else {})

    def _review(self) -> list[Any]:
        return [
            self._one_of(_USERS),
            self._some(_GROUPS),
            self._one_of(_VERBS),
            self._one_of(_API_GROUPS),
            self._one_of(_RESOURCES),
            self._one_of(("", "", "", "status")),
            self._one_of(("", *_NAMES)),
            self._one_of(("", *NAMESPACES, *NAMESPACES, *NAMESPACES, "absent")),
        ]

    def _one_of(self, values: Sequence[str]) -> str:
        return self._chance.choice(values)

    def _some(self, values: Sequence[str], *, least: int = 0, most: int = 2) -> list[str]:
        return self._chance.sample(values, self._chance.randint(least, most))


_SENTINEL = {"verbs": ["get"], "apiGroups": [""], "resources": ["things"]}


def record() -> None:
    """Asks a real kube-apiserver, and writes the recording."""
    from tests.system.e2e.host_clusters import ADMIN, HostCluster  # noqa: PLC0415 - needs its programs

    with (
        tempfile.TemporaryDirectory() as directory,
        HostCluster(Path(directory)) as reference,
        closing(Server(reference.url, ca_file=reference.serving.file, token=ADMIN)) as server,
    ):
        version = server.call("GET", "/version")[1]["gitVersion"]
        recorded = [{**policy, "answers": answers(server, policy)} for policy in policies(_SEED)]
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in recorded)
    RECORDED.write_text(f'{{"version":"{version}","policies":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    record()
