"""Labels, sets, roles and bindings change at random; what a user sees and may do is always what an oracle says."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import NOBODY
from tests.apiserver.api.group_objects import SETS, give, on_sets
from tests.apiserver.api.group_oracle import SetRule, World
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, cluster, names, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, binding, rule
from tests.apiserver.api.test_filtered_histories import SENTINEL, Informer
from tests.apiserver.storage.etcd_engine import SERVER
from tests.apiserver.storage.etcd_servers import RUNS_HERE, WHY_NOT

NAMES = "abcdef"
SET_NAMES = ("s0", "s1", "s2", "s3")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "join")
STEPS = 150

_prefixes = itertools.count()


@pytest.fixture(scope="module", params=["sqlite", "etcd"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    flags: list[str] = []
    if request.param == "etcd":
        if not RUNS_HERE:
            pytest.skip(WHY_NOT)
        etcd = asyncio.run(SERVER.fresh())
        flags = [f"--etcd-servers={etcd.endpoints[0]}", f"--etcd-prefix=/registry/groups-{next(_prefixes)}"]
    with InProcess(tmp_path_factory.mktemp("groups"), *flags).running() as started:
        yield started


class Story:
    """Changes a server and the oracle's world alike."""

    def __init__(self, client: InProcessClient, choose: random.Random) -> None:
        self.client, self.choose = client, choose
        self.world = World(named=frozenset({SENTINEL}))
        client.delete(CLUSTERS).expect(200)
        client.delete(SETS).expect(200)
        self.mark(0)
        self.give([SetRule(frozenset(VERBS), None)])

    def labels(self) -> dict[str, str]:
        team, tier = self.choose.choice(["", "red", "blue"]), self.choose.choice(["", "x", "y"])
        return {key: value for key, value in (("team", team), ("tier", tier)) if value}

    def selector(self) -> dict[str, Any] | None:
        expressions = [
            {"key": "tier", "operator": "NotIn", "values": ["x"]},
            {"key": "tier", "operator": "In", "values": ["x", "y"]},
            {"key": "team", "operator": "Exists"},
            {"key": "team", "operator": "DoesNotExist"},
        ]
        teams = [{"matchLabels": {"team": team}} for team in ("red", "blue")]
        chosen: list[dict[str, Any] | None] = [None, {}, *teams, *teams]
        return self.choose.choice([*chosen, *({"matchExpressions": [each]} for each in expressions)])

    def write(self, number: int) -> None:
        name = self.choose.choice(NAMES)
        if self.choose.random() < 0.25:
            self.client.delete(path_of(name))
            self.world.clusters.pop(name, None)
        else:
            labels = self.labels()
            self.client.put(path_of(name), cluster(name, f"provider-{number}", labels=labels))
            self.world.clusters[name] = labels

    def change_set(self) -> None:
        name = self.choose.choice(SET_NAMES)
        if self.choose.random() < 0.3:
            self.client.delete(f"{SETS}/{name}")
            self.world.sets.pop(name, None)
            return
        selector, clusters = self.selector(), [each for each in NAMES if self.choose.random() < 0.15]
        spec = ({} if selector is None else {"selector": selector}) | ({"clusters": clusters} if clusters else {})
        made = {"apiVersion": GROUP_VERSION, "kind": "ClusterSet", "metadata": {"name": name}, "spec": spec}
        assert self.client.put(f"{SETS}/{name}", made).status in (200, 201)
        self.world.sets[name] = spec

    def change_role(self) -> None:
        rules = []
        for _ in range(self.choose.randrange(4)):
            some = frozenset(each for each in SET_NAMES if self.choose.random() < 0.4)
            verbs = frozenset(verb for verb in VERBS if self.choose.random() < 0.6)
            if "list" in verbs:  # what a client lists and does not watch, it knows for ever
                verbs |= {"watch"}
            else:
                verbs -= {"watch"}
            rules.append(SetRule(verbs, some if some and self.choose.random() < 0.8 else None))
        self.give([rule for rule in rules if rule.verbs])

    def give(self, rules: list[SetRule]) -> None:
        wire = [on_sets(*sorted(each.verbs), names=sorted(each.sets or ())) for each in rules]
        give(self.client, "nobody", *wire, rule("get", names=[SENTINEL]))
        self.world.rules, self.world.bound = rules, True

    def change_binding(self) -> None:
        """For a moment the user has no rights at all."""
        self.client.delete(f"{BINDINGS}/of-nobody").expect(200)
        self.client.post(BINDINGS, binding("of-nobody", "of-nobody", User="nobody")).expect(201)

    def mark(self, number: int) -> Any:
        self.world.clusters[SENTINEL] = {}
        return self.client.put(path_of(SENTINEL), cluster(SENTINEL, str(number))).json

    def shown(self, **query: Any) -> set[str] | None:
        answer = self.client.get(CLUSTERS, headers=NOBODY, **query)
        return None if answer.status == 403 else set(names(answer.expect(200)))

    def paged(self) -> set[str]:
        """The list of now, page by page, while labels change."""
        found, token = list[str](), ""
        while True:
            page = self.client.get(CLUSTERS, headers=NOBODY, limit=2, **({"continue": token} if token else {}))
            found += names(page.expect(200))
            token = page.json["metadata"].get("continue", "")
            if not token:
                assert found == sorted(found)
                return set(found)
            self.client.patch(path_of(SENTINEL), {"metadata": {"annotations": {"at": str(len(found))}}}).expect(200)

    def check_decisions(self) -> None:
        """Each verb on a cluster that exists or not. Writes are dry runs."""
        world, client = self.world, self.client
        for name in self.choose.sample(NAMES, 3):
            path, labels = path_of(name), dict(world.clusters.get(name, {}))
            moved, touched = self.labels(), {"metadata": {"annotations": {"x": "y"}}}
            move = {"metadata": {"labels": {key: moved.get(key) for key in ("team", "tier")}}}
            made = cluster(name, labels=moved)
            expected = {
                "get": (client.get(path, headers=NOBODY), world.status("get", name)),
                "patch": (
                    client.patch(path, touched, headers=NOBODY, dryRun="All"),
                    world.status("patch", name),
                ),
                "delete": (client.delete(path, headers=NOBODY, dryRun="All"), world.status("delete", name)),
                "move": (
                    client.patch(path, move, headers=NOBODY, dryRun="All"),
                    world.status_of_move(name, moved),
                ),
                "create": (
                    client.post(CLUSTERS, made, headers=NOBODY, dryRun="All"),
                    world.status_of_create(name, moved),
                ),
            }
            if name in world.clusters:
                same = cluster(name, "other", labels=labels)
                put = client.put(path, same, headers=NOBODY, dryRun="All")
                expected["put"] = (put, world.status("update", name))
            else:
                put = client.put(path, made, headers=NOBODY, dryRun="All")
                expected["put"] = (put, world.status_of_put(name, moved))
            for what, (answer, status) in expected.items():
                assert answer.status == status, (what, name, labels, moved, world, answer.body)

    def check_deletecollection(self) -> None:
        answer = self.client.delete(CLUSTERS, headers=NOBODY, dryRun="All")
        deleted = None if answer.status == 403 else set(names(answer.expect(200)))
        assert deleted == self.world.deletable()


@pytest.mark.parametrize("query", [{}, {"labelSelector": "tier!=x"}])
@pytest.mark.parametrize("seed", range(3))
def test_what_a_user_sees_and_may_do_is_what_the_oracle_says(
    server: InProcess, seed: int, query: dict[str, str]
) -> None:
    choose = random.Random(seed)
    story = Story(server.client(), choose)
    informer = Informer(story.client, **query)
    for number in range(1, STEPS):
        what = choose.random()
        if what < 0.45:
            story.write(number)
        elif what < 0.6:
            story.change_set()
        elif what < 0.7:
            story.change_role()
        elif what < 0.73:
            story.change_binding()
        elif what < 0.82:
            informer.cut_off()
        else:
            mark = story.mark(number)
            informer.hear_until(mark)
            world = story.world
            wanted = {
                name for name in world.visible("watch") or () if not query or world.clusters[name].get("tier") != "x"
            }
            assert set(informer.knows) == wanted, (world, query)
            assert story.shown() == world.visible()
            assert story.paged() == world.visible()
            assert story.shown(labelSelector="team=red") == {
                name for name in world.visible() or () if world.clusters[name].get("team") == "red"
            }
            story.check_decisions()
            story.check_deletecollection()
    informer.close()
