"""Exporting clusters from a registry over TLS, and importing them again."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import clusterregistry
from clusterregistry.cli import exit_status
from clusterregistry.registry.main import main
from tests.apiserver.server.programs import Program
from tests.commands.cluster_objects import fleets
from tests.commands.desks import Desk
from tests.commands.test_flat_file import cluster
from tests.commands.test_import import kubectl
from tests.registry.agents.tokens import CLUSTERS


def exported(desk: Desk, *flags: str) -> str:
    outcome = desk.run("export", *flags)
    assert outcome.status == exit_status.OK, outcome.err
    return outcome.out


def body(desk: Desk) -> str:
    return exported(desk, "--header=false")


def saved(desk: Desk, text: str, name: str = "clusters.yaml") -> Path:
    path = desk.directory / name
    path.write_bytes(text.encode())
    return path


def create(desk: Desk, *clusters: dict[str, Any]) -> None:
    for each in clusters:
        desk.admin.post(CLUSTERS, each).expect(201)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleets())
def test_export_import_export_gives_the_same_bytes(desk: Desk, fleet: list[dict[str, Any]]) -> None:
    desk.delete_clusters()
    create(desk, *fleet)
    first = body(desk)
    file = saved(desk, exported(desk))
    unchanged = desk.run("import", str(file), "-o", "json", "--force-conflicts")
    assert set(unchanged.actions().values()) <= {"unchanged"}, unchanged.out
    desk.delete_clusters()
    outcome = desk.run("import", str(file), "-o", "json")
    assert outcome.status == exit_status.OK, outcome.out + outcome.err
    assert set(outcome.actions().values()) <= {"created"}
    assert body(desk) == first


def test_kubectl_reads_the_file(desk: Desk) -> None:
    create(desk, cluster("a", spec={"cloudProvider": {"name": "x"}}), cluster("b"))
    first, file = body(desk), saved(desk, exported(desk))
    desk.delete_clusters()
    assert kubectl(desk, "apply", "-f", str(file)).count("created") == 2
    assert body(desk) == first


def test_the_header_tells_the_revision_and_the_selector(desk: Desk) -> None:
    create(desk, cluster("a", metadata={"name": "a", "labels": {"env": "prod"}}), cluster("b"))
    revision = desk.admin.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
    text = exported(desk, "-l", "env=prod")
    assert f"# Resource version: {revision}\n" in text
    assert "# Selector: env=prod\n# Clusters: 1\n" in text
    assert "name: b" not in text


def test_an_empty_registry_and_an_empty_file(desk: Desk) -> None:
    text = exported(desk)
    assert "# Clusters: 0\n" in text
    assert desk.run("import", str(saved(desk, text))).status == exit_status.OK


def test_a_file_is_imported_as_a_whole_or_not_at_all(desk: Desk) -> None:
    invalid = cluster("b", spec={"kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": "no address"}]}})
    create(desk, cluster("c"))
    from_outside = saved(desk, "".join(_document(each) for each in (cluster("a"), invalid)))
    outcome = desk.run("import", str(from_outside), "-o", "json")
    assert outcome.status == exit_status.FOUND
    assert outcome.actions() == {"a": "created", "b": "refused"}
    assert '"written": false' in outcome.out
    assert desk.names() == ["c"]


def test_values_of_wrong_types_are_refused_by_the_registry(desk: Desk) -> None:
    wrong: list[dict[str, Any]] = [
        {"spec": {"kubernetesApiEndpoints": {"serverEndpoints": 7}}},
        {"spec": {"kubernetesApiEndpoints": [7], "authInfo": 7, "clusterID": [1], "location": "x"}},
        {"metadata": {"labels": {"x": 7, "y": [1]}}},
        {"metadata": {"annotations": {"x": {}}}},
    ]
    for number, each in enumerate(wrong):
        whole = cluster(f"c-{number}") | each
        whole["metadata"] = {"name": f"c-{number}", **each.get("metadata", {})}
        alpha = {**whole, "apiVersion": "clusterregistry.k8s.io/v1alpha1"}
        for document in (whole, alpha):
            outcome = desk.run("import", str(saved(desk, _document(document))), "-o", "json")
            assert (outcome.status, outcome.actions()) == (exit_status.FOUND, {f"c-{number}": "refused"}), outcome.err
    assert desk.names() == []


def test_a_truncated_file_is_refused(desk: Desk) -> None:
    create(desk, cluster("a"), cluster("b"))
    text = exported(desk)
    desk.delete_clusters()
    outcome = desk.run("import", str(saved(desk, text[: text.rindex("---\n")])))
    assert outcome.status == exit_status.STARTUP
    assert "do not match the digest" in outcome.err
    assert desk.names() == []


def test_a_file_of_the_first_release_is_read_and_written_as_ever(desk: Desk) -> None:
    file = Path(__file__).with_name("first-release.yaml")
    assert desk.run("import", str(file), "-o", "json").actions() == {"bergen": "created", "oslo": "created"}
    documents = file.read_text().partition("---\n")[2]
    assert body(desk) == f"---\n{documents}"


def test_a_registry_that_serves_v1alpha1_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--runtime-config=clusterregistry.k8s.io/v1beta1=false,clusterregistry.k8s.io/v1alpha1/clustersets=false"
    file = Path(__file__).with_name("first-release.yaml")
    with Program(tmp_path / "server", flags) as program:
        environ = {"KUBECONFIG": str(program.data / "admin.kubeconfig"), "HOME": str(tmp_path)}
        assert main(["import", str(file)], environ) == exit_status.OK
        assert main(["import", str(file), "-o", "json"], environ) == exit_status.OK
        assert capsys.readouterr().out.count('"unchanged"') == 2
        assert main(["export", "--header=false"], environ) == exit_status.OK
    assert capsys.readouterr().out == f"---\n{file.read_text().partition('---' + chr(10))[2]}"


def test_standard_input_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path(__file__).with_name("first-release.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert desk.run("import", "-").status == exit_status.OK
    assert desk.names() == ["bergen", "oslo"]


def test_a_full_disk_is_a_failure(desk: Desk) -> None:
    command = [sys.executable, "-m", "clusterregistry", "export"]
    environ = {**os.environ, **desk.environ, "PYTHONPATH": str(Path(clusterregistry.__file__).parent.parent)}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, env=environ, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == exit_status.STARTUP, done.stderr
    assert b"cannot be written" in done.stderr


def test_what_the_file_does_not_have_stays(desk: Desk) -> None:
    create(desk, cluster("a"))
    file = saved(desk, exported(desk))
    create(desk, cluster("b"))
    desk.admin.patch(f"{CLUSTERS}/a", {"metadata": {"labels": {"owner": "jane"}}}).expect(200)
    assert desk.run("import", str(file)).status == exit_status.OK
    assert desk.names() == ["a", "b"]
    assert desk.cluster("a")["metadata"]["labels"] == {"owner": "jane"}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("import", "none.yaml"), exit_status.STARTUP, "none.yaml cannot be read"),
        (("import", "a.yaml", "--label=a=b"), exit_status.USAGE, "--label: cannot be combined with a FILE"),
        (("import", "a.yaml", "b.yaml"), exit_status.USAGE, "b.yaml"),
        (("export", "-l", "a=="), exit_status.OK, "0 clusters"),
        (("export", "-l", "a in"), exit_status.USAGE, "--selector"),
        (("export", "--kubeconfig=none"), exit_status.STARTUP, "there is no file none"),
    ],
)
def test_wrong_input(desk: Desk, words: tuple[str, ...], status: int, said: str) -> None:
    outcome = desk.run(*words)
    assert (outcome.status, said in outcome.err) == (status, True), outcome.err


def _document(whole: dict[str, Any]) -> str:

    return f"---\n{json.dumps(whole)}\n"
