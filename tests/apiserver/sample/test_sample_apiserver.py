"""A product made of the library alone, served over TLS by a process of its own and driven by real kubectl."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.sample import sample_apiserver
from tests.apiserver.server.programs import Program
from tests.system.e2e import real_programs

SECONDS = 60
FLUNDER = {"apiVersion": "wardle.example.com/v1", "kind": "Flunder", "metadata": {"name": "ida"}}
FISCHER = {"apiVersion": "wardle.example.com/v1", "kind": "Fischer", "metadata": {"name": "bert"}}


class Sample(Program):
    module = "tests.apiserver.sample.sample_apiserver"

    def kubectl(self, *arguments: str, document: Any = None, token: str = "", fails: bool = False) -> str:
        """What kubectl prints as the administrator, or as the user of a token; on standard error where it fails."""
        done = subprocess.run(
            self.command(*arguments, token=token),
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environ,
            input=json.dumps(document) if document is not None else "",
        )
        assert (done.returncode != 0) == fails, done
        return done.stderr if fails else done.stdout

    def running(self, *arguments: str) -> subprocess.Popen[str]:
        """A kubectl that goes on."""
        command = self.command(*arguments)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environ)

    def command(self, *arguments: str, token: str = "") -> list[str]:
        authority = f"--certificate-authority={self.data / 'ca.crt'}"
        server = f"--server=https://127.0.0.1:{self.port}"
        access = [server, authority, f"--token={token}"] if token else [f"--kubeconfig={self.data}/admin.kubeconfig"]
        return [str(real_programs.kubectl("1.36")), *access, f"--cache-dir={self.directory}/cache", *arguments]

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.directory), "PATH": os.environ["PATH"], "KUBECONFIG": "/dev/null"}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    with Sample(tmp_path_factory.mktemp("sample")) as program:
        yield program
        assert program.stop() == 0


@pytest.fixture(autouse=True)
def _no_objects(sample: Sample) -> Iterator[None]:
    yield
    sample.kubectl("delete", "flunders,fischers", "--all", "--all-namespaces")


def test_the_sample_imports_the_library_alone() -> None:
    source = Path(sample_apiserver.__file__).read_text()
    imported = [node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    ours = [module for module in imported if module.startswith(("clusterregistry", "tests"))]
    assert ours
    assert all(module.startswith(("clusterregistry.apimachinery.", "clusterregistry.apiserver.")) for module in ours)
    assert len(source.splitlines()) < 150


def test_the_program_names_itself(sample: Sample) -> None:
    assert f"Try:   kubectl --kubeconfig {sample.data}/admin.kubeconfig get flunders\n" in sample.logged()
    version = json.loads(sample.kubectl("get", "--raw", "/version"))
    assert version["gitVersion"] == "v1.36.0+sample-apiserver.1.2.3"
    assert json.loads(sample.kubectl("get", "--raw", "/openapi/v2"))["info"] == {"title": "Sample", "version": "1.2.3"}
    assert "current-context: sample-apiserver" in (sample.data / "admin.kubeconfig").read_text()
    assert "sample_apiserver_storage_corrupt_objects" in sample.kubectl("get", "--raw", "/metrics")


def test_apply_defaults_and_prints_the_columns(sample: Sample) -> None:
    flunder = {**FLUNDER, "spec": {"habitat": "North Sea", "weight": 700}}
    assert sample.kubectl("apply", "--server-side", "-f-", document=flunder).endswith("serverside-applied\n")
    assert sample.kubectl("apply", "-f-", document={**FLUNDER, "metadata": {"name": "otto"}}).endswith("created\n")
    assert sample.kubectl("get", "fl", "ida", "-o", "jsonpath={.spec.size}") == "Small"
    head, ida, otto = sample.kubectl("get", "flunders", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "SIZE", "READY", "HABITAT", "AGE"]
    assert ida.split()[:4] == ["ida", "Small", "North", "Sea"]
    assert otto.split()[:2] == ["otto", "Small"]


def test_what_is_wrong_is_refused_by_schema_and_strategy(sample: Sample) -> None:
    message = sample.kubectl("apply", "-f-", document={**FLUNDER, "spec": {"size": "Huge"}}, fails=True)
    assert 'spec.size: Unsupported value: "Huge": supported values: "Small", "Large"' in message
    message = sample.kubectl("apply", "-f-", document={**FLUNDER, "spec": {"weight": 2000}}, fails=True)
    assert "spec.weight: Invalid value: 2000: a small fish weighs 1000 grams or less" in message


def test_the_status_is_a_subresource_that_wait_follows(sample: Sample) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    sample.kubectl("create", "-f-", document={**FLUNDER, "status": status})
    assert sample.kubectl("get", "flunder", "ida", "-o", "jsonpath={.status}") == ""
    with sample.running("wait", "--for=condition=Ready", "flunder/ida", f"--timeout={SECONDS}s") as waiting:
        patch = json.dumps({"status": status})
        sample.kubectl("patch", "flunder", "ida", "--subresource=status", "--type=merge", "-p", patch)
        assert waiting.communicate(timeout=SECONDS)[0] == "flunder.wardle.example.com/ida condition met\n"
    assert sample.kubectl("get", "flunder", "ida").splitlines()[1].split()[:3] == ["ida", "Small", "True"]


def test_managers_share_a_list_by_its_key(sample: Sample) -> None:
    for manager, name in (("one", "ida"), ("two", "otto")):
        applied = {**FISCHER, "spec": {"disallowed": [{"flunder": name}]}}
        sample.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f-", document=applied)
    assert sample.kubectl("get", "fischer", "bert", "-o", "jsonpath={.spec.disallowed[*].flunder}") == "ida otto"
    sample.kubectl("patch", "fischer", "bert", "--subresource=status", "--type=merge", "-p", "{}", fails=True)


def test_a_watch_prints_what_happens(sample: Sample) -> None:
    sample.kubectl("create", "-f-", document=FLUNDER)
    with sample.running("get", "flunders", "--watch", "--output-watch-events", "--no-headers") as watching:
        assert watching.stdout is not None
        lines = [watching.stdout.readline().split()]
        sample.kubectl("label", "flunder", "ida", "tank=1")
        sample.kubectl("delete", "flunder", "ida")
        lines += [watching.stdout.readline().split() for _ in range(2)]
        watching.kill()
    assert [line[:3] for line in lines] == [[what, "ida", "Small"] for what in ("ADDED", "MODIFIED", "DELETED")]


def test_both_versions_show_one_object(sample: Sample) -> None:
    old = {**FLUNDER, "apiVersion": "wardle.example.com/v1alpha1", "spec": {"grams": 300, "habitat": "Elbe"}}
    sample.kubectl("apply", "--server-side", "-f-", document=old)
    assert sample.kubectl("get", "flunder", "ida", "-o", "jsonpath={.spec.weight}") == "300"
    new = {**FLUNDER, "spec": {"weight": 400, "habitat": "Elbe"}}
    conflict = sample.kubectl("apply", "--server-side", "--field-manager=other", "-f-", document=new, fails=True)
    assert 'conflict with "kubectl": .spec.grams' in conflict
    sample.kubectl("apply", "--server-side", "-f-", document=new)
    previous = "flunders.v1alpha1.wardle.example.com"
    assert sample.kubectl("get", previous, "ida", "-o", "jsonpath={.spec.grams}{.spec.weight}") == "400"


def test_fish_of_one_name_live_in_several_namespaces(sample: Sample) -> None:
    for namespace, size in (("tank", "Small"), ("pond", "Large")):
        sample.kubectl("create", "namespace", namespace)
        sample.kubectl("create", "-n", namespace, "-f-", document={**FLUNDER, "spec": {"size": size}})
    listed = sample.kubectl("get", "flunders", "--all-namespaces", "--no-headers").splitlines()
    assert [line.split()[:3] for line in listed] == [["pond", "ida", "Large"], ["tank", "ida", "Small"]]
    large = sample.kubectl("get", "flunders", "-A", "--field-selector=spec.size=Large", "-o", "name")
    assert large == "flunder.wardle.example.com/ida\n"
    assert "not found" in sample.kubectl("create", "-n", "nowhere", "-f-", document=FLUNDER, fails=True)
    sample.kubectl("delete", "namespace", "tank", "pond")
    assert sample.kubectl("get", "flunders", "--all-namespaces", "-o", "name") == ""


def test_explain_and_discovery_describe_the_kinds(sample: Sample) -> None:
    text = sample.kubectl("explain", "flunder.spec.size")
    assert "Size of the fish." in text
    assert "ENUM:\n    Small\n    Large\n" in text
    names = sample.kubectl("api-resources", "--api-group=wardle.example.com", "-o", "name").split()
    assert names == ["fischers.wardle.example.com", "flunders.wardle.example.com"]


@pytest.mark.parametrize(
    ("role", "allowed", "refused"),
    [
        ("view", ["get flunders", "watch fischers", "get flunders --subresource=status"], ["create flunders"]),
        ("edit", ["create flunders", "delete fischers"], ["update flunders --subresource=status"]),
        ("admin", ["update flunders --subresource=status", "delete fischers"], ["create clusterroles"]),
    ],
)
def test_the_default_roles_cover_the_kinds(role: str, allowed: list[str], refused: list[str], sample: Sample) -> None:
    sample.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=nobody")
    try:
        for question in allowed:
            assert sample.kubectl("auth", "can-i", *question.split(), token="nobodytoken") == "yes\n"
        for question in refused:
            sample.kubectl("auth", "can-i", *question.split(), token="nobodytoken", fails=True)
    finally:
        sample.kubectl("delete", "clusterrolebinding", role)
