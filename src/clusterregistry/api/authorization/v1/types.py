"""The types of the access reviews and of SelfSubjectRulesReview."""

from __future__ import annotations

from clusterregistry.api.authentication.v1.types import EXTRA
from clusterregistry.apimachinery.meta.label_selector_objects import REQUIREMENT
from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Object, Schema, String


def _text(description: str) -> String:
    return String(description=description)


def _texts(description: str) -> Array:
    return Array(items=String(), description=description)


def _selector(what: str, *, requirement: Object) -> Object:
    return Object(
        type_name=requirement.type_name.replace("Requirement", "Attributes"),
        description=f"The selector of {what} that limits what is asked for: as text or as requirements.",
        fields={
            "rawSelector": _text("RawSelector is the selector as it stands in a query."),
            "requirements": Array(description="Requirements must all be met.", items=requirement),
        },
    )


_FIELD_REQUIREMENT = Object(
    type_name="v1.FieldSelectorRequirement",
    description="Requirement is a condition on one field.",
    required=("key", "operator"),
    fields={
        "key": _text("Key names one of the fields."),
        "operator": _text("Operator is In, NotIn, Exists or DoesNotExist."),
        "values": _texts("Values are those of In and NotIn."),
    },
)


_ATTRIBUTES: dict[str, Schema] = {
    "resourceAttributes": Object(
        type_name="v1.ResourceAttributes",
        description="ResourceAttributes describe access to a resource.",
        fields={
            "namespace": _text("Namespace of the objects; empty for resources without, or for all namespaces."),
            "verb": _text("Verb is the action, such as get, list, create or delete; * is all of them."),
            "group": _text("Group is the API group of the resource; * is all of them."),
            "version": _text("Version of the API group; * is all of them."),
            "resource": _text("Resource is the plural name; * is all of them."),
            "subresource": _text("Subresource, such as status."),
            "name": _text("Name of the object; empty for all."),
            "fieldSelector": _selector("fields", requirement=_FIELD_REQUIREMENT),
            "labelSelector": _selector("labels", requirement=REQUIREMENT),
        },
    ),
    "nonResourceAttributes": Object(
        type_name="v1.NonResourceAttributes",
        description="NonResourceAttributes describe access to a path that is not a resource.",
        fields={"path": _text("Path of the request."), "verb": _text("Verb is the HTTP method in lower case.")},
    ),
}

_ACCESS_STATUS = Object(
    type_name="v1.SubjectAccessReviewStatus",
    description="Status is filled in by the server.",
    required=("allowed",),
    fields={
        "allowed": Boolean(description="Allowed is true if the action is allowed."),
        "denied": Boolean(description="Denied is true if an authorizer denies the action, which no other can allow."),
        "reason": _text("Reason is why the action is allowed or denied."),
        "evaluationError": _text("EvaluationError is an error of the evaluation."),
    },
)

SELF_SUBJECT_ACCESS_REVIEW = Object(
    description="SelfSubjectAccessReview checks whether the current user may perform an action.",
    required=("spec",),
    fields={
        "spec": Object(
            type_name="v1.SelfSubjectAccessReviewSpec",
            description="Spec has one of the two attributes.",
            fields=_ATTRIBUTES,
        ),
        "status": _ACCESS_STATUS,
    },
)

SUBJECT_ACCESS_REVIEW = Object(
    description="SubjectAccessReview checks whether a user may perform an action.",
    required=("spec",),
    fields={
        "spec": Object(
            type_name="v1.SubjectAccessReviewSpec",
            description="Spec has one of the two attributes, and a user or groups.",
            fields={
                **_ATTRIBUTES,
                "user": _text("User is the name of the user."),
                "groups": _texts("Groups are those that the user is a member of; none are assumed."),
                "extra": EXTRA,
                "uid": _text("UID of the user."),
            },
        ),
        "status": _ACCESS_STATUS,
    },
)

LOCAL_SUBJECT_ACCESS_REVIEW = Object(
    description="LocalSubjectAccessReview checks whether a user may perform an action in the namespace of the review.",
    required=SUBJECT_ACCESS_REVIEW.required,
    fields=SUBJECT_ACCESS_REVIEW.fields,
)

SELF_SUBJECT_RULES_REVIEW = Object(
    description="SelfSubjectRulesReview lists actions that the current user may perform, as far as known.",
    required=("spec",),
    fields={
        "spec": Object(
            type_name="v1.SelfSubjectRulesReviewSpec",
            description="Spec has the namespace.",
            fields={"namespace": _text("Namespace in which the rules count. Required.")},
        ),
        "status": Object(
            type_name="v1.SubjectRulesReviewStatus",
            description="Status is filled in by the server.",
            required=("resourceRules", "nonResourceRules", "incomplete"),
            fields={
                "resourceRules": Array(
                    description="ResourceRules are on resources.",
                    items=Object(
                        type_name="v1.ResourceRule",
                        description="ResourceRule allows verbs on resources.",
                        required=("verbs",),
                        fields={
                            "verbs": _texts("Verbs that are allowed; * is all."),
                            "apiGroups": _texts("APIGroups of the resources; * is all."),
                            "resources": _texts("Resources, also with their subresource after a slash; * is all."),
                            "resourceNames": _texts("ResourceNames limit the rule to objects of these names."),
                        },
                    ),
                ),
                "nonResourceRules": Array(
                    description="NonResourceRules are on paths.",
                    items=Object(
                        type_name="v1.NonResourceRule",
                        description="NonResourceRule allows verbs on paths that are no resources.",
                        required=("verbs",),
                        fields={
                            "verbs": _texts("Verbs that are allowed: HTTP methods in lower case; * is all."),
                            "nonResourceURLs": _texts("NonResourceURLs are paths; one may end in * ."),
                        },
                    ),
                ),
                "incomplete": Boolean(description="Incomplete is true if the lists may be incomplete."),
                "evaluationError": _text("EvaluationError is an error of the evaluation."),
            },
        ),
    },
)
