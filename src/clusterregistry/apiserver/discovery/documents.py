"""Encoded documents, their entity tags, and the negotiation of their media types.

Negotiation differs from that of resources: the OpenAPI endpoints compare type and subtype only, and the group endpoints
know one transformation, to aggregated discovery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from clusterregistry.apimachinery.codecs.media_types import clauses

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Document:
    """A body that never changes, its content type and its quoted entity tag (empty: not cacheable by tag)."""

    body: bytes
    content_type: str
    etag: str = ""

    @property
    def hash(self) -> str:
        """The entity tag without quotes, as in a URL."""
        return self.etag.strip('"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def plain(document: Mapping[str, Any]) -> Document:
    """A JSON document in the order of the dict, without an entity tag."""
    return Document(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE), JSON)


def tagged(body: bytes, *, content_type: str = JSON, tag_of: bytes | None = None) -> Document:
    """A document with an entity tag; ``tag_of`` is what the tag is computed from, if not the body."""
    return Document(body, content_type, quoted_digest(body if tag_of is None else tag_of))


def quoted_digest(content: bytes) -> str:
    """An entity tag as kube-apiserver makes them: the SHA-512 in upper-case hexadecimal digits."""
    return f'"{hashlib.sha512(content).hexdigest().upper()}"'


def answer(document: Document, *, if_none_match: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """200 with the document, or 304 if the client has it already."""
    sent = {"Content-Type": document.content_type} | dict(headers or {})
    if document.etag:
        sent["ETag"] = document.etag
        if _matches(if_none_match, document.etag):
            del sent["Content-Type"]
            return Answer(status=304, headers=sent)
    return Answer(status=200, headers=sent, body=document.body)


def _matches(if_none_match: str, etag: str) -> bool:
    candidates = (candidate.strip().removeprefix("W/") for candidate in if_none_match.split(","))
    return any(candidate in ("*", etag) for candidate in candidates)


_TRANSFORMING = frozenset({"g", "v", "as"})
PLAIN = ("application/json", "application/yaml")


def preferred(accept: str, offered: Sequence[str]) -> str | None:
    """The media type to answer with, whatever the parameters; None is a 406."""
    for clause in clauses(accept):
        for media_type in offered:
            if clause.matches(media_type):
                return media_type
    return None


def plain_media_type(accept: str) -> str | None:
    """The media type for a plain document; None is a 406. Clauses that ask for another form are ignored."""
    for clause in clauses(accept):
        if _TRANSFORMING.isdisjoint(clause.parameters):
            for media_type in PLAIN:
                if clause.matches(media_type):
                    return media_type
    return None


def aggregated_version(accept: str, versions: Sequence[str]) -> str | None:
    """The version of APIGroupDiscoveryList that is preferred to a plain document; None for the plain one.

    As in kube-apiserver clauses with an unknown transformation are ignored.
    """
    for clause in clauses(accept):
        if _TRANSFORMING.isdisjoint(clause.parameters):
            if any(clause.matches(media_type) for media_type in PLAIN):
                return None
        elif clause.matches("application/json") and _is_aggregated(clause.parameters):
            version = clause.parameters.get("v", "")
            if version in versions:
                return version
    return None


def _is_aggregated(parameters: Mapping[str, str]) -> bool:
    return parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("as") == "APIGroupDiscoveryList"
