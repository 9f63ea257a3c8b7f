"""The reviews of ``authorization.k8s.io``: of the access of a user, everywhere or in a namespace, and of its rules."""

from __future__ import annotations

from collections.abc import Callable

from clusterregistry.api.authorization import GROUP
from clusterregistry.api.authorization.v1 import VERSION
from clusterregistry.api.authorization.v1.types import (
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)
from clusterregistry.api.authorization.v1.validation import (
    validate_access,
    validate_local_access,
    validate_metadata,
    validate_self_access,
)
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    Attributes,
    Authorizer,
    PathRule,
    ResourceRule,
    RuleLister,
    UserRules,
    Verdict,
    decided,
)
from clusterregistry.apiserver.authz.rbac.grants import aggregated
from clusterregistry.apiserver.reviews.interface import Object, answered, definition

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


async def access_status(authorizer: Authorizer, spec: Object, user: User) -> Object:
    """The status of an access review: the decision for a user and a valid spec."""
    decision = await decided(authorizer, _attributes(spec, user))
    status: Object = {"allowed": decision.allowed}
    if decision.verdict is Verdict.DENY:
        status["denied"] = True
    if decision.reason:
        status["reason"] = decision.reason
    if ignored := _ignored_selectors(spec.get("resourceAttributes", {})):
        status["evaluationError"] = "; ".join(ignored)
    return status


def check(found: list[FieldError]) -> None:
    """Refuses a review with errors. Raises 422, of no kind, as kube-apiserver does."""
    if found:
        raise errors.invalid(group=GROUP, kind="", name="", errors=found)


def _attributes(spec: Object, user: User) -> Attributes:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user=user, verb=path.get("verb", ""), is_resource_request=False, path=path.get("path", ""))
    return Attributes(
        user=user,
        verb=resource.get("verb", ""),
        is_resource_request=True,
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        name=resource.get("name", ""),
        namespace=resource.get("namespace", ""),
    )


def _ignored_selectors(attributes: Object) -> list[str]:
    """The errors of invalid selectors. None of our authorizers uses selectors, but invalid ones are reported."""
    found = []
    for name, count in (("fieldSelector", _bad_field_parts), ("labelSelector", _bad_label_parts)):
        selector = attributes.get(name)
        if selector is not None and (bad := count(selector)):
            partially = "partially " if bad < len(selector.get("requirements", ())) else ""
            found.append(f"spec.resourceAttributes.{name} {partially}ignored due to parse error")
    return found


def _bad_field_parts(selector: Object) -> int:
    """Field selectors support equality with one value only."""
    if "rawSelector" in selector:
        return _fails(lambda: parse_field_selector(selector["rawSelector"], supported=None))
    return sum(
        each["operator"] not in ("In", "NotIn") or len(each.get("values", ())) != 1 for each in selector["requirements"]
    )


def _bad_label_parts(selector: Object) -> int:
    if "rawSelector" in selector:
        return _fails(lambda: parse_label_selector(selector["rawSelector"]))
    return sum(each["operator"] not in _OPERATORS for each in selector["requirements"])


def _fails(parse: Callable[[], object]) -> int:
    try:
        parse()
    except SelectorError:
        return 1
    return 0


class SelfSubjectAccessReviews:
    definition = definition(
        group=GROUP, version=VERSION, kind="SelfSubjectAccessReview", schema=SELF_SUBJECT_ACCESS_REVIEW
    )

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, question: Object) -> None:
        check(validate_self_access(question.get("spec", {})) + validate_metadata(question["metadata"]))

    async def answer(self, question: Object, user: User) -> Object:
        spec = question.get("spec", {})
        return answered(question, await access_status(self._authorizer, spec, user))


class SelfSubjectRulesReviews:
    """Lists the rules of the user in a namespace, which is required."""

    definition = definition(
        group=GROUP, version=VERSION, kind="SelfSubjectRulesReview", schema=SELF_SUBJECT_RULES_REVIEW
    )

    def __init__(self, rules: RuleLister) -> None:
        self._rules = rules

    def validate(self, question: Object) -> None:
        if not question.get("spec", {}).get("namespace"):
            raise errors.bad_request("no namespace on request")

    async def answer(self, question: Object, user: User) -> Object:
        rules = self._rules.rules_of(user, namespace=question["spec"]["namespace"])
        # As in kube-apiserver the response does not repeat the spec.
        return answered({**question, "metadata": {}, "spec": {}}, _status(rules))


def _status(rules: UserRules) -> Object:
    status: Object = {
        "resourceRules": [_resource_rule(rule) for rule in rules.resource_rules],
        "nonResourceRules": [_path_rule(rule) for rule in rules.path_rules],
        "incomplete": rules.incomplete,
    }
    if rules.problems:
        status["evaluationError"] = aggregated(rules.problems)
    return status


def _resource_rule(rule: ResourceRule) -> Object:
    shown = {"apiGroups": rule.api_groups, "resources": rule.resources, "resourceNames": rule.resource_names}
    return {"verbs": list(rule.verbs)} | {name: list(values) for name, values in shown.items() if values}


def _path_rule(rule: PathRule) -> Object:
    return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}


class SubjectAccessReviews:
    definition = definition(group=GROUP, version=VERSION, kind="SubjectAccessReview", schema=SUBJECT_ACCESS_REVIEW)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, question: Object) -> None:
        check(validate_access(question.get("spec", {})) + validate_metadata(question["metadata"]))

    async def answer(self, question: Object, user: User) -> Object:  # noqa: ARG002 - not limited to the user itself
        spec = question.get("spec", {})
        return answered(question, await access_status(self._authorizer, spec, _subject(spec)))


class LocalSubjectAccessReviews(SubjectAccessReviews):
    """Answers in one namespace, so that an administrator of a namespace can be allowed to ask."""

    definition = definition(
        group=GROUP,
        version=VERSION,
        kind="LocalSubjectAccessReview",
        schema=LOCAL_SUBJECT_ACCESS_REVIEW,
        namespaced=True,
    )

    def validate(self, question: Object) -> None:
        check(validate_local_access(question.get("spec", {}), question["metadata"]))


def _subject(spec: Object) -> User:
    """The user in the spec, with exactly the groups named there."""
    return User(
        spec.get("user", ""),
        spec.get("uid", ""),
        tuple(spec.get("groups", ())),
        {key: tuple(values or ()) for key, values in spec.get("extra", {}).items()},
    )
