"""SelfSubjectAccessReview: may I do this? What ``kubectl auth can-i`` asks."""

from __future__ import annotations

from clusterregistry.api.authorization import GROUP
from clusterregistry.api.authorization.v1 import VERSION
from clusterregistry.api.authorization.v1.types import SELF_SUBJECT_ACCESS_REVIEW
from clusterregistry.api.authorization.v1.validation import validate_self_access
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.reviews.access_attributes import access_status, check
from clusterregistry.apiserver.reviews.interface import Object, answered, definition


class SelfSubjectAccessReviews:
    definition = definition(
        group=GROUP, version=VERSION, kind="SelfSubjectAccessReview", schema=SELF_SUBJECT_ACCESS_REVIEW
    )

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, question: Object) -> None:
        check(question, validate_self_access(question.get("spec", {})))

    async def answer(self, question: Object, user: User) -> Object:
        spec = question.get("spec", {})
        return answered(question, await access_status(self._authorizer, spec, user))
