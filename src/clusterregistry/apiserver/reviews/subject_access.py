"""SubjectAccessReview: may somebody do this? Asked by servers that leave their decisions to this one."""

from __future__ import annotations

from clusterregistry.api.authorization import GROUP
from clusterregistry.api.authorization.v1 import VERSION
from clusterregistry.api.authorization.v1.types import SUBJECT_ACCESS_REVIEW
from clusterregistry.api.authorization.v1.validation import validate_access
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.reviews.access_attributes import access_status, check
from clusterregistry.apiserver.reviews.interface import Object, answered, definition


class SubjectAccessReviews:
    definition = definition(group=GROUP, version=VERSION, kind="SubjectAccessReview", schema=SUBJECT_ACCESS_REVIEW)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, question: Object) -> None:
        check(question, validate_access(question.get("spec", {})))

    async def answer(self, question: Object, user: User) -> Object:  # noqa: ARG002 - whoever may ask, may ask for all
        spec = question.get("spec", {})
        return answered(question, await access_status(self._authorizer, spec, _subject(spec)))


def _subject(spec: Object) -> User:
    """The user of the question, in the groups that it names and in no other."""
    return User(
        spec.get("user", ""),
        spec.get("uid", ""),
        tuple(spec.get("groups", ())),
        {key: tuple(values) for key, values in spec.get("extra", {}).items()},
    )
