"""The controller and the access file: mistakes in it are told, and credentials of clusters that are gone forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from clusterregistry.controllers.access.rules import AccessParts, AccessRules
from clusterregistry.controllers.controller import Controller, ControllerSettings
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.controllers.fleets import Fleet, controller_config, running_fleet, shown, until, with_members

METRIC = "clusterregistry_controller_access_config_problem"


class NotedAccess(AccessRules):
    """The rules of a file, and what was forgotten."""

    def __init__(self, path: Path) -> None:
        self.forgotten: list[str] = []
        super().__init__(path, AccessParts())

    def forget(self, name: str) -> None:
        self.forgotten.append(name)
        super().forget(name)


@contextlib.asynccontextmanager
async def running(fleet: Fleet, access: AccessRules) -> AsyncIterator[Controller]:
    settings = ControllerSettings(identity="tests", election=None, observer=ObserverSettings(interval=1.0))
    controller = Controller(controller_config(fleet.program), access, settings)
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.wait([task])
        await access.close()


def text(controller: Controller, path: str) -> str:
    return controller.paths()[path]().body.decode()


async def is_ready(fleet: Fleet, name: str) -> bool:
    return shown(await fleet.status(name)) == ("Ready", "Ready")


@with_members
async def test_mistakes_in_the_access_file_are_told_until_they_are_corrected(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, members=2) as fleet:
        file, member = tmp_path / "members" / "access.yaml", fleet.simulator[0]
        async with running(fleet, NotedAccess(file)) as controller:
            await until(lambda: is_ready(fleet, member.name))
            assert "[!]" not in text(controller, "/readyz")
            assert f"{METRIC} 0.0" in text(controller, "/metrics")
            former = file.read_text()
            file.write_text(former.replace("match:", "pasted-s3cr3t:"))
            await until(lambda: "[!]access" in text(controller, "/readyz"))
            said = text(controller, "/readyz")
            assert f"[!]access: {file} has " in said
            assert "the former rules are in use\n" in said
            assert "readyz check passed" in said
            assert "s3cr3t" not in said
            assert f"{METRIC} 1.0" in text(controller, "/metrics")
            asked = member.readyz_count
            await until(lambda: member.readyz_count > asked)
            file.write_text(former)
            await until(lambda: "[!]" not in text(controller, "/readyz"))
            assert f"{METRIC} 0.0" in text(controller, "/metrics")


@with_members
async def test_the_credential_of_a_deleted_cluster_is_forgotten(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, members=2) as fleet:
        access, (first, second) = NotedAccess(tmp_path / "members" / "access.yaml"), fleet.simulator.members
        async with running(fleet, access):
            for member in (first, second):
                await until(lambda member=member: is_ready(fleet, member.name))  # type: ignore[misc]
            access.forgotten.clear()  # new bindings forget former ones
            await fleet.clusters.delete(first.name)
            await until(lambda: access.forgotten)
            assert access.forgotten == [first.name]
