"""What a client with changing rights is sent, against what it should know."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry.broadcaster import ADDED, DELETED, MODIFIED, Change
from clusterregistry.apiserver.registry.filtered import VisibleSet
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import name_of, presented, to_stored

NAMES = "abcd"
ALL = st.none()
Step = tuple[str, object]


def options(labels: str = "") -> ListOptions:
    return ListOptions(labels=parse_label_selector(labels), fields=parse_field_selector(""))


def kv(name: str, revision: int, label: str = "1") -> KeyValue:
    return presented(
        KeyValue(f"/things/{name}", to_stored({"metadata": {"labels": {"x": label}, "uid": ""}}), revision)
    )


def shown(changes: list[Change]) -> list[tuple[str, str, int]]:
    return [(change.type, name_of(change.kv), change.kv.revision) for change in changes]


def created(name: str, revision: int) -> Event:
    return Event(f"/things/{name}", revision, kv(name, revision), None)


def test_only_what_is_visible_begins_and_changes() -> None:
    view = VisibleSet(options(), prefix="/things/")
    assert [name_of(each) for each in view.begin([kv("a", 1), kv("b", 2)], view=View(frozenset("ac")))] == ["a"]
    assert shown(list(view.changes([created("c", 3), created("d", 4)]))) == [(ADDED, "c", 3)]


def test_rights_that_are_gained_and_lost_are_events() -> None:
    view = VisibleSet(options(), prefix="/things/")
    existing = [kv("a", 1), kv("b", 5), kv("c", 3)]
    view.begin(existing, view=View(frozenset("a")))
    changes = list(view.change_rights([], view=View(frozenset("bc")), existing=existing, seen=6, since=7))
    assert shown(changes) == [(DELETED, "a", 6), (ADDED, "c", 3), (ADDED, "b", 5)]


def test_what_is_new_to_the_client_and_changes_is_added_once() -> None:
    view = VisibleSet(options(), prefix="/things/")
    view.begin([kv("a", 1)], view=View(frozenset()))
    newer = kv("a", 8)
    event = Event("/things/a", 8, newer, kv("a", 1))
    changes = list(view.change_rights([event], view=None, existing=[newer], seen=6, since=8))
    assert shown(changes) == [(ADDED, "a", 8)]


def test_all_that_a_change_of_rights_shows_comes_before_what_happened_since() -> None:
    """A client that is cut off after the change and resumes from there counts as knowing what existed then."""
    view = VisibleSet(options(), prefix="/things/")
    old = [kv("a", 1), kv("b", 2), kv("c", 3)]
    view.begin(old, view=View(frozenset("a")))
    cleaned, changed = kv("c", 7), [kv("a", 9), kv("b", 10)]
    events = [Event("/things/c", 7, cleaned, old[2])]
    events += [Event(now.key, now.revision, now, before) for now, before in zip(changed, old, strict=False)]
    events += [Event("/things/c", 11, None, cleaned)]
    changes = list(view.change_rights(events, view=None, existing=changed, seen=6, since=8))
    appearing = [(ADDED, "b", 2), (ADDED, "c", 7)]
    assert shown(changes) == [*appearing, (MODIFIED, "a", 9), (MODIFIED, "b", 10), (DELETED, "c", 11)]


def test_rights_and_selectors_both_count() -> None:
    view = VisibleSet(options("x=1"), prefix="/things/")
    existing = [kv("a", 1), kv("b", 2, label="0")]
    view.begin(existing, view=View(frozenset("ab")))
    relabelled = Event("/things/a", 3, kv("a", 3, label="0"), kv("a", 1))
    assert shown(list(view.changes([relabelled]))) == [(DELETED, "a", 3)]
    assert (
        list(
            view.change_rights(
                [], view=View(frozenset("b")), existing=[kv("a", 3, label="0"), existing[1]], seen=3, since=4
            )
        )
        == []
    )


@dataclass
class Client:
    """Applies the changes it receives, and fails for one that makes no sense."""

    knows: dict[str, KeyValue] = field(default_factory=dict)
    revision: int = 0

    def receive(self, change: Change) -> None:
        name = name_of(change.kv)
        if change.type == ADDED:
            assert name not in self.knows
        else:
            assert name in self.knows
            assert change.type in {MODIFIED, DELETED}
        self.revision = change.kv.revision
        if change.type == DELETED:
            del self.knows[name]
        else:
            assert name not in self.knows or self.knows[name].revision < change.kv.revision
            self.knows[name] = change.kv


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from([f"{name}{label}" for name in NAMES for label in "01"])),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("rights"), st.none() | st.frozensets(st.sampled_from(NAMES))),
        st.tuples(st.just("send"), st.none()),
    ),
    max_size=25,
)


class History:
    """A store with rights: every step is a revision."""

    def __init__(self) -> None:
        self.objects: dict[str, KeyValue] = {}
        self.names: frozenset[str] | None = frozenset()
        self.changed_at = 0
        self.revision = 0
        self.events: list[Event] = []
        self.states: list[dict[str, KeyValue]] = [{}]
        """The objects at each revision."""

    @property
    def view(self) -> View | None:
        return None if self.names is None else View(self.names)

    def take(self, kind: str, what: object) -> None:
        self._change(kind, what)
        self.states.append(dict(self.objects))

    def _change(self, kind: str, what: object) -> None:
        self.revision += 1
        if kind == "rights":
            assert what is None or isinstance(what, frozenset)
            self.names, self.changed_at = what, self.revision
            return
        text = str(what)
        before = self.objects.pop(text[0], None)
        now = kv(text[0], self.revision, text[1]) if kind == "write" else None
        if now:
            self.objects[text[0]] = now
        if now or before:
            self.events.append(Event(f"/things/{text[0]}", self.revision, now, before))

    def visible(self, selector: ListOptions) -> dict[str, KeyValue]:
        return {
            name: each
            for name, each in self.objects.items()
            if (self.names is None or name in self.names) and selector.selects(each)
        }


def pending_changes(history: History, view: VisibleSet, *, seen: int) -> list[Change]:
    events, history.events = history.events, []
    if history.view == view.view:
        return list(view.changes(events))
    existing = list(history.objects.values())
    return list(view.change_rights(events, view=history.view, existing=existing, seen=seen, since=history.changed_at))


@given(STEPS, st.sampled_from(["", "x=1"]))
def test_the_client_always_comes_to_know_what_it_may_see(steps: list[Step], selector: str) -> None:
    history, view, client = History(), VisibleSet(options(selector), prefix="/things/"), Client()
    view.begin([], view=View(frozenset()))
    seen = 0
    for kind, what in [*steps, ("send", None)]:
        if kind != "send":
            history.take(kind, what)
            continue
        for change in pending_changes(history, view, seen=seen):
            client.receive(change)
        seen = history.revision
        assert client.knows == history.visible(options(selector))


@given(STEPS, st.sampled_from(["", "x=1"]), st.integers(0, 10))
def test_a_client_that_is_cut_off_can_resume_or_has_to_list_again(steps: list[Step], selector: str, cut: int) -> None:
    """Wherever it is cut off: by its revision it has missed no change of rights, or is older than the last one."""
    history, view, client = History(), VisibleSet(options(selector), prefix="/things/"), Client()
    view.begin([], view=View(frozenset()))
    middle = len(steps) // 2
    for kind, what in steps[:middle]:
        if kind != "send":
            history.take(kind, what)
    for change in pending_changes(history, view, seen=0):
        client.receive(change)
    seen = client.revision = history.revision
    for kind, what in steps[middle:]:
        if kind != "send":
            history.take(kind, what)
    later = list(history.events)
    for change in pending_changes(history, view, seen=seen)[:cut]:
        client.receive(change)
    if client.revision < history.changed_at:
        return
    resumed = VisibleSet(options(selector), prefix="/things/")
    resumed.begin(history.states[client.revision].values(), view=history.view)
    for change in resumed.changes([event for event in later if event.revision > client.revision]):
        client.receive(change)
    assert client.knows == history.visible(options(selector))
