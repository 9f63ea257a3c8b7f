"""Which rule counts, for whom a credential is, how long it is kept, and what a changed file changes."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.access import AccessFileError, open_access
from clusterregistry.controllers.access.cluster_credential import ClusterCredential
from clusterregistry.controllers.access.configuration import FileUse, NoneUse, Rule
from clusterregistry.controllers.access.placeholders import PlaceholderValues
from clusterregistry.controllers.access.resolver import PAUSE, Resolved, ResolveError, ResolveRequest
from clusterregistry.controllers.access.rules import UNUSED_SECONDS
from clusterregistry.controllers.access.subject import subject_of
from clusterregistry.controllers.observer.credentials import AccessError, MemberAccess
from clusterregistry.controllers.observer.observation import Failure, Reason
from tests.client.fake_clock import until
from tests.controllers.access.samples import (
    FakeClocks,
    access_rules,
    cluster,
    failure_of,
    jwt_until,
    rule,
    token_of,
    write_rules,
)

ENV = {"env": {"variable": "MEMBER_TOKEN"}}
NONE: dict[str, Any] = {"none": {}}


async def test_the_first_rule_that_matches_counts(tmp_path: Path) -> None:
    access: MemberAccess = access_rules(
        tmp_path,
        rule(NONE, provider="corp", selector="env=prod"),
        rule(NONE, provider="corp"),
        rule(NONE, selector="env"),
    )
    asked = {
        "rule 1 (none)": cluster(config={}, labels={"env": "prod"}),
        "rule 2 (none)": cluster(config={}, labels={"env": "dev"}),
        "rule 3 (none)": cluster(labels={"env": "dev"}),
    }
    assert [(await access.credential(each)).info.source for each in asked.values()] == list(asked)
    with pytest.raises(AccessError) as caught:
        await access.credential(cluster())
    assert caught.value.failure.reason is Reason.CREDENTIAL_MISSING
    assert "no rule of access.yaml" in caught.value.failure.message


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None},
        {
            "metadata": {"name": 5, "labels": []},
            "spec": {"authInfo": {"providers": [None, {"type": 5, "config": [1]}]}},
        },
    ],
)
async def test_objects_of_any_form_are_read(tmp_path: Path, odd: dict[str, Any]) -> None:
    access = access_rules(tmp_path, rule(NONE, provider="corp"), rule({"file": {"directory": "."}}))
    assert (await failure_of(access, odd)).reason is Reason.CREDENTIAL_MISSING


# The file


async def test_a_changed_file_is_used_and_a_broken_one_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    access = access_rules(tmp_path, rule(ENV), environ={"MEMBER_TOKEN": "first"})
    assert await token_of(access, cluster()) == "first"
    access.path.write_text("rules: [")
    assert await token_of(access, cluster()) == "first"
    assert access.problem is not None
    assert "the former rules stay in use" in caplog.text
    caplog.clear()
    assert await token_of(access, cluster()) == "first"
    assert not caplog.text  # reported once
    access.path.unlink()
    assert await token_of(access, cluster()) == "first"
    write_rules(access.path, rule(NONE))
    assert await token_of(access, cluster()) == ""
    assert access.problem is None


async def test_a_rule_that_did_not_change_keeps_its_credentials(tmp_path: Path) -> None:
    access = access_rules(tmp_path, rule(NONE, provider="corp"), rule(NONE))
    held = await access.credential(cluster())
    write_rules(access.path, rule(NONE, provider="another"), rule(NONE))
    assert await access.credential(cluster()) is held
    write_rules(access.path, rule(NONE))
    assert (await access.credential(cluster())).info.source == "rule 1 (none)"


def test_a_file_with_mistakes_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "access.yaml").write_text("kind: Other\n")
    with pytest.raises(AccessFileError, match="3 mistakes"):
        open_access(tmp_path / "access.yaml")


# One cluster


class PlayedResolver:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.answers: list[Resolved | Exception] = []
        self.released = asyncio.Event()
        self.released.set()

    def token(self, token: str, **more: Any) -> None:
        self.answers.append(Resolved(credential=Credential(authorization=f"Bearer {token}"), **more))

    async def resolve(self, _: ResolveRequest) -> Resolved:
        self.calls += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await self.released.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bound:
    """The credential of a cluster with a played resolver and clocks that stand still."""

    def __init__(self) -> None:
        self.clocks, self.resolver = FakeClocks(), PlayedResolver()
        chosen = Rule(number=1, resolver="none", use=NoneUse())
        request = ResolveRequest(values=PlaceholderValues(name="one"), file_key="one")
        self.kept = ClusterCredential(
            subject_of(cluster()), chosen, (chosen,), resolver=self.resolver, request=request, clocks=self.clocks.clocks
        )

    async def token(self) -> str:
        return (await self.kept.credential()).credential.authorization.removeprefix("Bearer ")

    async def failure(self) -> Failure:
        with pytest.raises(AccessError) as caught:
            await self.kept.credential()
        return caught.value.failure

    async def settle(self) -> None:
        await until(lambda: not self.kept.is_busy)


@pytest.fixture
def bound() -> Bound:
    return Bound()


async def test_callers_at_the_same_time_share_one_resolution(bound: Bound) -> None:
    bound.resolver.token("shared")
    bound.resolver.released.clear()
    waiting = [asyncio.create_task(bound.token()) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # one that gives up ends nothing
    bound.resolver.released.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[1:] == ["shared"] * 19
    assert await bound.token() == "shared"
    assert bound.resolver.calls == 1


async def test_a_credential_is_kept_to_80_percent_of_its_life(bound: Bound) -> None:
    end = bound.clocks.now + 1000
    bound.resolver.token("first", ends_at=end)
    bound.resolver.token("second", ends_at=end + 1000)
    assert await bound.token() == "first"
    bound.clocks.pass_seconds(799)
    assert await bound.token() == "first"
    assert bound.resolver.calls == 1
    bound.clocks.pass_seconds(2)
    assert await bound.token() == "first"  # still good, and renewed behind the caller's back
    await bound.settle()
    assert await bound.token() == "second"
    assert bound.resolver.calls == 2


async def test_the_earliest_end_counts(bound: Bound) -> None:
    bound.resolver.token(jwt_until(bound.clocks.now + 50), ends_at=bound.clocks.now + 1000)
    assert (await bound.kept.credential()).info.expires_at == int(bound.clocks.now + 50)


async def test_a_failed_renewal_does_not_take_a_good_credential_away_but_its_end_does(bound: Bound) -> None:
    bound.resolver.token("first", ends_at=bound.clocks.now + 1000)
    bound.resolver.answers.append(ResolveError("the vault is sealed", pause=PAUSE))
    assert await bound.token() == "first"
    bound.clocks.pass_seconds(900)
    assert await bound.token() == "first"
    await bound.settle()
    assert await bound.token() == "first"
    bound.clocks.pass_seconds(101)
    failure = await bound.failure()
    assert failure.reason is Reason.CREDENTIAL_EXPIRED
    assert "the vault is sealed" in failure.message


async def test_a_credential_whose_source_is_gone_is_not_used(bound: Bound) -> None:
    bound.resolver.token("first", keep_for=10.0)
    bound.resolver.answers.append(ResolveError("there is no such Secret", gone=True))
    assert await bound.token() == "first"
    bound.clocks.pass_seconds(11)
    await bound.token()
    await bound.settle()
    assert (await bound.failure()).reason is Reason.CREDENTIAL_MISSING


async def test_a_refused_credential_is_resolved_anew_but_not_again_and_again(bound: Bound) -> None:
    for token in ("first", "second", "third"):
        bound.resolver.token(token)
    first = await bound.kept.credential()
    bound.kept.reject(first)
    assert await bound.token() == "first"  # it is a moment old
    bound.clocks.pass_seconds(PAUSE)
    assert await bound.token() == "second"
    bound.kept.reject(first)  # an answer to an older request
    bound.clocks.pass_seconds(PAUSE)
    assert await bound.token() == "second"
    assert bound.resolver.calls == 2


async def test_attempts_that_cost_something_are_not_repeated_at_once(bound: Bound) -> None:
    bound.resolver.answers.append(ResolveError("no", pause=PAUSE))
    bound.resolver.token("late")
    for _ in range(3):
        assert "no" in (await bound.failure()).message
    assert bound.resolver.calls == 1
    bound.clocks.pass_seconds(PAUSE)
    assert await bound.token() == "late"


async def test_an_unexpected_failure_shows_no_text(bound: Bound, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(5)
    bound.resolver.answers.append(RuntimeError("s3cr3t"))
    assert "RuntimeError" in (await bound.failure()).message
    assert "RuntimeError" in caplog.text
    assert "s3cr3t" not in caplog.text


# Many clusters


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "one", "uid": "u2", "labels": {}}},
        {"metadata": {"name": "one", "uid": "u1", "labels": {"a": "b"}}},
        {"spec": {"kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": "192.0.2.7"}]}}},
    ],
)
async def test_a_credential_is_bound_to_name_uid_labels_and_spec(tmp_path: Path, change: dict[str, Any]) -> None:
    access = access_rules(tmp_path, rule(NONE))
    before = cluster()
    held = await access.credential(before)
    assert await access.credential(copy.deepcopy(before)) is held
    after = {**before, **change}
    assert await access.credential(after) is not held
    access.reject(before, held)  # of a cluster that is no more
    assert not access._kept["one"]._is_rejected


async def test_a_resolution_for_a_former_cluster_never_reaches_the_new_one(tmp_path: Path) -> None:
    resolver = PlayedResolver()
    access = access_rules(tmp_path, rule(NONE))
    access._resolvers[1] = resolver
    resolver.released.clear()
    resolver.token("of-the-former")
    resolver.token("of-the-new")
    former = asyncio.create_task(token_of(access, cluster(uid="u1")))
    await until(lambda: resolver.calls == 1)
    later = asyncio.create_task(token_of(access, cluster(uid="u2")))
    await until(lambda: resolver.calls == 2)
    resolver.released.set()
    assert (await former, await later) == ("of-the-former", "of-the-new")
    assert await token_of(access, cluster(uid="u2")) == "of-the-new"
    await access.close()


async def test_credentials_that_nobody_asks_for_are_forgotten(tmp_path: Path) -> None:
    clocks = FakeClocks()
    access = access_rules(tmp_path, rule(NONE), clocks=clocks)
    await access.credential(cluster("gone"))
    clocks.pass_seconds(UNUSED_SECONDS + 100)
    await access.credential(cluster("here"))
    assert set(access._kept) == {"here"}
    access.forget("here")
    access.forget("unknown")
    assert not access._kept


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.tuples(NAMES, st.sampled_from(["u1", "u2"]), st.sampled_from(["", "a", "b", "../a"]), st.booleans()), max_size=12
)


@settings(deadline=None, max_examples=40)
@given(STEPS)
def test_a_credential_for_one_cluster_never_reaches_another(tmp_path_factory: Any, steps: list[Any]) -> None:
    """Whatever clusters come, go, and write into their objects: a rule without a provider gives each its own file."""
    folder: Path = tmp_path_factory.mktemp("access", numbered=True)
    (folder / "keys").mkdir()
    for name in "abc":
        (folder / "keys" / f"{name}.token").write_text(f"of-{name}")
    access = access_rules(folder, rule({"file": {"directory": "keys"}}))

    async def ask_all() -> None:
        asked = [cluster(name, uid=uid, config={"key": key} if key else None) for name, uid, key, _ in steps]
        for each, (name, _, _, is_refused) in zip(asked, steps, strict=True):
            found = await access.credential(each)
            assert found.credential.authorization == f"Bearer of-{name}"
            if is_refused:
                access.reject(each, found)
        tokens = await asyncio.gather(*(token_of(access, each) for each in asked))
        assert tokens == [f"of-{name}" for name, *_ in steps]
        await access.close()

    asyncio.run(ask_all())


def test_rules_are_equal_by_value() -> None:
    def made() -> Rule:
        return Rule(number=1, resolver="file", use=FileUse(directory=Path("/a")))

    assert made() == made()
