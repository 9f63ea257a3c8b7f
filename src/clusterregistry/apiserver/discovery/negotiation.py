"""Which of the offered media types an ``Accept`` header asks for.

Discovery differs from the resources: the OpenAPI endpoints compare type and subtype only, and the
group endpoints know one transformation, to aggregated discovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apimachinery.codecs.media_types import clauses

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
    """The media type for a document of one form; None is a 406. A clause that asks for another form is passed over."""
    for clause in clauses(accept):
        if _TRANSFORMING.isdisjoint(clause.parameters):
            for media_type in PLAIN:
                if clause.matches(media_type):
                    return media_type
    return None


def aggregated_version(accept: str, versions: Sequence[str]) -> str | None:
    """The version of APIGroupDiscoveryList that is wanted before anything plain; None for the plain documents.

    As kube-apiserver does: a clause that asks for a transformation it does not know is passed over.
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
