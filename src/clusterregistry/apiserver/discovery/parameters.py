"""The query parameters of the API, by what they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterregistry.apimachinery.schema.schemas import Boolean, Integer, Schema, String

LONGEST_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter; its schema is one of a single value and carries the description."""

    name: str
    schema: Schema
    location: Literal["query", "path"] = "query"

    @property
    def required(self) -> bool:
        return self.location == "path"


def _text(name: str, description: str, *values: str) -> Parameter:
    return Parameter(name=name, schema=String(description=description, enum=values))


def _number(name: str, description: str, *, minimum: int | None = None) -> Parameter:
    return Parameter(name=name, schema=Integer(description=description, minimum=minimum))


def _flag(name: str, description: str) -> Parameter:
    return Parameter(name=name, schema=Boolean(description=description))


PRETTY = _text("pretty", "true: the answer is indented.")

FORCE = _flag("force", "Apply only: take fields over from other managers.")

DRY_RUN = _text("dryRun", "All: do everything but store the outcome.", "All")

READ = (_text("resourceVersion", "How recent the answer must be; empty means the latest."),)

WRITE = (
    DRY_RUN,
    Parameter(
        name="fieldManager",
        schema=String(description="Who makes the change; by default the first part of the User-Agent.", max_length=128),
    ),
    _text(
        "fieldValidation",
        "What happens to unknown or duplicate fields: dropped silently, dropped with a warning, or the request fails.",
        "Ignore",
        "Warn",
        "Strict",
    ),
)

LIST = (
    _text("labelSelector", "Only objects whose labels match."),
    _text("fieldSelector", "Only objects whose fields match."),
    _number("limit", "At most so many items in one answer; more follow through continue."),
    _text("continue", "The value of metadata.continue in the page before."),
    _text("resourceVersion", "Which state to show, together with resourceVersionMatch."),
    _text("resourceVersionMatch", "How resourceVersion is meant.", "Exact", "NotOlderThan"),
    _number("timeoutSeconds", "After so many seconds the request ends."),
)

WATCH = (
    _flag("watch", "Follow changes as a stream of events instead of an answer with a list."),
    _flag("allowWatchBookmarks", "Send BOOKMARK events too, which tell how far the stream has come."),
    _flag("sendInitialEvents", "Start with an ADDED event for each object there is, then a bookmark that says so."),
)

DELETE = (
    DRY_RUN,
    _number("gracePeriodSeconds", "Seconds for a graceful end; 0 means at once.", minimum=0),
    _flag("orphanDependents", "Deprecated: use propagationPolicy."),
    _text("propagationPolicy", "What becomes of dependents.", "Orphan", "Background", "Foreground"),
)
