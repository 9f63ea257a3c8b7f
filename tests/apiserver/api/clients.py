"""The client that tests use, in process and over TLS alike.

``InProcess`` and ``OverTLS`` are its two implementations; the fixture ``client`` is one after the other.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from tests.apiserver.api.objects import CLUSTERS, MERGE_PATCH
from tools import live_server

ADMIN_TOKEN, TOKENS = live_server.ADMIN_TOKEN, live_server.TOKENS
NOBODY = {"Authorization": "Bearer nobodytoken"}
VIEWER = {"Authorization": "Bearer viewertoken"}
"""Headers of users without any rights; the second is in a group."""

PATIENCE = 60.0
"""Seconds to wait for something that should happen at once. The machine may be busy."""

Headers = Mapping[str, str | None]
Event = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers."""
        values = [value for key, value in self.headers if key.lower() == "warning"]
        return [_unquoted(value.removeprefix("299 - ")) for value in values]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def expect(self, status: int) -> Any:
        """The decoded body of an answer that must have this status."""
        assert self.status == status, f"{self.status}: {self.body[:2000]!r}"
        return self.json

    def refused(self, status: int, reason: str) -> dict[str, Any]:
        """The Status of an answer that must be this failure."""
        body: dict[str, Any] = self.expect(status)
        assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", status)
        assert body.get("reason") == reason, body
        return body


def _unquoted(text: str) -> str:
    assert text[0] == text[-1] == '"'
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def causes(status: dict[str, Any]) -> list[tuple[str, str]]:
    """The fields and reasons of a 422."""
    return [(cause["field"], cause["reason"]) for cause in status["details"]["causes"]]


class Watch(abc.ABC):
    """An open watch. A read that waits for too long fails the test."""

    status: int
    content_type: str

    @abc.abstractmethod
    def line(self) -> bytes:
        """The next line; empty at the end of the stream."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the connection, as a client does that disconnects."""

    def next(self) -> Event:
        line = self.line()
        assert line, "the watch ended"
        event: Event = json.loads(line)
        return event

    def take(self, count: int) -> list[Event]:
        return [self.next() for _ in range(count)]

    def rest(self) -> list[Event]:
        """Everything up to the end of the stream."""
        return list(self)

    def __iter__(self) -> Iterator[Event]:
        while line := self.line():
            yield json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client(abc.ABC):
    """Sends requests as the administrator, unless headers say otherwise."""

    @abc.abstractmethod
    def exchange(self, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """One request and its answer."""

    @abc.abstractmethod
    def open_watch(self, target: str, *, headers: list[tuple[str, str]]) -> Watch:
        """A GET whose answer is read as it comes."""

    def request(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, headers: Any = None
    ) -> Answer:
        """A body that is not bytes is sent as JSON; a header that is None is left out."""
        encoded = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent: dict[str, str | None] = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        if body is not None:
            sent["Content-Type"] = "application/json"
        return self.exchange(method, _target(path, query), headers=_present(sent, headers), body=encoded)

    # Keywords of these are the parameters of the query. (Headers are Any so that a dict of them can be passed on.)

    def get(self, path: str, *, headers: Any = None, **query: Any) -> Answer:
        return self.request("GET", path, query=query, headers=headers)

    def post(self, path: str, body: Any, *, headers: Any = None, **query: Any) -> Answer:
        return self.request("POST", path, query=query, body=body, headers=headers)

    def put(self, path: str, body: Any, *, headers: Any = None, **query: Any) -> Answer:
        return self.request("PUT", path, query=query, body=body, headers=headers)

    def patch(self, path: str, body: Any, *, kind: str = MERGE_PATCH, headers: Any = None, **query: Any) -> Answer:
        sent = {"Content-Type": kind, **(headers or {})}
        return self.request("PATCH", path, query=query, body=body, headers=sent)

    def delete(self, path: str, body: Any = None, *, headers: Any = None, **query: Any) -> Answer:
        return self.request("DELETE", path, query=query, body=body, headers=headers)

    def watch(self, path: str, *, headers: Any = None, **query: Any) -> Watch:
        """A watch of a collection; an older ``/watch/`` path needs no parameter."""
        query = query if "/watch/" in path else {"watch": "true", **query}
        sent: Headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        return self.open_watch(_target(path, query), headers=_present(sent, headers))


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def _present(usual: Headers, given: Headers | None) -> list[tuple[str, str]]:
    """The given headers replace the usual ones, and None removes one."""
    return [(name, value) for name, value in {**usual, **(given or {})}.items() if value is not None]


def latest_version(client: Client) -> str:
    """The resource version of a list of all clusters."""
    version: str = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
    return version


def summary(events: Sequence[Event]) -> list[tuple[str, str]]:
    """The type of each event, and the name of its object."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def empty(client: Client, collection: str) -> None:
    """Removes every object, also those that finalizers hold."""
    for item in client.get(collection).expect(200)["items"]:
        if item["metadata"].get("finalizers"):
            path, freed = f"{collection}/{item['metadata']['name']}", {"metadata": {"finalizers": None}}
            assert client.patch(path, freed).status in (200, 404)  # garbage collection may have been faster
    client.delete(collection).expect(200)
