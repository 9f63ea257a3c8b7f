"""Which versions and resources are served: ``--runtime-config``, as in kube-apiserver.

From weak to strong: ``api/all``; ``api/ga``, ``api/beta`` and ``api/alpha``; a version of a group; a resource in it.
What is not served is still stored, and decoded where it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from clusterregistry.cli.options.problems import Problem, nearest
from clusterregistry.cli.options.value_types import BOOLEAN

if TYPE_CHECKING:
    from clusterregistry.apiserver.registry.resource import Definition, Resource, Version

Assignments = tuple[tuple[str, str], ...]

FLAG = "--runtime-config"
_ALL = "api/all"
_LEVELS = {
    _ALL: re.compile("v.*"),
    "api/ga": re.compile(r"v\d+", re.ASCII),
    "api/beta": re.compile(r"v\d+beta\d+", re.ASCII),
    "api/alpha": re.compile(r"v\d+alpha\d+", re.ASCII),
}
"""By key, the versions that it is for, the weakest first."""


class _Key(NamedTuple):
    """A version of a group, or a resource in it."""

    group: str
    version: str
    plural: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


def problems(given: Assignments) -> list[Problem]:
    """The mistakes in keys and values by themselves, every one of them."""
    found = [problem for name, value in given for problem in _problems(name, value)]
    if not found and dict(given) == {_ALL: "false"}:
        found.append(Problem(FLAG, f"with {_ALL}=false alone nothing would be served", "name what is to be served"))
    return found


def _problems(name: str, value: str) -> Iterable[Problem]:
    if name not in _LEVELS:
        try:
            _key(name)
        except ValueError as error:
            yield Problem(FLAG, str(error))
    try:
        BOOLEAN.parse(value)
    except ValueError as error:
        yield Problem(FLAG, f"{name}: {error}")


def unknown(given: Assignments, definitions: Iterable[Definition]) -> list[Problem]:
    """The groups and versions that the server does not have. As in kube-apiserver, any resource in one may be named."""
    known = {
        (each.group_of(version), version.name)
        for each in definitions
        for version in (*each.versions, *getattr(each, "unserved", ()))
    }
    groups, found = {group for group, _ in known}, []
    for key in (_key(name) for name, _ in given if name not in _LEVELS):
        if key.group not in groups:
            near = nearest(key.group, groups)
            found.append(Problem(FLAG, f'unknown API group "{key.group}"', f"did you mean {near}?" if near else ""))
        elif (key.group, key.version) not in known:
            served = ", ".join(sorted(version for group, version in known if group == key.group))
            found.append(Problem(FLAG, f'"{key.group}" has no version "{key.version}"', f"it has {served}"))
    return found


def served(resources: Sequence[Resource], given: Assignments) -> Sequence[Resource]:
    """The resources with the versions that are to be served. A resource without any is stored, but has no endpoints."""
    return [_with_served_versions(each, given) for each in resources] if given else resources


def is_served(given: Assignments, *, group: str, version: str, plural: str) -> bool:
    """Whether a resource is served in a version; all are that are not switched off."""
    values = {name: BOOLEAN.parse(value) for name, value in given}
    answer = True
    for level, pattern in _LEVELS.items():
        if level in values and pattern.fullmatch(version):
            answer = values[level]
    by_key = {_key(name): value for name, value in values.items() if name not in _LEVELS}
    of_version = by_key.get(_Key(group, version), answer)
    return by_key.get(_Key(group, version, plural), of_version)


def _with_served_versions(resource: Resource, given: Assignments) -> Resource:
    def stays(version: Version) -> bool:
        group = resource.group_of(version)
        return is_served(given, group=group, version=version.name, plural=resource.plural)

    kept = tuple(filter(stays, resource.versions))
    if len(kept) == len(resource.versions):
        return resource
    dropped = tuple(each for each in resource.versions if each not in kept)
    return replace(resource, versions=kept, unserved=(*resource.unserved, *dropped))


def _key(name: str) -> _Key:
    """The key of an assignment; ``v1`` is that of the core group. Raises ValueError."""
    group, version, *resource = name.split("/") if "/" in name else ("", name)
    if len(resource) > 1 or not version or (resource and not resource[0]):
        raise ValueError(f'"{name}" is not a key: write GROUP/VERSION, GROUP/VERSION/RESOURCE or {", ".join(_LEVELS)}')
    if resource and resource[0] != resource[0].lower():
        raise ValueError(f'"{name}": a resource is a plural in lower case, not "{resource[0]}"')
    return _Key(group, version, *resource)
