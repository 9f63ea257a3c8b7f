"""Errors of an apply.

ApplyError
InvalidConfigurationError   the configuration does not fit the schema
ConflictsError              it would change fields of other managers
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.apimachinery.fieldmanager.field_set import Fields, paths
from clusterregistry.apimachinery.fieldmanager.managed_fields import UPDATE, Identity
from clusterregistry.apimachinery.meta.field_errors import quoted


class ApplyError(Exception):
    """The configuration was not applied."""


class InvalidConfigurationError(ApplyError):
    """The configuration does not fit the schema. The message is kube-apiserver's."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field of another manager. ``manager`` is its description in kube-apiserver's messages."""

    field: str
    manager: str


class ConflictsError(ApplyError):
    """The apply would change fields of other managers. The message lists them all, as kube-apiserver does."""

    def __init__(self, message: str, conflicts: list[Conflict]) -> None:
        super().__init__(message)
        self.conflicts = conflicts


def conflicts_error(conflicting: dict[Identity, Fields]) -> ConflictsError:
    """The error for these fields of these managers. There must be one at least."""
    found: list[Conflict] = []
    lines: list[str] = []
    for identity in sorted(conflicting, key=lambda each: each.sort_key):
        manager, fields = _described(identity), list(paths(conflicting[identity]))
        found += [Conflict(field, manager) for field in fields]
        lines += [f"conflicts with {manager}:", *(f"- {field}" for field in fields)]
    if len(found) == 1:
        only = found[0]
        return ConflictsError(f"Apply failed with 1 conflict: conflict with {only.manager}: {only.field}", found)
    return ConflictsError(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), found)


def _described(identity: Identity) -> str:
    described = quoted(identity.manager)
    if identity.subresource:
        described += f" with subresource {quoted(identity.subresource)}"
    if identity.operation == UPDATE:
        described += f" using {identity.api_version}"
    return described
