"""The commands of docs/guides/deploy.md print what the page shows, with a real cluster."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crinit import networks
from tests.crinit.kubelets import Kubelet
from tests.docs import guide_reader, markdown
from tests.docs.guide_reader import Outcome, Surroundings, problem
from tests.system.e2e import real_programs
from tests.system.e2e.host_clusters import HostCluster
from tools import programs

STEPS = guide_reader.steps(markdown.blocks(markdown.page("docs/guides/deploy.md")))
RUN = [step for step in STEPS if not step.commands.not_run]
CONTEXT, NAMESPACE = "my-cluster", "clusterregistry"
_LEFT_IN_THE_HOST = ("clusterrolebindings/jane-reads-clusters", "clusterroles/cluster-reader")
"""Objects that the guide creates and does not delete: other tests use the same host cluster."""

_VARYING = (
    (r"127\.0\.\d+\.\d+", "192.0.2.10"),  # of a load balancer
    (r"(?<=: )v1\.\d+\.\d+(?= \()", "v1.36.0"),  # of the host cluster
    (r"\bmy-registry-[0-9a-f]{6}\b", "my-registry-5d8f7c9b64-x2v4k"),  # of pods
)


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_guide_does_what_it_shows(host: HostCluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not networks.may_balance():
        pytest.skip("the load balancer of the guide takes the right to listen on port 443")
    home = tmp_path_factory.mktemp("home")
    (home / "deploy").symlink_to(markdown.ROOT / "deploy")
    with ExitStack() as stack:
        for path in _LEFT_IN_THE_HOST:
            stack.callback(host.admin.delete, f"/apis/rbac.authorization.k8s.io/v1/{path}")
        stack.enter_context(Kubelet(host, tmp_path_factory.mktemp("node"), NAMESPACE))
        reader = stack.enter_context(
            guide_reader.reader(
                home,
                Surroundings(
                    kubectl=real_programs.kubectl(real_programs.KUBECTLS[-1]),
                    stand_ins={"https://my-cluster.example.com:6443": f"https://127.0.0.1:{host.port}"},
                    also={"helm": f'#!/bin/sh\nexec {_helm()} "$@"\n'},
                ),
            )
        )
        _kubeconfig(host, home)
        outcomes = [(step, reader.follow(step.commands)) for step in RUN]
    found = [problem(step, Outcome(_as_shown(done.printed), done.failures)) for step, done in outcomes]
    assert not any(found), "\n".join(found)


def _helm() -> Path:
    return programs.fetch(programs.find(real_programs.HELM_PROGRAM))


def _kubeconfig(host: HostCluster, home: Path) -> None:
    """That of a reader who has a cluster; its context has the name that the page uses."""
    (home / ".kube").mkdir()
    file = host.kubeconfig(home / ".kube" / "config")
    document = json.loads(file.read_text())
    document["current-context"] = document["contexts"][0]["name"] = CONTEXT
    file.write_text(json.dumps(document))
    file.chmod(0o600)  # as kubectl makes it


def _as_shown(printed: str) -> str:
    for varying, shown in _VARYING:
        printed = re.sub(varying, shown, printed)
    return printed


def test_what_is_not_run_is_known_with_its_reason() -> None:
    not_run = {step.commands.body.strip(): step.commands.not_run for step in STEPS if step.commands.not_run}
    assert {" ".join(commands.split()[:4]): reason for commands, reason in not_run.items()} == {
        "docker build --file deploy/Dockerfile": "takes a container builder and an image registry",
        "crinit standalone init large-registry": "takes nodes that run etcd; the tests start its members from the same "
        "manifests",
    }
