"""SelfSubjectReview: who am I? What ``kubectl auth whoami`` asks."""

from __future__ import annotations

from collections.abc import Callable

from clusterregistry.api.authentication import GROUP
from clusterregistry.api.authentication.v1 import VERSION
from clusterregistry.api.authentication.v1.types import SELF_SUBJECT_REVIEW
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.reviews.interface import Object, definition, user_info


class SelfSubjectReviews:
    """``now`` is the time on the wire."""

    definition = definition(group=GROUP, version=VERSION, kind="SelfSubjectReview", schema=SELF_SUBJECT_REVIEW)

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now

    def validate(self, question: Object) -> None:
        """Nothing is asked but who one is."""

    async def answer(self, question: Object, user: User) -> Object:
        return {
            "kind": question["kind"],
            "apiVersion": question["apiVersion"],
            "metadata": {"creationTimestamp": self._now()},
            "status": {"userInfo": user_info(user)},
        }
