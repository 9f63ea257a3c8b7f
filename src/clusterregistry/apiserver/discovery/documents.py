"""Ready-encoded documents, and the answers that carry them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Document:
    """A body that never changes, its content type and its quoted entity tag (empty: not cacheable by tag)."""

    body: bytes
    content_type: str
    etag: str = ""

    @property
    def hash(self) -> str:
        """The entity tag as it stands in a URL: without quotes."""
        return self.etag.strip('"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to send: the lead-in and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def plain(document: Mapping[str, Any]) -> Document:
    """A JSON document in the order it is written, without an entity tag."""
    return Document(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE), JSON)


def tagged(body: bytes, *, content_type: str = JSON, tag_of: bytes | None = None) -> Document:
    """A document with an entity tag; ``tag_of`` is what the tag is computed from, if not the body."""
    return Document(body, content_type, quoted_digest(body if tag_of is None else tag_of))


def quoted_digest(content: bytes) -> str:
    """An entity tag as kube-apiserver makes them: the SHA-512 in upper-case hexadecimal digits."""
    return f'"{hashlib.sha512(content).hexdigest().upper()}"'


def answer(document: Document, *, if_none_match: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """200 with the document, or 304 without when the client has it already."""
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
