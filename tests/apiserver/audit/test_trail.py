"""What a server records of the requests that it serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver import server as app
from clusterregistry.apiserver.audit.policy import Policy, Recording, Rule
from clusterregistry.apiserver.audit.settings import Counts, Level
from clusterregistry.apiserver.audit.trail import Audit, Event
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.filters import audit, audit_failed_authn, authentication
from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.response import (
    Answer,
    Outlet,
    Reply,
    SharedPiece,
    StreamResponse,
    resolve,
    text_response,
)
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.group_objects import SETS, TEAM, give, on_sets, team_set
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, JSON_PATCH, cluster, path_of
from tests.apiserver.audit import trails
from tests.apiserver.audit.trails import JANE, Sent

EVERYTHING = {"level": "RequestResponse"}
METADATA = {"level": "Metadata"}


@contextmanager
def serving(directory: Path, *rules: dict[str, Any], **fields: Any) -> Iterator[InProcessClient]:
    """A server in process; when it has ended, everything is in its log."""
    with InProcess(directory, *trails.flags(directory, *rules, **fields)).running() as server:
        yield server.client()


def stages(events: list[trails.Event]) -> list[tuple[str, str, int]]:
    return [(each["verb"], each["stage"], each.get("responseStatus", {}).get("code", 0)) for each in events]


def test_every_request_is_recorded_when_it_comes_and_when_it_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path, EVERYTHING) as client:
        answer = client.post(CLUSTERS, cluster("a"))
        client.get(path_of("absent"))
        client.get("/version")
    events = trails.events(tmp_path)
    assert stages(events) == [
        ("create", "RequestReceived", 0),
        ("create", "ResponseComplete", 201),
        ("get", "RequestReceived", 0),
        ("get", "ResponseComplete", 404),
        ("get", "RequestReceived", 0),
        ("get", "ResponseComplete", 200),
    ]
    assert events[0]["auditID"] == events[1]["auditID"] == answer.header("audit-id")
    assert events[1]["requestObject"] == cluster("a")
    assert events[1]["responseObject"] == answer.json
    assert events[1]["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert events[3]["responseStatus"]["reason"] == "NotFound"


def test_a_failed_authentication_is_recorded_once(tmp_path: Path) -> None:
    with serving(tmp_path, {"level": "None", "users": ["admin"]}, METADATA) as client:
        client.get(CLUSTERS, headers={"Authorization": "bearer wr0ngt0ken"}).refused(401, "Unauthorized")
        client.get(CLUSTERS)
    (event,) = trails.events(tmp_path)
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 401)
    assert "wr0ngt0ken" not in json.dumps(event)


def test_what_is_forbidden_is_recorded_with_the_decision(tmp_path: Path) -> None:
    with serving(tmp_path, METADATA, omitStages=["RequestReceived"]) as client:
        client.get(CLUSTERS, headers={"Authorization": "Bearer nobodytoken"}).refused(403, "Forbidden")
    (event,) = trails.events(tmp_path)
    assert event["user"]["username"] == "nobody"
    assert event["responseStatus"]["reason"] == "Forbidden"
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_a_decision_by_groups_is_recorded_as_it_was_made_on_the_object(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer nobodytoken"}
    quiet = {"level": "None", "users": ["admin"]}
    with serving(tmp_path, quiet, METADATA, omitStages=["RequestReceived"]) as client:
        for team in ("red", "blue"):
            client.post(SETS, team_set(team)).expect(201)
        give(client, "nobody", on_sets("create", "update", "patch", names=["red"]))
        client.post(CLUSTERS, cluster("b", labels={TEAM: "blue"}), headers=headers).refused(403, "Forbidden")
        client.post(CLUSTERS, cluster("r", labels={TEAM: "red"}), headers=headers).expect(201)
        moved = {"metadata": {"labels": {TEAM: "blue"}}}
        client.patch(path_of("r"), moved, headers=headers).refused(403, "Forbidden")
        client.patch(path_of("r"), {"metadata": {"annotations": {"a": "b"}}}, headers=headers).expect(200)
    events = [event for event in trails.events(tmp_path) if event["user"]["username"] == "nobody"]
    decisions = [
        (event["responseStatus"]["code"], event["annotations"]["authorization.k8s.io/decision"]) for event in events
    ]
    assert decisions == [(403, "forbid"), (201, "allow"), (403, "forbid"), (200, "allow")]
    assert 'clustersets "red"' in events[1]["annotations"]["authorization.k8s.io/reason"]


def test_a_watch_is_recorded_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    with serving(tmp_path, {"level": "None", "verbs": ["create"]}, METADATA) as client:
        client.post(CLUSTERS, cluster("a"))
        with client.watch(CLUSTERS) as watch:
            watch.next()
    assert stages(trails.events(tmp_path)) == [
        ("watch", "RequestReceived", 0),
        ("watch", "ResponseStarted", 200),
        ("watch", "ResponseComplete", 200),
    ]


def test_a_client_may_name_its_request(tmp_path: Path) -> None:
    with serving(tmp_path, METADATA) as client:
        named = client.get("/version", headers={"Audit-ID": "my-own"})
        long = client.get("/version", headers={"Audit-ID": "x" * 65})
        odd = client.get("/version", headers={"Audit-ID": "\x7f"})
    assert named.header("audit-id") == "my-own"
    assert len({long.header("audit-id"), odd.header("audit-id"), "x" * 65, "\x7f"}) == 4
    assert [event["auditID"] for event in trails.events(tmp_path)][:2] == ["my-own", "my-own"]


def test_no_credential_is_ever_in_the_log(tmp_path: Path) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t0ps3cret"}}
    kubeconfig = "users:\n- user:\n    token: t0ps3cret\n"
    leaky = cluster("a", annotations={"kubeconfig": kubeconfig, "json": json.dumps({"password": "t0ps3cret"})})
    leaky["spec"]["authInfo"] = {"providers": [{"name": "p", "config": {"refresh-token": "t0ps3cret"}}]}
    patch = [{"op": "add", "path": "/spec/authInfo/providers/0/config/token", "value": "t0ps3cret"}]
    with serving(tmp_path, EVERYTHING) as client:
        for scheme in ("Bearer", "bearer", "BEARER"):
            client.get(CLUSTERS, headers={"Authorization": f"{scheme} {ADMIN_TOKEN}"}).expect(200)
            client.get(CLUSTERS, headers={"Authorization": f"{scheme} t0ps3cret"}).refused(401, "Unauthorized")
        client.get(CLUSTERS, headers={"User-Agent": "Bearer t0ps3cret", "Audit-ID": "token=t0ps3cret"})
        client.get(CLUSTERS, access_token="t0ps3cret", token="t0ps3cret")
        client.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        client.post(CLUSTERS, leaky).expect(201)
        client.patch(path_of("a"), patch, kind=JSON_PATCH).expect(200)
        client.get(path_of("a")).expect(200)
        client.post(CLUSTERS, b'{"token": "t0ps3cret"}').refused(400, "BadRequest")
    text = (tmp_path / "audit.log").read_text()
    assert len(trails.events(tmp_path)) > 20
    assert "t0ps3cret" not in text
    assert ADMIN_TOKEN not in text


def test_events_are_counted(tmp_path: Path) -> None:
    with serving(tmp_path, METADATA) as client:
        client.get("/version")
        metrics = client.get("/metrics").body.decode()
    assert "apiserver_audit_event_total 3.0" in metrics
    assert 'apiserver_audit_level_total{level="Metadata"} 2.0' in metrics
    assert 'apiserver_audit_error_total{plugin="log"} 0.0' in metrics


def test_without_an_audit_log_there_are_no_filters(tmp_path: Path) -> None:
    with InProcess(tmp_path).running() as server:
        assert isinstance(server.server, app.Server)

    async def inner(_: Request) -> Answer:
        return text_response("")

    for module in (audit, audit_failed_authn):
        assert module.filter_for(None)(inner) is inner


# Around a handler of our own.


class Recorded:
    """An audit whose events are kept as they are made."""

    def __init__(self, level: Level = Level.Metadata) -> None:
        self.events: list[Event] = []
        queue: Any = self
        self.audit = Audit(Policy([Rule(recording=Recording(level=level))]), queue, Counts())

    def put(self, event: Event, size: int) -> None:
        assert size > 0
        self.events.append(event)

    def seen(self) -> list[tuple[str, int]]:
        return [(event.stage, event.trail.code) for event in self.events]


def around(recorded: Recorded, inner: Handler) -> Handler:
    return audit.filter_for(recorded.audit)(inner)


async def fail(error: BaseException) -> Answer:
    raise error


@pytest.mark.parametrize(
    ("error", "stage", "code"),
    [
        (errors.gone("old"), "ResponseComplete", 410),
        (ClientGoneError(), "ResponseComplete", 400),
        (asyncio.CancelledError(), "ResponseComplete", 500),
        (ZeroDivisionError(), "Panic", 500),
    ],
)
async def test_a_request_that_fails_is_recorded_and_fails(error: BaseException, stage: str, code: int) -> None:
    def fail_at_once(_: Request) -> Reply:
        raise error

    for failing in (fail_at_once, lambda _: fail(error)):
        recorded = Recorded()
        with pytest.raises(type(error)):
            await resolve(around(recorded, failing)(Sent()))
        assert recorded.seen()[-1] == (stage, code)
        assert recorded.events[-1].trail.status is not None


class Nowhere:
    """An outlet without a client."""

    async def send(self, _: bytes) -> None:
        raise AssertionError

    def offer(self, _: SharedPiece) -> bool:
        return False


async def test_a_stream_that_breaks_off_is_recorded() -> None:
    recorded = Recorded()

    async def stream(_: Outlet) -> None:
        raise ConnectionError

    async def inner(_: Request) -> Answer:
        return StreamResponse(200, b"application/json", stream)

    answer = await resolve(around(recorded, inner)(Sent()))
    assert isinstance(answer, StreamResponse)
    assert recorded.seen()[-1] == ("ResponseStarted", 200)
    with pytest.raises(ConnectionError):
        await answer.stream(Nowhere())
    assert recorded.seen()[-1] == ("ResponseComplete", 200)


async def test_an_impersonation_is_recorded_with_both_names() -> None:
    recorded, joe = Recorded(), User("joe")

    async def inner(request: Request) -> Answer:
        request.user = joe
        return text_response("")

    await resolve(around(recorded, inner)(Sent()))
    done = recorded.events[-1].trail
    assert (done.user, done.impersonated) == (JANE, joe)


async def test_what_is_not_to_be_recorded_is_not() -> None:
    recorded = Recorded(Level.None_)

    async def inner(_: Request) -> Answer:
        return text_response("")

    await resolve(around(recorded, inner)(Sent()))
    assert recorded.events == []


class Slow:
    """An authenticator that has to call another server."""

    def __init__(self, user: User | None) -> None:
        self.user = user

    def authenticate(self, _: Any) -> Awaitable[User | None]:
        return asyncio.sleep(0, self.user)


@pytest.mark.parametrize("user", [None, JANE])
async def test_a_late_answer_about_the_user_is_recorded_as_an_early_one(user: User | None) -> None:
    recorded = Recorded()

    async def inner(_: Request) -> Answer:
        raise errors.gone("old")

    chain = around(recorded, inner)
    chain = authentication.filter_for(Slow(user))(chain)
    chain = audit_failed_authn.filter_for(recorded.audit)(chain)
    request = Sent(user=None)
    with pytest.raises(errors.APIError):
        await resolve(chain(request))
    assert request.received_at > trails.RECEIVED - 1e9
    expected = [("RequestReceived", 410), ("ResponseComplete", 410)] if user else [("ResponseStarted", 401)]
    assert recorded.seen() == expected
