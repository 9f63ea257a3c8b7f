"""Plans of imports where the registry refuses, or ends in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from clusterregistry.api.clusterregistry import v1beta1
from clusterregistry.cli import exit_status
from clusterregistry.client import kubeconfig as kubeconfigs
from clusterregistry.client.rest import Client
from clusterregistry.client.rest_config import RestConfig, from_context
from clusterregistry.commands import contexts
from clusterregistry.commands.import_plan import Action, Entry, Importer, changed_fields
from tests.apiserver.server.programs import Program
from tests.commands.desks import Desk, context, kubeconfig

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def test_without_the_right_to_list_nothing_begins(desk: Desk) -> None:
    outcome = desk.import_kubeconfig(fleet(desk.directory), flags=(f"--kubeconfig={as_user(desk, 'nobody')}",))
    assert outcome.status == exit_status.STARTUP
    assert "cannot be used" in outcome.err
    assert "What to do:" in outcome.err


def test_without_the_right_to_write_every_cluster_is_refused(desk: Desk) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}
    desk.admin.post(BINDINGS, {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}).expect(201)
    try:
        outcome = desk.import_kubeconfig(fleet(desk.directory), flags=(f"--kubeconfig={as_user(desk, 'reader')}",))
    finally:
        desk.admin.delete(f"{BINDINGS}/reader")
    assert outcome.status == exit_status.FOUND
    assert set(outcome.actions().values()) == {"refused"}
    assert "the right to patch and create clusters" in outcome.items()["a"]["remedy"]


def test_the_registry_itself_is_noted(desk: Desk) -> None:
    file = desk.write("config", kubeconfig(context("self", f"https://127.0.0.1:{desk.program.port}")))
    notes = desk.import_kubeconfig(file, flags=("--dry-run",)).items()["self"]["notes"]
    assert "the server is that of the registry itself" in notes


def test_a_registry_that_ends_in_the_middle(tmp_path: Path) -> None:
    entries = contexts.find_clusters([fleet(tmp_path)], contexts.Choice()).entries
    with Program(tmp_path / "server") as program:
        config = from_context(
            kubeconfigs.load_file(program.data / "admin.kubeconfig").context(), user_agent="test", read_files=True
        )
        asyncio.run(_plan_and_write(entries, config, program))
    assert {each.action for each in entries} == {Action.FAILED}
    assert all("stopped answering" in each.reason and "import again" in each.remedy for each in entries)


async def _plan_and_write(entries: Sequence[Entry], config: RestConfig, program: Program) -> None:
    async with Client(config) as client:
        await (await Importer.connect(client)).plan(entries, progress=_quiet)
    assert {each.action for each in entries} == {Action.CREATED}
    program.end()
    async with Client(replace(config, timeout=2.0)) as client:  # for attempts that all fail
        await Importer(client, v1beta1.VERSION).write(entries, progress=_quiet)


def _quiet(done: int, total: int) -> None:
    """No progress."""


def test_fields_that_change_have_paths() -> None:
    before = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": {"y": [1], "z": 1}}}
    after = {"metadata": {"labels": {"a": "1", "b": "3"}, "annotations": {"k": "v"}}, "spec": {"x": {"y": [2], "z": 1}}}
    assert list(changed_fields(before, after)) == ["metadata.labels[b]", "metadata.annotations[k]", "spec.x.y"]
    assert list(changed_fields(before, before)) == []


def fleet(directory: Path) -> Path:
    path = directory / "fleet"
    path.write_text(yaml.safe_dump(kubeconfig(context("a"), context("b"), context("c"))))
    return path


def as_user(desk: Desk, name: str) -> Path:
    """The administrator's kubeconfig, impersonating a user."""
    document: dict[str, Any] = yaml.safe_load((desk.program.data / "admin.kubeconfig").read_text())
    document["users"][0]["user"]["as"] = name
    path = desk.write("other.kubeconfig", document)
    path.chmod(0o600)
    return path
