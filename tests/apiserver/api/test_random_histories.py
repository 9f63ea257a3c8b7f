"""Random sequences of writes against a model of a few lines: final states, versions, and the events of a watcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.api.clients import Answer, Event
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, HOLD, cluster, path_of

NAMES = st.sampled_from(["a", "b", "c"])
PROVIDERS = st.sampled_from(["aws", "gce", None])
LABELS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), max_size=2)
FINALIZERS = st.sampled_from([[], [], [HOLD]])


@dataclass(frozen=True)
class Step:
    """One write. ``stale`` sends a version that is never current; ``dry`` only tries."""

    verb: str
    name: str
    provider: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    finalizers: list[str] = field(default_factory=list)
    stale: bool = False
    dry: bool = False


STEPS = st.builds(
    Step,
    verb=st.sampled_from(
        ["create", "put", "put", "label", "status", "delete", "delete", "release", "deletecollection"]
    ),
    name=NAMES,
    provider=PROVIDERS,
    labels=LABELS,
    finalizers=FINALIZERS,
    stale=st.sampled_from([False] * 7 + [True]),
    dry=st.sampled_from([False] * 7 + [True]),
)


class Model:
    """What the registry should hold, each object in a few words."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def apply(self, step: Step) -> int:
        """Does the write here and returns the status that the registry must answer."""
        before = {name: dict(obj) for name, obj in self.objects.items()}
        status: int = getattr(self, f"_{step.verb}")(step)
        if step.dry or status >= 400:
            self.objects = before
        return status

    def _create(self, step: Step) -> int:
        if step.stale:
            return 400
        if step.name in self.objects:
            return 409
        self.objects[step.name] = {
            "provider": step.provider,
            "labels": step.labels,
            "finalizers": step.finalizers,
            "nodes": None,
            "generation": 1,
            "deleted": False,
        }
        return 201

    def _put(self, step: Step) -> int:
        obj = self.objects.get(step.name)
        if step.stale:
            return 409
        if obj is None:
            return self._create(step)
        if obj["deleted"] and set(step.finalizers) - set(obj["finalizers"]):
            return 422
        if obj["provider"] != step.provider:
            obj["generation"] += 1
        obj |= {"provider": step.provider, "labels": step.labels, "finalizers": step.finalizers}
        self._drop_released(step.name)
        return 200

    def _label(self, step: Step) -> int:
        if step.name not in self.objects:
            return 404
        if step.stale:
            return 409
        self.objects[step.name]["labels"] = {**self.objects[step.name]["labels"], **step.labels}
        return 200

    def _status(self, step: Step) -> int:
        if step.name not in self.objects:
            return 404
        if step.stale:
            return 409
        self.objects[step.name]["nodes"] = len(step.labels)
        return 200

    def _release(self, step: Step) -> int:
        if step.name not in self.objects:
            return 404
        if step.stale:
            return 409
        self.objects[step.name]["finalizers"] = []
        self._drop_released(step.name)
        return 200

    def _delete(self, step: Step) -> int:
        if step.name not in self.objects:
            return 404
        if step.stale:
            return 409
        self._remove(step.name)
        return 200

    def _deletecollection(self, _: Step) -> int:
        for name in list(self.objects):
            self._remove(name)
        return 200

    def _remove(self, name: str) -> None:
        obj = self.objects[name]
        if not obj["deleted"] and obj["finalizers"]:
            obj["generation"] += 1
        obj["deleted"] = True
        self._drop_released(name)

    def _drop_released(self, name: str) -> None:
        if self.objects[name]["deleted"] and not self.objects[name]["finalizers"]:
            del self.objects[name]


def sent(client: InProcessClient, step: Step) -> Answer:
    stale = {"resourceVersion": "1"} if step.stale else {}
    query = {"dryRun": "All"} if step.dry else {}
    path = path_of(step.name)
    whole = cluster(step.name, step.provider, labels=step.labels, finalizers=step.finalizers, **stale)
    match step.verb:
        case "create":
            return client.post(CLUSTERS, whole, **query)
        case "put":
            return client.put(path, whole, **query)
        case "label":
            return client.patch(path, {"metadata": {"labels": step.labels, **stale}}, **query)
        case "status":
            patch = {"metadata": stale, "status": {"nodes": {"total": len(step.labels)}}}
            return client.patch(path + "/status", patch, **query)
        case "release":
            return client.patch(path, {"metadata": {"finalizers": None, **stale}}, **query)
        case "delete":
            options: dict[str, Any] = {"dryRun": ["All"]} if step.dry else {}
            return client.delete(path, {**options, "preconditions": stale})
    return client.delete(CLUSTERS, **query)


def shown(obj: dict[str, Any]) -> dict[str, Any]:
    """An object in the model's terms."""
    metadata = obj["metadata"]
    return {
        "provider": obj.get("spec", {}).get("cloudProvider", {}).get("name"),
        "labels": metadata.get("labels", {}),
        "finalizers": metadata.get("finalizers", []),
        "nodes": obj.get("status", {}).get("nodes", {}).get("total"),
        "generation": metadata["generation"],
        "deleted": "deletionTimestamp" in metadata,
    }


def rebuilt(events: list[Event]) -> dict[str, dict[str, Any]]:
    """The registry as a client that only watched knows it."""
    known: dict[str, dict[str, Any]] = {}
    for event in events:
        name = event["object"]["metadata"]["name"]
        assert (event["type"] == "ADDED") == (name not in known), event
        if event["type"] == "DELETED":
            del known[name]
        else:
            known[name] = event["object"]
    return known


@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=14))
def test_every_history_ends_where_the_model_says(local: InProcessClient, steps: list[Step]) -> None:
    model = Model()
    start = int(local.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"])
    with (
        local.watch(CLUSTERS, resourceVersion=start) as watch,
        local.watch(CLUSTERS, resourceVersion=start, labelSelector="x=1") as selected,
    ):
        for step in steps:
            answer = sent(local, step)
            assert answer.status == model.apply(step), (step, answer.body)
            listed = local.get(CLUSTERS).expect(200)
            assert {obj["metadata"]["name"]: shown(obj) for obj in listed["items"]} == model.objects
        end = local.get(CLUSTERS).expect(200)
        sentinel = local.post(CLUSTERS, cluster("sentinel", labels={"x": "1"})).expect(201)
        events, chosen = until(watch, sentinel), until(selected, sentinel)

    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == list(range(start + 1, start + 1 + len(events))), "every version is an event of ours"
    assert int(end["metadata"]["resourceVersion"]) == start + len(events)
    assert rebuilt(events) == {obj["metadata"]["name"]: obj for obj in end["items"]}
    matching = [obj for obj in end["items"] if obj["metadata"].get("labels", {}).get("x") == "1"]
    assert rebuilt(chosen) == {obj["metadata"]["name"]: obj for obj in matching}
    clear(local)


def until(watch: Any, sentinel: dict[str, Any]) -> list[Event]:
    events = []
    while (event := watch.next())["object"] != sentinel:
        events.append(event)
    return events


def clear(client: InProcessClient) -> None:
    for item in client.get(CLUSTERS).expect(200)["items"]:
        client.patch(path_of(item["metadata"]["name"]), {"metadata": {"finalizers": None}}).expect(200)
    client.delete(CLUSTERS).expect(200)
