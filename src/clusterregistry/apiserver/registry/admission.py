"""Who may write what, where that depends on the object: asked between preparing an object and validating it.

Whether a user may write to a resource at all is authorization, decided long before. Few kinds ask more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from clusterregistry.apiserver.authn.user import User

Object = dict[str, Any]

Admit = Callable[[Object, Object | None], Awaitable[None]]
"""Takes the wanted object and the present one (None: there is none), and raises what the writer is refused with."""


class Admission(Protocol):
    """The rules of one kind."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises 403, 404, 503 and 504. ``name`` is that in the path, empty in a request to the collection."""
