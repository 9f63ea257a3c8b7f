"""Namespaces that are deleted, with the real kind and sample kinds inside, over a real storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.namespace_controller import NamespaceController
from clusterregistry.apiserver.controllers.namespace_lifecycle import NamespaceLifecycle
from clusterregistry.apiserver.registry.core.namespace import PERMANENT, namespace_resource
from clusterregistry.apiserver.storage.object_bytes import decoded
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.controllers.sample_stores import CRATE, FISH, SHIP, Fleet, fleet_over, writer_of

HOLD = "example.com/hold"


class Harbour(Fleet):
    """A fleet with namespaces."""

    def controller(self, *, permanent: tuple[str, ...] = ()) -> NamespaceController:
        inside = [store for store in self.stores.values() if store.resource.namespaced]
        return NamespaceController(self.stores["Namespace"], inside, writer_of=writer_of, permanent=permanent)

    def admit(self) -> None:
        """Has the namespaced kinds check their namespaces."""
        lifecycle = NamespaceLifecycle(self.stores["Namespace"])
        for store in self.stores.values():
            if store.resource.namespaced:
                store.check_namespace = lifecycle.check_for(store.resource)

    async def namespace(self, name: str) -> dict[str, Any]:
        return decoded(await self.stores["Namespace"].get(name))

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        found = (await self.namespace(name))["status"].get("conditions", ())
        return {each["type"]: (each["status"], each["message"]) for each in found}


@pytest.fixture
async def harbour(tmp_path: Path) -> AsyncIterator[Harbour]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with fleet_over(storage, [namespace_resource(), SHIP, CRATE, FISH]) as fleet:
        harbour = Harbour(storage, list(fleet.stores.values()))
        harbour.admit()
        yield harbour
    await storage.close()


@pytest.fixture
async def controller(harbour: Harbour) -> AsyncIterator[NamespaceController]:
    controller = harbour.controller()
    await settle(controller)
    yield controller
    controller.close()


async def settle(controller: NamespaceController, *, steps: int = 1000) -> None:
    while not controller.is_idle and steps:
        await controller.step()
        steps -= 1


async def refusal(work: Any) -> APIError:
    with pytest.raises(APIError) as raised:
        await work
    return raised.value


async def test_objects_are_created_only_in_a_namespace_that_exists(harbour: Harbour) -> None:
    error = await refusal(harbour.create("Crate/nowhere/a"))
    assert (error.code, str(error)) == (404, 'namespaces "nowhere" not found')
    assert (await refusal(harbour.create("Crate/Bad_Name/Bad_Name"))).code == 404
    await harbour.create("Namespace/here")
    await harbour.create("Crate/here/a")


async def test_no_object_is_created_in_a_namespace_that_is_being_deleted(harbour: Harbour) -> None:
    await harbour.create("Namespace/here")
    await harbour.create("Crate/here/a")
    await harbour.delete("Namespace/here")
    error = await refusal(harbour.create("Crate/here/b"))
    assert error.code == 403
    assert str(error) == (
        'crates.wardle.example.com "b" is forbidden: unable to create new content in namespace here because it is '
        "being terminated"
    )
    assert error.status["details"] == {
        "name": "b",
        "group": "wardle.example.com",
        "kind": "crates",
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace here is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }
    await harbour.change("Crate/here/a", labels={"still": "changed"})


async def test_a_generated_name_is_shown_without_its_random_part(harbour: Harbour) -> None:
    await harbour.create("Namespace/here")
    await harbour.delete("Namespace/here")
    error = await refusal(harbour.create("Crate/here/", generateName="b-"))
    assert error.status["details"]["name"] == "b-"


async def test_a_deleted_namespace_is_emptied_and_goes(harbour: Harbour, controller: NamespaceController) -> None:
    await harbour.create("Namespace/here")
    await harbour.create("Namespace/other")
    for at in range(50):
        await harbour.create(f"Crate/here/{at}")
    await harbour.create("Fish/here/a")
    await harbour.create("Fish/other/a")
    await harbour.create("Ship/here")
    await harbour.delete("Namespace/here")
    await settle(controller)
    assert await harbour.names() == {"Namespace/other", "Fish/other/a", "Ship/here"}
    await harbour.create("Namespace/here")
    await settle(controller)
    await harbour.create("Crate/here/new")
    await settle(controller)
    assert await harbour.exists("Crate/here/new")


async def test_an_empty_namespace_goes_without_further_writes(
    harbour: Harbour, controller: NamespaceController
) -> None:
    await harbour.create("Namespace/here")
    await harbour.delete("Namespace/here")
    revision = harbour.storage.revision
    await settle(controller)
    assert await harbour.names() == set()
    assert harbour.storage.revision == revision + 1


async def test_objects_with_finalizers_hold_their_namespace(harbour: Harbour, controller: NamespaceController) -> None:
    await harbour.create("Namespace/here")
    await harbour.create("Crate/here/held", finalizers=[HOLD])
    await harbour.create("Crate/here/waits", finalizers=["foregroundDeletion"])
    await harbour.create("Crate/here/free")
    await harbour.delete("Namespace/here")
    await settle(controller)
    assert await harbour.names() == {"Namespace/here", "Crate/here/held"}
    assert await harbour.conditions("here") == {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "Some resources are remaining: crates.wardle.example.com has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    }
    await harbour.change("Crate/here/held", finalizers=None)
    await settle(controller)
    assert await harbour.names() == set()


async def test_finalizers_of_the_namespace_hold_it_when_it_is_empty(
    harbour: Harbour, controller: NamespaceController
) -> None:
    await harbour.create("Namespace/here", finalizers=[HOLD])
    await harbour.create("Crate/here/a")
    await harbour.delete("Namespace/here")
    await settle(controller)
    assert await harbour.names() == {"Namespace/here"}
    namespace = await harbour.namespace("here")
    assert namespace["spec"] == {}
    assert namespace["status"]["phase"] == "Terminating"
    assert {status for status, _ in (await harbour.conditions("here")).values()} == {"False"}
    await harbour.change("Namespace/here", finalizers=None)
    await settle(controller)
    assert await harbour.names() == set()


async def test_a_delete_that_fails_is_shown_and_tried_again(
    harbour: Harbour, controller: NamespaceController, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harbour.create("Namespace/here")
    await harbour.create("Crate/here/a")
    await harbour.delete("Namespace/here")

    async def fail(*_: Any) -> Any:
        raise errors.failure(403, "Forbidden", "this crate is protected")

    with monkeypatch.context() as failing:
        failing.setattr(harbour.stores["Crate"], "delete", fail)
        await settle(controller, steps=1)
    assert (await harbour.conditions("here"))["NamespaceDeletionContentFailure"] == (
        "True",
        "Failed to delete all resource types, 1 remaining: this crate is protected",
    )
    await settle(controller)
    assert await harbour.names() == set()


async def test_a_new_controller_continues_where_another_one_ended(harbour: Harbour) -> None:
    await harbour.create("Namespace/here")
    await harbour.create("Crate/here/a", finalizers=[HOLD])
    await harbour.create("Crate/here/b")
    await harbour.delete("Namespace/here")
    for _ in range(3):
        controller = harbour.controller()
        await settle(controller, steps=2)
        controller.close()
    await harbour.change("Crate/here/a", finalizers=None)
    controller = harbour.controller()
    await settle(controller)
    controller.close()
    assert await harbour.names() == set()


async def test_an_object_that_slipped_in_is_removed(harbour: Harbour, controller: NamespaceController) -> None:
    check = harbour.stores["Crate"].check_namespace
    harbour.stores["Crate"].check_namespace = None  # admitted before the deletion
    await harbour.create("Crate/gone/a")
    await settle(controller)
    assert await harbour.names() == set()
    await harbour.create("Namespace/held", finalizers=[HOLD])
    await harbour.delete("Namespace/held")
    await settle(controller)
    await harbour.create("Crate/held/a")
    await settle(controller)
    assert await harbour.names() == {"Namespace/held"}
    harbour.stores["Crate"].check_namespace = check


async def test_a_start_removes_objects_without_a_namespace(harbour: Harbour) -> None:
    harbour.stores["Crate"].check_namespace = None
    for name in ("a/x", "a/y", "a-b/x", "b/x", "c/x"):
        await harbour.create(f"Crate/{name}")
    await harbour.create("Namespace/b")
    controller = harbour.controller()
    await settle(controller)
    controller.close()
    assert await harbour.names() == {"Namespace/b", "Crate/b/x"}


async def test_creates_that_race_with_the_deletion_leave_nothing(
    harbour: Harbour, controller: NamespaceController
) -> None:
    async def create_on(worker: int) -> int:
        made = 0
        while True:
            with suppress(APIError):
                await harbour.create(f"Crate/here/{worker}-{made}")
                made += 1
                continue
            return made

    async def work() -> None:
        while True:
            await controller.step()

    working = asyncio.create_task(work())
    for _ in range(10):
        await harbour.create("Namespace/here")
        creating = [asyncio.create_task(create_on(worker)) for worker in range(8)]
        await asyncio.sleep(0.01)
        await harbour.delete("Namespace/here")
        assert sum(await asyncio.gather(*creating))
        async with asyncio.timeout(10):
            while await harbour.names():  # noqa: ASYNC110 - until the controller has done its work
                await asyncio.sleep(0.005)
    working.cancel()


async def test_some_namespaces_always_exist(harbour: Harbour) -> None:
    controller = harbour.controller(permanent=PERMANENT)
    await controller.ensure_permanent()
    await settle(controller)
    wanted = {f"Namespace/{name}" for name in PERMANENT}
    assert await harbour.names() == wanted
    revision = harbour.storage.revision
    await controller.ensure_permanent()
    assert harbour.storage.revision == revision
    await harbour.create("Crate/default/a")
    kept = await harbour.stores["Namespace"].get("default")
    await harbour.storage.delete(kept.key, expected=kept.revision)  # as storage surgery does
    await settle(controller)
    assert await harbour.names() == {*wanted, "Crate/default/a"}
    controller.close()
