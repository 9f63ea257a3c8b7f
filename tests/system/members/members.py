"""Member clusters: kube-apiserver, kube-controller-manager and kube-scheduler each, on one etcd, with played nodes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.system.e2e.kube_apiservers import ADMIN, Etcd, KubeApiserver
from tests.system.e2e.real_programs import HOST, host_program
from tests.system.members.played_nodes import RENEWED_EVERY, Health, PlayedNodes
from tools import exchanges
from tools.processes import Process, wait_for

RELEASES = tuple(os.environ.get("E2E_MEMBERS", f"{HOST} {HOST} {HOST}").split())
"""The releases of the members that tests share, one each."""

NODES_EACH = 2
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OBSERVERS = "cluster-observers"
"""The namespace of the service account with which a controller observes a member."""

_MONITOR_GRACE = 4 * RENEWED_EVERY
"""Seconds without a renewed Lease after which a node counts as lost; Kubernetes' default is 50."""

_TOKEN_SECONDS = 3600


class Member(KubeApiserver):
    """One member. ``within`` is a command that runs its programs elsewhere, such as in a network namespace."""

    made_late = (*KubeApiserver.made_late, "/api/v1/namespaces/kube-node-lease")

    def __init__(
        self, directory: Path, name: str, etcd: Etcd, *, release: str = HOST, within: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, etcd.url, f"--etcd-prefix=/{name}", release=release, within=within)
        self.name, self.nodes = name, [f"{name}-node-{number}" for number in range(NODES_EACH)]
        # As the programs see the member, which may be in a network of its own.
        inside = self.kubeconfig(directory / "inside.kubeconfig")
        self.controller_manager = self._process("kube-controller-manager", within, self._manager_flags(inside))
        self.scheduler = self._process("kube-scheduler", within, [f"--kubeconfig={inside}", *_QUIET])

    def _process(self, family: str, within: Sequence[str], flags: list[str]) -> Process:
        program = host_program("", f"{family}-{self.release}")
        return Process([*within, str(program), *flags], log=self.directory / f"{family}.log")

    def _manager_flags(self, kubeconfig: Path) -> list[str]:
        return [
            f"--kubeconfig={kubeconfig}",
            *_QUIET,
            f"--root-ca-file={self.serving.file}",
            f"--service-account-private-key-file={self.account_key}",
            f"--cluster-signing-cert-file={self.users.file}",
            f"--cluster-signing-key-file={self.users.key_file()}",
            f"--node-monitor-grace-period={_MONITOR_GRACE:g}s",
            "--node-monitor-period=2s",
        ]

    @property
    def processes(self) -> tuple[Process, ...]:
        return self.apiserver, self.controller_manager, self.scheduler

    def begin(self) -> None:
        """Starts all programs and waits for none: the others wait for kube-apiserver by themselves."""
        for process in self.processes:
            process.start()

    def wait_until_ready(self) -> None:
        """Waits until the API answers, and the controllers have made what they make in a new cluster."""
        self.apiserver.wait_until(self._is_ready)
        self.controller_manager.wait_until(self._has_accounts)
        assert not self.scheduler.has_ended, self.scheduler.log_end()

    def _has_accounts(self) -> bool:
        return exchanges.is_ok(self.access(ADMIN), "/api/v1/namespaces/default/serviceaccounts/default")

    def start(self) -> None:
        self.begin()
        self.wait_until_ready()

    def go_away(self) -> None:
        """Kills all of its programs, as a power failure does."""
        for process in reversed(self.processes):
            process.end(signal.SIGKILL)

    def is_node_ready(self, name: str) -> str:
        """The status of the node's condition Ready: True, False or Unknown."""
        node = self.admin.get(f"/api/v1/nodes/{name}") or {}
        conditions = (node.get("status") or {}).get("conditions") or []
        return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")

    def nodes_are(self, *statuses: str) -> bool:
        return [self.is_node_ready(name) for name in self.nodes] == list(statuses)

    def takes_pods(self) -> bool:
        """Whether all nodes are ready, and the node controller has taken away the taints of those that were not."""
        nodes = self.admin.items("/api/v1/nodes")
        return self.nodes_are(*["True"] * len(self.nodes)) and not any(each["spec"].get("taints") for each in nodes)

    def observer_token(self, rules: list[dict[str, Any]] | None = None) -> str:
        """A token of a service account that may read what an observer needs, and nothing else. Idempotent."""
        account = f"/api/v1/namespaces/{OBSERVERS}/serviceaccounts"
        role = {"metadata": {"name": OBSERVERS}, "rules": OBSERVER_RULES if rules is None else rules}
        binding = {
            "metadata": {"name": OBSERVERS},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": OBSERVERS},
            "subjects": [{"kind": "ServiceAccount", "name": OBSERVERS, "namespace": OBSERVERS}],
        }
        self._ensure("/api/v1/namespaces", {"metadata": {"name": OBSERVERS}})
        self._ensure(account, {"metadata": {"name": OBSERVERS}})
        self._ensure(f"{RBAC}/clusterroles", role)
        self._ensure(f"{RBAC}/clusterrolebindings", binding)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        spec = {"expirationSeconds": _TOKEN_SECONDS}
        made = self.create(f"{account}/{OBSERVERS}/token", {**asked, "spec": spec})
        return str(made["status"]["token"])

    def _ensure(self, collection: str, document: dict[str, Any]) -> None:
        if self.admin.get(f"{collection}/{document['metadata']['name']}") is None:
            self.create(collection, document)

    def revoke_observer(self) -> None:
        """Deletes the service account: its tokens count no longer."""
        self.admin.delete(f"/api/v1/namespaces/{OBSERVERS}")


_QUIET = ["--leader-elect=false", "--secure-port=0", "--bind-address=127.0.0.1"]
"""One process each, which opens no port."""

OBSERVER_RULES: list[dict[str, Any]] = [
    {"nonResourceURLs": ["/readyz", "/version"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
]
"""What an observer reads of a member."""


class Members:
    """Several members on one etcd, and the player of their nodes."""

    def __init__(self, members: Sequence[Member], nodes: PlayedNodes) -> None:
        self._members, self.played = {each.name: each for each in members}, nodes

    def __getitem__(self, number: int) -> Member:
        return list(self._members.values())[number]

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def set_health(self, member: Member, node: str, health: Health) -> None:
        self.played.set_health(member.name, node, health)


@contextlib.contextmanager
def running(directory: Path, releases: Sequence[str] = RELEASES) -> Iterator[Members]:
    """Starts members of these releases side by side. All processes end with the context, also if a start fails."""
    with contextlib.ExitStack() as stack:
        etcd = Etcd(directory)
        names = [f"m{number}" for number in range(1, len(releases) + 1)]
        members = [
            Member(directory / name, name, etcd, release=release) for name, release in zip(names, releases, strict=True)
        ]
        stack.callback(etcd.end)
        etcd.start()
        for member in members:
            stack.callback(member.go_away)
            member.begin()
        for member in members:
            member.wait_until_ready()
        played = stack.enter_context(PlayedNodes())
        for member in members:
            play(member, played)
        yield Members(members, played)


def play(member: Member, played: PlayedNodes) -> None:
    """Gives a member its nodes, and waits until the node controller has accepted them."""
    played.add(member.name, member.access(ADMIN), nodes=member.nodes)
    wait_for(member.takes_pods, member.controller_manager.log_end)
