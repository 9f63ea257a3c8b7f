"""The port of authorization: what is asked, and what is answered."""

from __future__ import annotations

import enum
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from clusterregistry.authn.users import User


class Verdict(enum.Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; ``reason`` is for the user who is refused, and for the audit log."""

    verdict: Verdict
    reason: str = ""

    @property
    def allowed(self) -> bool:
        """Only an explicit ALLOW lets a request pass."""
        return self.verdict is Verdict.ALLOW


ALLOW = Decision(Verdict.ALLOW)
DENY = Decision(Verdict.DENY)
NO_OPINION = Decision(Verdict.NO_OPINION)


@dataclass(slots=True, kw_only=True)  # one for each request: frozen would make it four times as dear
class Attributes:
    """What a user wants to do. Never changed.

    A resource request has ``group`` ... ``namespace``; any other has only its ``path``, and as ``verb`` the HTTP
    method in lower case.
    """

    user: User
    verb: str
    is_resource_request: bool
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""


class Authorizer(Protocol):
    """Somebody with an opinion on who may do what."""

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """ALLOW and DENY are final; NO_OPINION passes the question on. Must not block and must not raise.

        Who has to ask somebody else first answers with an awaitable; who knows the answer gives it at once.
        """
        ...


async def decided(authorizer: Authorizer, attributes: Attributes) -> Decision:
    """The decision, whether it has to be waited for or not: for those who ask besides the way of a request."""
    decision = authorizer.authorize(attributes)
    return decision if isinstance(decision, Decision) else await decision
