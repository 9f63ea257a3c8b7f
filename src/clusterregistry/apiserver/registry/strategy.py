"""The strategy of a kind: its own rules for objects that are written, as in k8s.io/apiserver.

``store`` and ``object_rules`` do what all kinds share (metadata, generation, finalizers, conflicts). Objects are wire
dicts: the new one may be changed, the old one never.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.authn.user import User

Object = dict[str, Any]

Admit = Callable[[Object, Object | None], Awaitable[None]]
"""Takes the new object and the stored one (None: there is none). Raises APIError to refuse the write."""


class Admission(Protocol):
    """Decides whether a user may write an object with this content, for kinds where that depends on the object."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises 403, 404, 503 and 504. ``name`` is the one in the path, empty in a request to the collection."""


class AdmissionChain:
    """Several admissions of one write, in their order."""

    def __init__(self, *admissions: Admission) -> None:
        self._admissions = admissions

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises what the first one raises that refuses."""
        for each in self._admissions:
            await each.admit(obj, old, user=user, name=name)


class Strategy(Protocol):
    """The rules of one kind. Methods are pure and synchronous."""

    @property
    def allow_create_on_update(self) -> bool:
        """Whether PUT to a name that does not exist creates it."""

    @property
    def allow_unconditional_update(self) -> bool:
        """Whether PUT may leave the resource version out."""

    @property
    def reset_fields(self) -> frozenset[str]:
        """The fields that a write through this endpoint does not change: it does not own them either.

        Names of top-level fields, or paths such as ``status.conditions``.
        """

    def prepare_for_create(self, obj: Object) -> None:
        """Sets the fields that the server decides, drops those that a client may not set (such as status)."""

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """The same for an update: fields that this endpoint may not change are taken from ``old``."""

    def validate(self, obj: Object) -> list[FieldError]:
        """Everything that is wrong with a new object, its metadata aside."""

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        """Everything that is wrong with a changed object, its metadata aside."""

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        """Warnings for the client, though the object is accepted."""


CheckDelete = Callable[[Object], str]
"""Says why an object must not be deleted, and how it can be; empty if it may be deleted."""


class DeletionStrategy(Protocol):
    """The rules of a kind whose deletion is more than that of its metadata, such as Namespace."""

    def is_held(self, obj: Object) -> bool:
        """Whether something besides ``metadata.finalizers`` holds a deleted object."""

    def mark_deleted(self, obj: Object) -> None:
        """Sets the fields that show that an object is being deleted. Called again, it changes nothing."""
