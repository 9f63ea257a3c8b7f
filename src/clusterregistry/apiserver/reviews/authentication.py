"""SelfSubjectReview (``kubectl auth whoami``) and TokenReview of ``authentication.k8s.io``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from clusterregistry.api.authentication import GROUP
from clusterregistry.api.authentication.v1 import VERSION
from clusterregistry.api.authentication.v1.types import SELF_SUBJECT_REVIEW, TOKEN_REVIEW
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.interface import Outcome
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.reviews.interface import Object, answered, definition, user_info


class SelfSubjectReviews:
    """Answers who the user is. ``now`` is the current time in the format of the API."""

    definition = definition(group=GROUP, version=VERSION, kind="SelfSubjectReview", schema=SELF_SUBJECT_REVIEW)

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now

    def validate(self, question: Object) -> None:
        """Accepts everything: the review has no spec."""

    async def answer(self, question: Object, user: User) -> Object:
        return {
            "kind": question["kind"],
            "apiVersion": question["apiVersion"],
            "metadata": {"creationTimestamp": self._now()},
            "status": {"userInfo": user_info(user)},
        }


_REFUSED = {"user": {}, "error": "invalid bearer token"}


class TokenSource(Protocol):
    """An authenticator of bearer tokens."""

    def user_of(self, token: str) -> Outcome | Awaitable[Outcome]:
        """The user of a token; None for an unknown token."""
        ...


class TokenReviews:
    """Authenticates a token by the first source that knows it. ``audiences`` are those of this server's tokens.

    As in kube-apiserver our tokens name no audience themselves: for any other audience the token is not authenticated.
    """

    definition = definition(group=GROUP, version=VERSION, kind="TokenReview", schema=TOKEN_REVIEW)

    def __init__(self, sources: Sequence[TokenSource], *, audiences: Sequence[str] = ()) -> None:
        self._sources = tuple(sources)
        self._audiences = tuple(audiences)

    def validate(self, question: Object) -> None:
        if not question.get("spec", {}).get("token"):
            raise errors.bad_request("token is required for TokenReview in authentication")

    async def answer(self, question: Object, user: User) -> Object:  # noqa: ARG002 - not limited to tokens of the user
        return answered(question, await self._status(question["spec"]))

    async def _status(self, spec: Object) -> Object:
        wanted = spec.get("audiences", self._audiences)
        audiences = [audience for audience in self._audiences if audience in wanted]
        if wanted and not audiences:
            return _REFUSED
        owner = await self._owner(spec["token"])
        if owner is None:
            return _REFUSED
        status: Object = {"authenticated": True, "user": user_info(owner)}
        return status | ({"audiences": audiences} if audiences else {})

    async def _owner(self, token: str) -> User | None:
        for source in self._sources:
            found = source.user_of(token)
            user = found if found is None or isinstance(found, User) else await found
            if user is not None:
                return user
        return None
