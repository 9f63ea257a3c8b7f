"""A server with every authentication method, and the requests that are sent to it."""

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
from tests.apiserver.api.group_objects import SETS as CLUSTER_SETS
from tests.apiserver.api.group_objects import cluster_set
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.api.rbac_objects import (
    BINDINGS,
    ROLES,
    binding,
    local_binding,
    local_bindings,
    local_role,
    local_roles,
    role,
)
from tests.apiserver.authn.certificates import CN, O, Party, issued, root
from tests.remote_servers import Authority, IssuerServer, Received, RemoteServer, Reply, kubeconfig, reply
from tests.system.access import calls, logins
from tests.system.access.oracle import (
    RBAC_GROUP,
    SETS,
    Action,
    Call,
    Expected,
    Grant,
    Identity,
    Login,
    Rule,
    Setup,
    expected,
)

DEADLINE = 30.0
PATIENCE = 100.0
"""Seconds for thousands of requests, on a busy machine."""

HOUR = 3600.0
POLICY = "the-policy"
PATHS = "the-policy-on-paths"
PLACES = (calls.HERE, calls.THERE)
_INITIAL_END = b"k8s.io/initial-events-end"


class Externals:
    """The external systems: certificate authorities, an issuer of tokens and a token webhook."""

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
    def running(self) -> Iterator[Externals]:
        with self.issuer, self.webhook:
            yield self

    def tokens(self) -> dict[str, str]:
        past = int(time.time()) - 60
        olga: dict[str, Any] = {"sub": "olga", "groups": ["devs"]}
        return {
            "issued": self.issuer.token(**olga),
            "issued, ended": self.issuer.token(**olga, exp=past),
            "issued for another audience": self.issuer.token(**olga, aud="another"),
            "webhook": "willas",
            "webhook refuses": "refused-by-all",
            "webhook down": "makes-it-fall-silent",
        }

    def flags(self) -> list[str]:
        (self.directory / "clients.crt").write_text(self.clients.pem)
        (self.directory / "proxies.crt").write_text(self.proxies.pem)
        (self.directory / "users.csv").write_text(logins.TOKEN_FILE)
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


class ChainRequest(Request):
    """A request that enters the filter chain without the HTTP server."""

    def __init__(self, login: Login, call: Call, chain: tuple[bytes, ...]) -> None:
        path, _, query = call.target.partition("?")
        headers = {name.lower(): value.encode().decode("latin-1") for name, value in login.headers}
        self._body = b"" if call.body is None else orjson.dumps(call.body)
        if self._body:
            headers |= {"content-type": call.content_type, "content-length": str(len(self._body))}
        super().__init__(
            method=call.method, path=path, query_string=query.encode(), headers=headers, client_certificates=chain
        )
        self._left = asyncio.Event()
        self.content = b""

    async def read_body(self) -> tuple[bytes, bool]:
        return self._body, False

    async def disconnected(self) -> None:
        await self._left.wait()

    async def send(self, data: bytes) -> None:
        """Collects the initial events of a watch, and then leaves."""
        self.content += data
        if _INITIAL_END in data:
            self._left.set()

    def offer(self, _: SharedPiece) -> bool:
        return False


@dataclass
class AccessServer:
    """A server and its rights. ``differences`` are the answers that were not as expected."""

    server: InProcess
    externals: Externals
    setup: Setup
    asked: int = 0
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server.server.trust.clients.replace(self.externals.clients.pem)
        self.server.server.trust.front_proxies.replace(self.externals.proxies.pem)
        self._slow: set[tuple[Identity | None, str]] = set()
        self._permanent = (Grant(logins.IMKES_RULES, [("User", "imke")]),)
        fill(self.server.client())
        wait_for_issuer(self.server.client(), self.externals)

    def grant(self, grant: Grant) -> Setup:
        """Replaces the policy; returns the setup to expect from then on."""
        put_policy(self.server.client(), grant)
        known = self.setup
        grants = (*self._permanent, grant)
        return Setup(grants=grants, filtered=known.filtered, anonymous=known.anonymous, mode=known.mode)

    def compare(self, setup: Setup, logins: Iterable[Login], requests: Sequence[Call], *, label: str) -> None:
        """Sends every request with every login, one after the other."""
        self.server.start(self._compare(setup, logins, requests, label=label)).result(PATIENCE)

    async def _compare(self, setup: Setup, logins: Iterable[Login], requests: Sequence[Call], *, label: str) -> None:
        for login in logins:
            for call in requests:
                due = expected(login, call, setup)
                if not self._is_known(login, call, due):
                    self._note(label, login, call, await self._answer(login, call), due)

    def _is_known(self, login: Login, call: Call, due: Expected) -> bool:
        """Whether it is a slow request that this user has sent before. Refusals are quick."""
        if not call.is_slow or due.status in (401, 403):
            return False
        known = (login.user, str(call)) in self._slow
        self._slow.add((login.user, str(call)))
        return known

    def compare_at_once(self, setup: Setup, logins: Sequence[Login], requests: Sequence[Call], *, label: str) -> None:
        """The same concurrently, for logins that need a slow webhook each time."""
        self.server.start(self._compare_at_once(setup, logins, requests, label=label)).result(PATIENCE)

    async def _compare_at_once(
        self, setup: Setup, logins: Sequence[Login], requests: Sequence[Call], *, label: str
    ) -> None:
        pairs = [(login, call) for login in logins for call in requests]
        answers = await asyncio.gather(*(self._answer(login, call) for login, call in pairs))
        for (login, call), answer in zip(pairs, answers, strict=True):
            self._note(label, login, call, answer, expected(login, call, setup))

    def reviewed(self, pairs: Sequence[tuple[Identity, Action]]) -> list[bool]:
        """The decisions of access reviews."""
        return self.server.run(self._reviewed(pairs))

    async def _reviewed(self, pairs: Sequence[tuple[Identity, Action]]) -> list[bool]:
        admin = Login(label="admin", user=logins.ADMIN, headers=logins.bearer("admintoken"))
        found = []
        for user, action in pairs:
            answer = await resolve(self.server.server.handler(ChainRequest(admin, review_of(user, action), ())))
            assert not isinstance(answer, StreamResponse)
            found.append(json.loads(b"".join(answer.body))["status"]["allowed"])
        return found

    async def _answer(self, login: Login, call: Call) -> tuple[int, frozenset[str] | None]:
        chain = (self.externals.certificates[login.certificate].der,) if login.certificate else ()
        question = ChainRequest(login, call, chain)
        answer = await resolve(self.server.server.handler(question))
        if answer.status != 200 or call.action.verb not in ("list", "watch"):
            return answer.status, None
        if isinstance(answer, StreamResponse):
            await answer.stream(question)
            return answer.status, _watched(question.content)
        listed = json.loads(b"".join(answer.body))
        return answer.status, frozenset(_key(item["metadata"]) for item in listed["items"])

    def _note(
        self, label: str, login: Login, call: Call, got: tuple[int, frozenset[str] | None], due: Expected
    ) -> None:
        self.asked += 1
        status, shown = got
        if status != due.status:
            self.differences.append(f"{label} | {login.label} | {call}: {status}, expected {due.status}")
        elif shown is not None and shown != shown_to(due, call):
            self.differences.append(f"{label} | {login.label} | {call}: shows {sorted(shown)}, expected {due.names}")


def shown_to(due: Expected, call: Call) -> frozenset[str]:
    """The names in a list or watch: of all objects, those that are selected and visible."""
    action = call.action
    selected = {
        key
        for key in EVERYTHING[action.resource]
        if (not action.name or key.rpartition("/")[2] == action.name)
        and (not action.namespace or key.startswith(f"{action.namespace}/"))
    }
    if due.names is None:
        return frozenset(selected)
    return frozenset(key for key in selected if any(_matches(key, pattern) for pattern in due.names))


def _matches(key: str, pattern: str) -> bool:
    """Whether a key is that of a pattern: * stands for any namespace, or for any name."""
    return all(one in (other, "*") for one, other in zip(pattern.split("/"), key.split("/"), strict=True))


def _key(metadata: dict[str, str]) -> str:
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]


_DEFAULT_BINDINGS = {
    *("cluster-admin", "system:basic-user", "system:discovery", "system:monitoring", "system:public-info-viewer"),
    "system:clusterregistry:controller",
}
_DEFAULT_ROLES = {
    *("admin", "edit", "view"),
    *(f"system:aggregate-to-{name}" for name in ("admin", "edit", "view")),
    "system:certificates.k8s.io:kube-apiserver-client-approver",
}
_OWN = {"a", "b", "imkes", POLICY}
EVERYTHING = {
    "clusters": frozenset(calls.EXISTING),
    "clusterroles": frozenset(_DEFAULT_BINDINGS | _DEFAULT_ROLES | _OWN | {calls.EMPTY_ROLE, PATHS}),
    "clusterrolebindings": frozenset(_DEFAULT_BINDINGS | _OWN),
    "roles": frozenset(f"{place}/{name}" for place in PLACES for name in (*calls.EXISTING, POLICY)),
    "rolebindings": frozenset(f"{place}/{name}" for place in PLACES for name in (*calls.EXISTING, POLICY, PATHS)),
}
"""The names of all objects, by resource."""


def review_of(user: Identity, action: Action) -> Call:
    spec: dict[str, Any] = {"user": user.name, "groups": sorted(user.groups)}
    if action.path:
        spec["nonResourceAttributes"] = {"verb": action.verb, "path": action.path}
    else:
        attributes = vars(action).items()
        spec["resourceAttributes"] = {key: value for key, value in attributes if key not in ("path", "namespaced")}
    target = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return Call(method="POST", target=target, action=Action(verb="create"), body=body, allowed=201)


def _watched(content: bytes) -> frozenset[str]:
    events = [json.loads(line) for line in content.splitlines()]
    return frozenset(_key(event["object"]["metadata"]) for event in events if event["type"] == "ADDED")


def fill(client: Client) -> None:
    """Creates two objects of each kind, the sets of clusters, and imke's role."""
    client.post(ROLES, role(calls.EMPTY_ROLE)).expect(201)
    for name in calls.EXISTING:
        client.post(CLUSTERS, cluster(name)).expect(201)
        client.post(ROLES, role(name)).expect(201)
        client.post(BINDINGS, binding(name, calls.EMPTY_ROLE)).expect(201)
    for place in PLACES:
        for name in calls.EXISTING:
            client.post(local_roles(place), local_role(name)).expect(201)
            bound = local_binding(name, calls.EMPTY_ROLE, kind="ClusterRole")
            client.post(local_bindings(place), bound).expect(201)
    for name, clusters in SETS.items():
        selector = {"matchLabels": {"x": "y"}} if name == "moved" else None
        client.post(CLUSTER_SETS, cluster_set(name, selector, clusters=sorted(clusters))).expect(201)
    client.post(ROLES, role("imkes", *logins.IMKES_RULES)).expect(201)
    client.post(BINDINGS, binding("imkes", "imkes", User="imke")).expect(201)


def wait_for_issuer(client: Client, externals: Externals) -> None:
    """Waits until the server has read the issuer's keys."""
    headers = {"Authorization": f"Bearer {externals.tokens()['issued']}"}
    end = time.monotonic() + DEADLINE
    while client.get("/version", headers=headers).status == 401:
        assert time.monotonic() < end, "the issuer's tokens are not accepted"
        time.sleep(0.02)


def put_policy(client: Client, grant: Grant) -> None:
    """Writes the policy, in its namespace or outside of any, and takes the one before away."""
    subjects = [_subject(kind, name) for kind, name in grant.subjects]
    root: list[Rule] = [] if grant.namespace else [*grant.rules]
    _put(client, f"{ROLES}/{POLICY}", role(POLICY, *root))
    _put(client, f"{BINDINGS}/{POLICY}", {**binding(POLICY, POLICY), "subjects": subjects})
    for place in PLACES:
        rules = grant.rules if place == grant.namespace else ()
        _put_local_policy(client, place, rules, subjects)


def _put_local_policy(client: Client, place: str, rules: Sequence[Rule], subjects: list[dict[str, str]]) -> None:
    """Rules on paths can only be those of a ClusterRole."""
    on_paths = [rule for rule in rules if "nonResourceURLs" in rule]
    _put(
        client, f"{local_roles(place)}/{POLICY}", local_role(POLICY, *(rule for rule in rules if rule not in on_paths))
    )
    _put(client, f"{local_bindings(place)}/{POLICY}", {**local_binding(POLICY, POLICY), "subjects": subjects})
    if on_paths or place == PLACES[0]:
        _put(client, f"{ROLES}/{PATHS}", role(PATHS, *on_paths))
    bound = {**local_binding(PATHS, PATHS, kind="ClusterRole"), "subjects": subjects}
    _put(client, f"{local_bindings(place)}/{PATHS}", bound)


def _put(client: Client, path: str, body: dict[str, Any]) -> None:
    answer = client.put(path, body)
    assert answer.status in (200, 201), answer


def _subject(kind: str, name: str) -> dict[str, str]:
    if kind != "ServiceAccount":
        return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}
    namespace, _, account = name.partition(":")
    return {"kind": kind, "namespace": namespace, "name": account}


@contextlib.contextmanager
def running(directory: Path, externals: Externals, setup: Setup, *flags: str) -> Iterator[AccessServer]:
    """A server in process. A failed webhook is called again at once rather than after half a second."""
    impatient = replace(calling.BACKOFF, first=0.001)
    server = InProcess(directory, *externals.flags(), *flags)
    with mock.patch.object(calling, "BACKOFF", impatient), server.running():
        yield AccessServer(server, externals, setup)
