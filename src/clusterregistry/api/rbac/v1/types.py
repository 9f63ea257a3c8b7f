"""The schemas of Role, RoleBinding, ClusterRole and ClusterRoleBinding."""

from __future__ import annotations

from clusterregistry.apimachinery.meta.label_selector_objects import LABEL_SELECTOR
from clusterregistry.apimachinery.schema.schemas import Array, Object, String

ROLE_KIND = "Role"
ROLE_BINDING_KIND = "RoleBinding"
CLUSTER_ROLE_KIND = "ClusterRole"
CLUSTER_ROLE_BINDING_KIND = "ClusterRoleBinding"


def _strings(description: str) -> Array:
    return Array(items=String(), description=description)


POLICY_RULE = Object(
    type_name="v1.PolicyRule",
    description="PolicyRule allows some verbs, either on resources or on paths that are no resources.",
    fields={
        "verbs": _strings("Verbs that are allowed on all that this rule names; '*' stands for all verbs."),
        "apiGroups": _strings("Groups of the resources; '' is the core group and '*' stands for all groups."),
        "resources": _strings(
            "Resources that the rule is about. '*' stands for all, 'x/status' for a subresource and '*/status' for "
            "that of all resources."
        ),
        "resourceNames": _strings("Names that the rule is limited to; none: it holds for all names."),
        "nonResourceURLs": _strings(
            "Paths that are no resources, such as /healthz; a '*' is allowed as the last character. A rule has either "
            "these or resources."
        ),
    },
    required=("verbs",),
)

AGGREGATION_RULE = Object(
    type_name="v1.AggregationRule",
    description="AggregationRule says from which other ClusterRoles the rules of this one are collected.",
    fields={
        "clusterRoleSelectors": Array(
            items=LABEL_SELECTOR,
            description="Selectors of ClusterRoles; a role that any of them matches gives its rules.",
        )
    },
)

CLUSTER_ROLE = Object(
    type_name="v1.ClusterRole",
    description="ClusterRole is a set of rules that bindings can grant to users and groups.",
    fields={
        "rules": Array(items=POLICY_RULE, description="Rules hold all that this role allows."),
        "aggregationRule": AGGREGATION_RULE,
    },
    always_written=("rules",),
)

ROLE = Object(
    type_name="v1.Role",
    description="Role is a set of rules that bindings can grant to users and groups in its namespace.",
    fields={"rules": Array(items=POLICY_RULE, description="Rules hold all that this role allows.")},
    always_written=("rules",),
)

SUBJECT = Object(
    type_name="v1.Subject",
    description="Subject is a user, a group or a service account that a binding grants a role to.",
    atomic=True,
    fields={
        "kind": String(description="Kind of the subject: User, Group or ServiceAccount."),
        "apiGroup": String(
            description="Group of the kind: '' for a ServiceAccount, else rbac.authorization.k8s.io, the default."
        ),
        "name": String(description="Name of the subject."),
        "namespace": String(
            description="Namespace of a ServiceAccount, by default that of a RoleBinding; others have none."
        ),
    },
    required=("kind", "name"),
)

ROLE_REF = Object(
    type_name="v1.RoleRef",
    description="RoleRef names the role that a binding grants. It cannot be changed.",
    atomic=True,
    fields={
        "apiGroup": String(description="Group of the role: rbac.authorization.k8s.io."),
        "kind": String(description="Kind of the role: ClusterRole, or in a RoleBinding Role as well."),
        "name": String(description="Name of the role."),
    },
    required=("kind", "name"),
    always_written=("apiGroup",),
)

CLUSTER_ROLE_BINDING = Object(
    type_name="v1.ClusterRoleBinding",
    description="ClusterRoleBinding grants a ClusterRole to subjects.",
    fields={
        "subjects": Array(items=SUBJECT, description="Subjects are granted the role."),
        "roleRef": ROLE_REF,
    },
    required=("roleRef",),
)

ROLE_BINDING = Object(
    type_name="v1.RoleBinding",
    description="RoleBinding grants a Role of its namespace, or a ClusterRole, to subjects within its namespace.",
    fields=CLUSTER_ROLE_BINDING.fields,
    required=("roleRef",),
)
