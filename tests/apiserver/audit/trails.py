"""Requests, policies and logs for tests of the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.audit.policy import Recording
from clusterregistry.apiserver.audit.settings import Level
from clusterregistry.apiserver.audit.trail import Trail
from clusterregistry.apiserver.authn.user import User, authenticated
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request
from tests.apiserver.api.objects import CLUSTERS

JANE = authenticated(name="jane", uid="42", groups=["editors"])
RECEIVED = 1_900_000_000.25

Event = dict[str, Any]


class Sent(Request):
    """A request that has come, and its body."""

    def __init__(
        self,
        method: str = "GET",
        target: str = CLUSTERS,
        *,
        body: bytes = b"",
        user: User | None = JANE,
        **headers: str,
    ) -> None:
        path, _, query = target.partition("?")
        super().__init__(
            method=method,
            path=path,
            query_string=query.encode(),
            headers={name.replace("_", "-"): value.encode().decode("latin-1") for name, value in headers.items()},
            client_address="127.0.0.1",
        )
        self.info = request_info.parse(self.method, self.path, self.query_string)
        self.id, self.received_at = "the-id", RECEIVED
        self.user = user  # type: ignore[assignment]
        self._body = body

    async def read_body(self) -> tuple[bytes, bool]:
        return self._body, False

    async def disconnected(self) -> None:
        raise NotImplementedError


def trail(request: Sent, level: Level = Level.RequestResponse, **recording: Any) -> Trail:
    """The trail of a request whose body was read."""
    made = Trail(request, Recording(level=level, **recording))
    if request.body_observer is not None:
        request.body_observer(request._body)
    return made


def policy_file(directory: Path, *rules: dict[str, Any], **fields: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "policy.yaml"
    content = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **fields}
    path.write_text(json.dumps(content))
    return path


def flags(directory: Path, *rules: dict[str, Any], **fields: Any) -> list[str]:
    """The flags of a server that records as these rules say."""
    policy = policy_file(directory, *rules, **fields)
    return ["--audit-policy-file", str(policy), "--audit-log-path", str(directory / "audit.log")]


def events(directory: Path) -> list[Event]:
    """Everything in the log: each line must be an event."""
    text = (directory / "audit.log").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]
