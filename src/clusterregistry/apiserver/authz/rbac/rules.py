"""One rule of a role, and what it allows in kube-apiserver's reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A PolicyRule: verbs on resources, on paths that are no resources, or on both."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    """Empty: all names."""
    non_resource_urls: tuple[str, ...] = ()
    names: frozenset[str] = field(init=False, repr=False, compare=False)
    """The resource names as a set: there may be thousands."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(self.resource_names))

    @classmethod
    def from_wire(cls, rule: Mapping[str, Any]) -> Self:
        """From the validated wire form."""
        return cls(
            verbs=tuple(rule.get("verbs") or ()),
            api_groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            resource_names=tuple(rule.get("resourceNames") or ()),
            non_resource_urls=tuple(rule.get("nonResourceURLs") or ()),
        )

    def allows_on_some(self, verb: str, *, group: str, resource: str, subresource: str) -> bool:
        """Whether it allows the verb on this resource, for all objects or for those that it names."""
        return (
            _one_of(self.verbs, verb) and _one_of(self.api_groups, group) and self._has_resource(resource, subresource)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        return _one_of(self.verbs, verb) and any(covers_path(url, path) for url in self.non_resource_urls)

    def _has_resource(self, resource: str, subresource: str) -> bool:
        # There is no pattern for all subresources of one resource: "clusters/*" is a name like any other.
        if not subresource:
            return _one_of(self.resources, resource)
        return _one_of(self.resources, f"{resource}/{subresource}") or f"{ANY}/{subresource}" in self.resources


def rules_from_wire(rules: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """The rules of a role; a role may have none."""
    return tuple(Rule.from_wire(rule) for rule in rules or ())


def covers_path(url: str, path: str) -> bool:
    """Whether a URL of a rule matches a path: an equal one, or with ``*`` at its end any with that prefix."""
    return url == path or (url.endswith(ANY) and path.startswith(url.rstrip(ANY)))


def _one_of(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ANY in values
