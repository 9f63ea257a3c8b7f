"""What differs from one kind to the next when an object is written.

The generic ``store`` does what all kinds share (metadata, generation, finalizers, conflicts) and asks
the strategy for the rest. Objects are wire dicts: the new one may be changed, the old one never.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.authn.user import User

Object = dict[str, Any]

Admit = Callable[[Object, Object | None], Awaitable[None]]
"""Takes the wanted object and the present one (None: there is none), and raises what the writer is refused with."""


class Admission(Protocol):
    """The rules of one kind."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises 403, 404, 503 and 504. ``name`` is that in the path, empty in a request to the collection."""


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
        """The top-level fields that writes through this endpoint do not reach: nobody owns them by such a write."""

    def prepare_for_create(self, obj: Object) -> None:
        """Sets what the server decides, drops what a client may not set (such as status)."""

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """The same for an update: what this endpoint may not change is taken from ``old``."""

    def validate(self, obj: Object) -> list[FieldError]:
        """Everything that is wrong with a new object, its metadata aside."""

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        """Everything that is wrong with a changed object, its metadata aside."""

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        """What the caller should know though it is accepted."""
