"""Merges kubeconfigs of registered clusters into one of a user. Pure: the file is read and written elsewhere.

Entries of the registry have an extension that says so. They are brought up to date; those of others are never touched,
and one of the same name is a collision. What a user has added to an entry of the registry stays: a credential, a
namespace, a proxy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.api.clusterregistry.kubeconfigs import ORIGIN
from clusterregistry.client.errors import printable
from clusterregistry.client.kubeconfig import KINDS

Object = dict[str, Any]

_SHOWN = 5
_NOT_A_CREDENTIAL = frozenset({"exec", "extensions"})
_AUTHORITIES = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")


class CollisionError(Exception):
    """Entries that the registry did not make have names of clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A kubeconfig after the merge, and the names of the contexts in it that are new or have changed."""

    document: Object
    added: Sequence[str]
    changed: Sequence[str]
    unchanged: Sequence[str]


def merge(document: Mapping[str, Any], made: Mapping[str, Any]) -> Merged:
    """The document with the entries of ``made``, in the places of those of the same name. Raises CollisionError.

    The current context stays; where there is none, it becomes that of ``made``.
    """
    _check(document, made)
    merged: Object = {"apiVersion": "v1", "kind": "Config", **document}
    changed: set[str] = set()
    for plural, singular in KINDS.items():
        before = {each["name"]: each for each in _named(document, plural)}
        wanted = {each["name"]: each for each in made[plural]}
        entries = [_updated(each, wanted, singular) for each in document.get(plural) or []]
        merged[plural] = entries
        changed |= {each["name"] for each in _named(merged, plural) if before[each["name"]] != each}
        changed |= wanted.keys() - before.keys()
        merged[plural] = entries + [each for name, each in wanted.items() if name not in before]
    merged["current-context"] = document.get("current-context") or made["current-context"]
    known = {each["name"] for each in _named(document, "contexts")}
    names = [each["name"] for each in made["contexts"]]
    return Merged(
        document=merged,
        added=[name for name in names if name not in known],
        changed=[name for name in names if name in known and name in changed],
        unchanged=[name for name in names if name not in changed],
    )


def renamed(made: Mapping[str, Any], prefix: str) -> Object:
    """The kubeconfig with a prefix before the name of each entry."""
    if not prefix:
        return dict(made)
    contexts = [
        {
            "name": prefix + each["name"],
            "context": {
                **each["context"],
                "cluster": prefix + each["context"]["cluster"],
                "user": prefix + each["context"]["user"],
            },
        }
        for each in made["contexts"]
    ]
    others = {
        plural: [{**each, "name": prefix + each["name"]} for each in made[plural]] for plural in ("clusters", "users")
    }
    current = made["current-context"]
    return {**made, **others, "contexts": contexts, "current-context": prefix + current if current else ""}


def _check(document: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    taken = {
        each["name"]: singular
        for plural, singular in KINDS.items()
        for each in _named(document, plural)
        if each["name"] in {wanted["name"] for wanted in made[plural]} and not _is_ours(each, singular)
    }
    if taken:
        shown = ", ".join(f'{singular} "{printable(name, 253)}"' for name, singular in sorted(taken.items())[:_SHOWN])
        more = f" and {len(taken) - _SHOWN} more" if len(taken) > _SHOWN else ""
        raise CollisionError(f"has entries of these names that are not of a registry: {shown}{more}")


def _updated(entry: Any, wanted: Mapping[str, Object], singular: str) -> Any:
    """An entry of the file, or what takes its place."""
    new = wanted.get(entry["name"]) if isinstance(entry, dict) and isinstance(entry.get("name"), str) else None
    if new is None:
        return entry
    old, content = entry[singular], new[singular]
    if singular == "user":
        has_own = any(old[each] for each in old.keys() - _NOT_A_CREDENTIAL)
        kept = {name: value for name, value in old.items() if has_own or name not in _NOT_A_CREDENTIAL}
        added = {"extensions": content["extensions"]} if has_own else content
    else:
        kept = {name: value for name, value in old.items() if singular != "cluster" or name not in _AUTHORITIES}
        added = content
    return {"name": entry["name"], singular: {**kept, **added}}


def _named(document: Mapping[str, Any], plural: str) -> list[Object]:
    listed = document.get(plural) or []
    return [each for each in listed if isinstance(each, dict) and isinstance(each.get("name"), str)]


def _is_ours(entry: Mapping[str, Any], singular: str) -> bool:
    content = entry.get(singular)
    extensions = content.get("extensions") if isinstance(content, dict) else None
    return isinstance(extensions, list) and any(
        isinstance(each, dict) and each.get("name") == ORIGIN for each in extensions
    )
