"""A server with all that authentication can be asked for, and the questions put to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import orjson

from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.http.response import SharedPiece, StreamResponse, resolve
from clusterregistry.apiserver.webhooks import webhook as calling
from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, binding, role
from tests.apiserver.authn.certificates import CN, O, Party, issued, root
from tests.remote_servers import Authority, IssuerServer, Received, RemoteServer, Reply, kubeconfig, reply
from tests.system.access import asks, states
from tests.system.access.oracle import RBAC_GROUP, Ask, Expected, Grant, Setup, State, Who, Wish, expected

DEADLINE = 30.0
PATIENCE = 100.0
"""Seconds for thousands of questions, on a machine that others use too."""

HOUR = 3600.0
POLICY = "the-policy"
_INITIAL_END = b"k8s.io/initial-events-end"


class Others:
    """Those outside: authorities of certificates, an issuer of tokens and a webhook that knows some."""

    def __init__(self, directory: Path) -> None:
        now = time.time()
        long: dict[str, Any] = {"start": now - 9 * HOUR, "end": now + 9 * HOUR}
        ended: dict[str, Any] = {"start": now - 9 * HOUR, "end": now - HOUR}
        self.clients, self.proxies = root("clients", **long), root("proxies", **long)
        subject = ((O, "devs"), (CN, "carl"))
        self.certificates: dict[str, Party] = {
            "carl": issued(subject, by=self.clients, **long),
            "carl ended": issued(subject, by=self.clients, **ended),
            "front-proxy": self.proxies.issue("front-proxy", **long),
            "front-proxy ended": self.proxies.issue("front-proxy", **ended),
            "other proxy": self.proxies.issue("other", **long),
            "carl of the proxies": issued(subject, by=self.proxies, **long),
        }
        self.directory = directory
        authority = Authority(directory)
        self.issuer, self.webhook = IssuerServer(authority), RemoteServer(authority)
        self.webhook.answer = _review

    @contextlib.contextmanager
    def running(self) -> Iterator[Others]:
        with self.issuer, self.webhook:
            yield self

    def tokens(self) -> dict[str, str]:
        past = int(time.time()) - 60
        olga: dict[str, Any] = {"sub": "olga", "groups": ["devs"]}
        return {
            "issued": self.issuer.token(**olga),
            "issued, ended": self.issuer.token(**olga, exp=past),
            "issued for others": self.issuer.token(**olga, aud="others"),
            "webhook": "willas",
            "webhook refuses": "refused-by-all",
            "webhook down": "makes-it-fall-silent",
        }

    def flags(self) -> list[str]:
        (self.directory / "clients.crt").write_text(self.clients.pem)
        (self.directory / "proxies.crt").write_text(self.proxies.pem)
        (self.directory / "users.csv").write_text(states.TOKEN_FILE)
        webhook = kubeconfig(
            self.directory / "webhook.conf", self.webhook.url, cluster={"certificate-authority": "authority.crt"}
        )
        return [
            f"--token-auth-file={self.directory / 'users.csv'}",
            f"--client-ca-file={self.directory / 'clients.crt'}",
            f"--requestheader-client-ca-file={self.directory / 'proxies.crt'}",
            "--requestheader-allowed-names=front-proxy",
            f"--oidc-issuer-url={self.issuer.url}",
            f"--oidc-ca-file={self.directory / 'authority.crt'}",
            *("--oidc-client-id=registry", "--oidc-username-prefix=oidc:"),
            *("--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:"),
            f"--authentication-token-webhook-config-file={webhook}",
        ]


def _review(received: Received) -> Reply:
    token = received.document["spec"]["token"]
    if token == "makes-it-fall-silent":
        return Reply(hang_up=True)
    user = {"username": "willa", "groups": ["devs"]}
    status = {"authenticated": True, "user": user} if token == "willas" else {"authenticated": False}
    return reply({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})


class Question(Request):
    """A request that goes into the chain where the HTTP server would put it."""

    def __init__(self, state: State, ask: Ask, chain: tuple[bytes, ...]) -> None:
        path, _, query = ask.target.partition("?")
        headers = {name.lower(): value.encode().decode("latin-1") for name, value in state.headers}
        self._body = b"" if ask.body is None else orjson.dumps(ask.body)
        if self._body:
            headers |= {"content-type": ask.content_type, "content-length": str(len(self._body))}
        super().__init__(
            method=ask.method, path=path, query_string=query.encode(), headers=headers, client_certificates=chain
        )
        self._left = asyncio.Event()
        self.content = b""

    async def read_body(self) -> tuple[bytes, bool]:
        return self._body, False

    async def disconnected(self) -> None:
        await self._left.wait()

    async def send(self, data: bytes) -> None:
        """Of a watch: all that there is at first, and then the client leaves."""
        self.content += data
        if _INITIAL_END in data:
            self._left.set()

    def offer(self, _: SharedPiece) -> bool:
        return False


@dataclass
class World:
    """A server and its rights. ``differences`` are all answers that were not as expected."""

    server: InProcess
    others: Others
    setup: Setup
    asked: int = 0
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server.server.trust.clients.replace(self.others.clients.pem)
        self.server.server.trust.front_proxies.replace(self.others.proxies.pem)
        self._dear: set[tuple[Who | None, str]] = set()
        self._permanent = (Grant(states.IMKES_RULES, [("User", "imke")]),)
        fill(self.server.client())
        wait_for_issuer(self.server.client(), self.others)

    def grant(self, grant: Grant) -> Setup:
        """From now on this and nothing else; what is to be expected then."""
        put_policy(self.server.client(), grant)
        known = self.setup
        grants = (*self._permanent, grant)
        return Setup(grants=grants, filtered=known.filtered, anonymous=known.anonymous, mode=known.mode)

    def compare(self, setup: Setup, whoever: Iterable[State], wanted: Sequence[Ask], *, label: str) -> None:
        """Asks everything of everybody, one after the other."""
        self.server.start(self._compare(setup, whoever, wanted, label=label)).result(PATIENCE)

    async def _compare(self, setup: Setup, whoever: Iterable[State], wanted: Sequence[Ask], *, label: str) -> None:
        for state in whoever:
            for ask in wanted:
                due = expected(state, ask, setup)
                if not self._is_known(state, ask, due):
                    self._note(label, state, ask, await self._answer(state, ask), due)

    def _is_known(self, state: State, ask: Ask, due: Expected) -> bool:
        """Whether that takes long and was answered to this user before. Refusals are quick."""
        if not ask.dear or due.status in (401, 403):
            return False
        known = (state.user, str(ask)) in self._dear
        self._dear.add((state.user, str(ask)))
        return known

    def compare_at_once(self, setup: Setup, whoever: Sequence[State], wanted: Sequence[Ask], *, label: str) -> None:
        """The same for those about whom somebody slow is asked each time."""
        self.server.start(self._compare_at_once(setup, whoever, wanted, label=label)).result(PATIENCE)

    async def _compare_at_once(
        self, setup: Setup, whoever: Sequence[State], wanted: Sequence[Ask], *, label: str
    ) -> None:
        pairs = [(state, ask) for state in whoever for ask in wanted]
        answers = await asyncio.gather(*(self._answer(state, ask) for state, ask in pairs))
        for (state, ask), answer in zip(pairs, answers, strict=True):
            self._note(label, state, ask, answer, expected(state, ask, setup))

    def reviewed(self, pairs: Sequence[tuple[Who, Wish]]) -> list[bool]:
        """What reviews say that users may do."""
        return self.server.run(self._reviewed(pairs))

    async def _reviewed(self, pairs: Sequence[tuple[Who, Wish]]) -> list[bool]:
        admin = State(label="admin", user=states.ADMIN, headers=states.bearer("admintoken"))
        found = []
        for user, wish in pairs:
            answer = await resolve(self.server.server.handler(Question(admin, review_of(user, wish), ())))
            assert not isinstance(answer, StreamResponse)
            found.append(json.loads(b"".join(answer.body))["status"]["allowed"])
        return found

    async def _answer(self, state: State, ask: Ask) -> tuple[int, frozenset[str] | None]:
        chain = (self.others.certificates[state.certificate].der,) if state.certificate else ()
        question = Question(state, ask, chain)
        answer = await resolve(self.server.server.handler(question))
        if answer.status != 200 or ask.wish.verb not in ("list", "watch"):
            return answer.status, None
        if isinstance(answer, StreamResponse):
            await answer.stream(question)
            return answer.status, _watched(question.content)
        listed = json.loads(b"".join(answer.body))
        return answer.status, frozenset(item["metadata"]["name"] for item in listed["items"])

    def _note(self, label: str, state: State, ask: Ask, got: tuple[int, frozenset[str] | None], due: Expected) -> None:
        self.asked += 1
        status, shown = got
        if status != due.status:
            self.differences.append(f"{label} | {state.label} | {ask}: {status}, expected {due.status}")
        elif shown is not None and shown != shown_to(due, ask):
            self.differences.append(f"{label} | {state.label} | {ask}: shows {sorted(shown)}, expected {due.names}")


def shown_to(due: Expected, ask: Ask) -> frozenset[str]:
    """The names in a list or watch: of all that there are, the one that was selected and those that may be seen."""
    there = EVERYTHING[ask.wish.resource]
    selected = there & {ask.wish.name} if ask.wish.name else there
    return selected if due.names is None else selected & due.names


_DEFAULT_BINDINGS = {
    *("cluster-admin", "system:basic-user", "system:discovery", "system:monitoring", "system:public-info-viewer")
}
_DEFAULT_ROLES = {
    *("admin", "edit", "view"),
    *(f"system:aggregate-to-{name}" for name in ("admin", "edit", "view")),
}
_OWN = {"a", "b", "imkes", POLICY}
EVERYTHING = {
    "clusters": frozenset(asks.EXISTING),
    "clusterroles": frozenset(_DEFAULT_BINDINGS | _DEFAULT_ROLES | _OWN | {asks.EMPTY_ROLE}),
    "clusterrolebindings": frozenset(_DEFAULT_BINDINGS | _OWN),
}
"""What there is, by resource."""


def review_of(user: Who, wish: Wish) -> Ask:
    spec: dict[str, Any] = {"user": user.name, "groups": sorted(user.groups)}
    if wish.path:
        spec["nonResourceAttributes"] = {"verb": wish.verb, "path": wish.path}
    else:
        spec["resourceAttributes"] = {key: value for key, value in vars(wish).items() if key != "path"}
    target = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return Ask(method="POST", target=target, wish=Wish(verb="create"), body=body, allowed=201)


def _watched(content: bytes) -> frozenset[str]:
    events = [json.loads(line) for line in content.splitlines()]
    return frozenset(event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED")


def fill(client: Client) -> None:
    """Two objects of each kind, and what imke may."""
    client.post(ROLES, role(asks.EMPTY_ROLE)).expect(201)
    for name in asks.EXISTING:
        client.post(CLUSTERS, cluster(name)).expect(201)
        client.post(ROLES, role(name)).expect(201)
        client.post(BINDINGS, binding(name, asks.EMPTY_ROLE)).expect(201)
    client.post(ROLES, role("imkes", *states.IMKES_RULES)).expect(201)
    client.post(BINDINGS, binding("imkes", "imkes", User="imke")).expect(201)


def wait_for_issuer(client: Client, others: Others) -> None:
    """The server asks for the issuer's keys in its own time."""
    headers = {"Authorization": f"Bearer {others.tokens()['issued']}"}
    end = time.monotonic() + DEADLINE
    while client.get("/version", headers=headers).status == 401:
        assert time.monotonic() < end, "the issuer's tokens are not believed"
        time.sleep(0.02)


def put_policy(client: Client, grant: Grant) -> None:
    answer = client.put(f"{ROLES}/{POLICY}", role(POLICY, *grant.rules))
    assert answer.status in (200, 201), answer
    bound = {**binding(POLICY, POLICY), "subjects": [_subject(kind, name) for kind, name in grant.subjects]}
    answer = client.put(f"{BINDINGS}/{POLICY}", bound)
    assert answer.status in (200, 201), answer


def _subject(kind: str, name: str) -> dict[str, str]:
    if kind != "ServiceAccount":
        return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}
    namespace, _, account = name.partition(":")
    return {"kind": kind, "namespace": namespace, "name": account}


@contextlib.contextmanager
def running(directory: Path, others: Others, setup: Setup, *flags: str) -> Iterator[World]:
    """A server in process. Its webhook is asked again at once rather than in half a second when it fails."""
    impatient = replace(calling.BACKOFF, first=0.001)
    server = InProcess(directory, *others.flags(), *flags)
    with mock.patch.object(calling, "BACKOFF", impatient), server.running():
        yield World(server, others, setup)
