"""SelfSubjectRulesReview: what may I do? What ``kubectl auth can-i --list`` asks."""

from __future__ import annotations

from clusterregistry.api.authorization import GROUP
from clusterregistry.api.authorization.v1 import VERSION
from clusterregistry.api.authorization.v1.types import SELF_SUBJECT_RULES_REVIEW
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import PathRule, ResourceRule, RuleLister, UserRules
from clusterregistry.apiserver.reviews.interface import Object, answered, definition


class SelfSubjectRulesReviews:
    """The namespace of the question must be given and changes nothing: all roles here are for all of the registry."""

    definition = definition(
        group=GROUP, version=VERSION, kind="SelfSubjectRulesReview", schema=SELF_SUBJECT_RULES_REVIEW
    )

    def __init__(self, rules: RuleLister) -> None:
        self._rules = rules

    def validate(self, question: Object) -> None:
        if not question.get("spec", {}).get("namespace"):
            raise errors.bad_request("no namespace on request")

    async def answer(self, question: Object, user: User) -> Object:
        # As kube-apiserver does: nothing of the question is repeated.
        return answered({**question, "metadata": {}, "spec": {}}, _status(self._rules.rules_of(user)))


def _status(rules: UserRules) -> Object:
    status: Object = {
        "resourceRules": [_resource_rule(rule) for rule in rules.resource_rules],
        "nonResourceRules": [_path_rule(rule) for rule in rules.path_rules],
        "incomplete": rules.incomplete,
    }
    if rules.problems:
        status["evaluationError"] = rules.problems[0] if len(rules.problems) == 1 else f"[{', '.join(rules.problems)}]"
    return status


def _resource_rule(rule: ResourceRule) -> Object:
    shown = {"apiGroups": rule.api_groups, "resources": rule.resources, "resourceNames": rule.resource_names}
    return {"verbs": list(rule.verbs)} | {name: list(values) for name, values in shown.items() if values}


def _path_rule(rule: PathRule) -> Object:
    return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}
