"""Content negotiation: the representation that an ``Accept`` header asks for, and the media type of a body.

Besides JSON and YAML a client can ask for another kind in place of the object: ``as=Table`` (what
kubectl prints) and ``as=PartialObjectMetadata`` (``...List`` for a collection). The kinds of Kubernetes itself also
come in protobuf, as custom resources do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.codecs.media_types import Clause, clauses
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.request import Request

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = (JSON, YAML)
NATIVE = (JSON, YAML, PROTOBUF)
"""The media types of native kinds and of every Status."""

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

TABLE = "Table"
METADATA = "PartialObjectMetadata"
METADATA_LIST = "PartialObjectMetadataList"
_KINDS = {TABLE, METADATA, METADATA_LIST}
_VERSIONS = {"v1", "v1beta1"}
_TRANSFORMING = {"as", "g", "v"}
_STREAM = "watch"


@dataclass(frozen=True, slots=True)
class Representation:
    """A media type and, if another kind than the object itself is requested, that kind and its version."""

    media_type: str = JSON
    kind: str = ""
    version: str = ""
    pretty: bool = False
    is_plain: bool = field(init=False, compare=False)
    """The object itself in compact JSON: the stored bytes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_plain", not self.kind and not self.pretty and self.media_type == JSON)


PLAIN = Representation()


def negotiate(request: Request, *, native: bool) -> Representation:
    """The first representation in the ``Accept`` header that a kind has. Raises 406."""
    accept, user_agent = request.headers.get("accept", ""), request.headers.get("user-agent", "")
    wanted = _native_representation(accept) if native else _representation(accept)
    if wanted is None:
        raise errors.not_acceptable(NATIVE if native else ACCEPTED)
    return _PRETTY[wanted] if _wants_pretty(request, user_agent) else wanted


def negotiate_watch(request: Request, *, native: bool) -> Representation:
    """The representation of the objects of a watch: JSON, and for a native kind protobuf as well. Raises 406."""
    found = (_native_representation if native else _representation)(request.header("accept"))
    if found is None or found.media_type not in (JSON, PROTOBUF):
        offered = (JSON, PROTOBUF) if native else (JSON,)
        raise errors.not_acceptable([f"{media_type};stream={_STREAM}" for media_type in offered])
    return found


def negotiate_status(request: Request) -> Representation:
    """The representation of a Status, which is always sent and never as another kind."""
    accept, user_agent = request.headers.get("accept", ""), request.headers.get("user-agent", "")
    plain = _status_representation(accept)
    asked = _representation(accept)
    indented = asked.pretty if asked else True  # a client that accepts nothing of ours is a person with a browser
    return _PRETTY[plain] if indented or _wants_pretty(request, user_agent) else plain


def negotiate_itself(request: Request) -> Representation:
    """The representation of what has no tables and no list of metadata: JSON or YAML. Raises 406.

    A client that prefers a table, as kubectl does, gets the object.
    """
    accept, user_agent = request.headers.get("accept", ""), request.headers.get("user-agent", "")
    offered = (each for clause in clauses(accept) for each in ACCEPTED if clause.matches(each))
    media_type = next(offered, None)
    if media_type is None:
        raise errors.not_acceptable(ACCEPTED)
    return Representation(media_type, pretty=_wants_pretty(request, user_agent))


class _Pretty(dict[Representation, Representation]):
    """The indented form of each representation, made once."""

    def __missing__(self, plain: Representation) -> Representation:
        twin = Representation(plain.media_type, plain.kind, plain.version, pretty=True)
        return self.setdefault(plain, twin)


_PRETTY = _Pretty()


def _wants_pretty(request: Request, user_agent: str) -> bool:
    """As kube-apiserver does: on request, and for people with a browser or curl."""
    pretty = request.query.first("pretty") if request.query_string else ""
    if pretty:
        return pretty.lower() in ("1", "t", "true")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


@bounded_cache(512)
def _representation(accept: str) -> Representation | None:
    return _first_fitting(accept, ACCEPTED)


@bounded_cache(512)
def _native_representation(accept: str) -> Representation | None:
    return _first_fitting(accept, NATIVE)


@bounded_cache(512)
def _status_representation(accept: str) -> Representation:
    accepted = (media_type for clause in clauses(accept) for media_type in NATIVE if clause.matches(media_type))
    return Representation(next(accepted, JSON))


def _first_fitting(accept: str, offered: Sequence[str]) -> Representation | None:
    found = (_fitting(clause, offered) for clause in clauses(accept))
    return next((representation for representation in found if representation), None)


def _fitting(clause: Clause, offered: Sequence[str]) -> Representation | None:
    """The representation of a clause; None if it is not served. As in kube-apiserver unknown parameters are ignored."""
    media_type = next(filter(clause.matches, offered), None)
    parameters = clause.parameters
    if media_type is None or parameters.get("stream", _STREAM) not in {"", _STREAM}:
        return None
    pretty = parameters.get("pretty") == "1"
    if _TRANSFORMING.isdisjoint(parameters):
        return Representation(media_type, pretty=pretty)
    kind, version = parameters.get("as", ""), parameters.get("v", "")
    if kind not in _KINDS or version not in _VERSIONS or parameters.get("g") != "meta.k8s.io":
        return None
    if media_type == PROTOBUF:  # tables have no such form; clients name JSON next
        return None
    return Representation(media_type, kind, version, pretty=pretty)


def patch_type(content_type: str, *, native: bool = False) -> str:
    """The type of a patch. As in kube-apiserver its name is case-sensitive. Raises 415."""
    media_type = content_type.strip().partition(";")[0]
    if media_type not in PATCH_TYPES:
        if native:  # the router of kube-apiserver refuses it
            raise errors.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        raise errors.unsupported_media_type(PATCH_TYPES)
    return media_type


def body_type(content_type: str, *, native: bool = False) -> str:
    """The media type of a body of a kind; a missing one is JSON. Raises 415."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    accepted = NATIVE if native else ACCEPTED
    if media_type not in accepted:
        raise errors.unsupported_media_type(accepted)
    return media_type
