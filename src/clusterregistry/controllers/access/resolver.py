"""The port of resolvers: what they are given, what they return, and what they raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.access.credential_folder import is_plain_name
from clusterregistry.controllers.access.placeholders import PlaceholderError, PlaceholderValues, fill

PAUSE = 5.0
"""Seconds between two attempts for one cluster, where an attempt starts a process or calls a server."""


class ResolveError(Exception):
    """There is no credential; the message has no secret in it.

    ``gone``: a former credential must not be used either. ``pause``: seconds before another attempt is made.
    """

    def __init__(self, message: str, *, gone: bool = False, pause: float = 0.0) -> None:
        super().__init__(message)
        self.gone, self.pause = gone, pause


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveRequest:
    """For which cluster a credential is wanted."""

    values: PlaceholderValues
    file_key: str
    """KEY in the name of a file."""
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """KEY, which is a plain name of a file. Raises ResolveError."""
        if not is_plain_name(self.file_key):
            raise ResolveError("the key of the cluster is no plain file name: letters, digits, dots and dashes")
        return self.file_key

    def fill(self, text: str, *, is_code: bool = False) -> str:
        """The text with its placeholders filled. Raises ResolveError."""
        try:
            return fill(text, self.values, is_code=is_code)
        except PlaceholderError as error:
            raise ResolveError(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A credential as a resolver found it."""

    credential: Credential = field(repr=False)
    ends_at: float | None = None
    """Unix time, if the resolver was told. The end of a JWT or of a certificate is found without it."""
    keep_for: float | None = None
    """Seconds after which it is to be resolved again, whatever its end."""
    is_current: Callable[[], bool] | None = field(default=None, repr=False)
    """Whether the source is unchanged, at the cost of a ``stat``; None: only resolving again tells."""


class Resolver(Protocol):
    """Finds the credential of a cluster in one way."""

    async def resolve(self, request: ResolveRequest) -> Resolved:
        """The credential as it is now. Bounded in time. Raises ResolveError."""
        ...
