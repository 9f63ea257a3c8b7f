"""The protobuf messages of the Kubernetes kinds.

The numbers are those of the ``generated.proto`` of k8s.io/api and k8s.io/apimachinery; the names are those of JSON. An
empty field is absent from JSON, except for those in ``ALWAYS``.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.codecs.protobuf_tables import message_classes

_REVIEW = "metadata:1:ObjectMeta spec:2:{0}Spec status:3:{1}"
_ATTRIBUTES = "resourceAttributes:1:ResourceAttributes nonResourceAttributes:2:NonResourceAttributes"

_TABLE = {
    # k8s.io/apimachinery/pkg/runtime
    "TypeMeta": "apiVersion:1 kind:2",
    "Unknown": "typeMeta:1:TypeMeta raw:2:bytes contentEncoding:3 contentType:4",
    "WatchEvent": "type:1 object:2:RawExtension",
    "RawExtension": "raw:1:bytes",
    # k8s.io/apimachinery/pkg/apis/meta/v1
    "ObjectMeta": "name:1 generateName:2 namespace:3 selfLink:4 uid:5 resourceVersion:6 generation:7:int64 "
    "creationTimestamp:8:Time deletionTimestamp:9:Time deletionGracePeriodSeconds:10:?int64 labels:11:{}string "
    "annotations:12:{}string ownerReferences:13:[]OwnerReference finalizers:14:[]string clusterName:15 "
    "managedFields:17:[]ManagedFieldsEntry",
    "ListMeta": "selfLink:1 resourceVersion:2 continue:3 remainingItemCount:4:?int64",
    "OwnerReference": "apiVersion:5 kind:1 name:3 uid:4 controller:6:?bool blockOwnerDeletion:7:?bool",
    "ManagedFieldsEntry": "manager:1 operation:2 apiVersion:3 time:4:Time fieldsType:6 fieldsV1:7:FieldsV1 "
    "subresource:8",
    "FieldsV1": "Raw:1:bytes",
    "Time": "seconds:1:?int64 nanos:2:?int32",
    "MicroTime": "seconds:1:?int64 nanos:2:?int32",
    "LabelSelector": "matchLabels:1:{}string matchExpressions:2:[]LabelSelectorRequirement",
    "LabelSelectorRequirement": "key:1 operator:2 values:3:[]string",
    "DeleteOptions": "gracePeriodSeconds:1:?int64 preconditions:2:Preconditions orphanDependents:3:?bool "
    "propagationPolicy:4:?string dryRun:5:[]string ignoreStoreReadErrorWithClusterBreakingPotential:6:?bool",
    "Preconditions": "uid:1:?string resourceVersion:2:?string",
    "Status": "metadata:1:ListMeta status:2 message:3 reason:4 details:5:StatusDetails code:6:int32",
    "StatusDetails": "name:1 group:2 kind:3 uid:6 causes:4:[]StatusCause retryAfterSeconds:5:int32",
    "StatusCause": "reason:1 message:2 field:3",
    # k8s.io/api/authorization/v1
    "SelfSubjectAccessReview": _REVIEW.format("SelfSubjectAccessReview", "SubjectAccessReviewStatus"),
    "SubjectAccessReview": _REVIEW.format("SubjectAccessReview", "SubjectAccessReviewStatus"),
    "LocalSubjectAccessReview": _REVIEW.format("SubjectAccessReview", "SubjectAccessReviewStatus"),
    "SelfSubjectRulesReview": _REVIEW.format("SelfSubjectRulesReview", "SubjectRulesReviewStatus"),
    "SelfSubjectAccessReviewSpec": _ATTRIBUTES,
    "SubjectAccessReviewSpec": f"{_ATTRIBUTES} user:3 groups:4:[]string extra:5:{{}}ExtraValue uid:6",
    "SelfSubjectRulesReviewSpec": "namespace:1",
    "ResourceAttributes": "namespace:1 verb:2 group:3 version:4 resource:5 subresource:6 name:7 "
    "fieldSelector:8:FieldSelectorAttributes labelSelector:9:LabelSelectorAttributes",
    "NonResourceAttributes": "path:1 verb:2",
    "FieldSelectorAttributes": "rawSelector:1 requirements:2:[]FieldSelectorRequirement",
    "FieldSelectorRequirement": "key:1 operator:2 values:3:[]string",
    "LabelSelectorAttributes": "rawSelector:1 requirements:2:[]LabelSelectorRequirement",
    "SubjectAccessReviewStatus": "allowed:1:bool denied:4:bool reason:2 evaluationError:3",
    "SubjectRulesReviewStatus": "resourceRules:1:[]ResourceRule nonResourceRules:2:[]NonResourceRule "
    "incomplete:3:bool evaluationError:4",
    "ResourceRule": "verbs:1:[]string apiGroups:2:[]string resources:3:[]string resourceNames:4:[]string",
    "NonResourceRule": "verbs:1:[]string nonResourceURLs:2:[]string",
    # k8s.io/api/authentication/v1
    "SelfSubjectReview": "metadata:1:ObjectMeta status:2:SelfSubjectReviewStatus",
    "SelfSubjectReviewStatus": "userInfo:1:UserInfo",
    "TokenReview": _REVIEW.format("TokenReview", "TokenReviewStatus"),
    "TokenReviewSpec": "token:1 audiences:2:[]string",
    "TokenReviewStatus": "authenticated:1:bool user:2:UserInfo audiences:4:[]string error:3",
    "UserInfo": "username:1 uid:2 groups:3:[]string extra:4:{}ExtraValue",
    "ExtraValue": "items:1:[]string",
    # k8s.io/api/rbac/v1
    "ClusterRole": "metadata:1:ObjectMeta rules:2:[]PolicyRule aggregationRule:3:AggregationRule",
    "ClusterRoleBinding": "metadata:1:ObjectMeta subjects:2:[]Subject roleRef:3:RoleRef",
    "ClusterRoleList": "metadata:1:ListMeta items:2:[]ClusterRole",
    "ClusterRoleBindingList": "metadata:1:ListMeta items:2:[]ClusterRoleBinding",
    "Role": "metadata:1:ObjectMeta rules:2:[]PolicyRule",
    "RoleBinding": "metadata:1:ObjectMeta subjects:2:[]Subject roleRef:3:RoleRef",
    "RoleList": "metadata:1:ListMeta items:2:[]Role",
    "RoleBindingList": "metadata:1:ListMeta items:2:[]RoleBinding",
    "PolicyRule": "verbs:1:[]string apiGroups:2:[]string resources:3:[]string resourceNames:4:[]string "
    "nonResourceURLs:5:[]string",
    "AggregationRule": "clusterRoleSelectors:1:[]LabelSelector",
    "Subject": "kind:1 apiGroup:2 name:3 namespace:4",
    "RoleRef": "apiGroup:1 kind:2 name:3",
    # k8s.io/api/core/v1
    "Namespace": "metadata:1:ObjectMeta spec:2:NamespaceSpec status:3:NamespaceStatus",
    "NamespaceList": "metadata:1:ListMeta items:2:[]Namespace",
    "NamespaceSpec": "finalizers:1:[]string",
    "NamespaceStatus": "phase:1 conditions:2:[]NamespaceCondition",
    "NamespaceCondition": "type:1 status:2 lastTransitionTime:4:Time reason:5 message:6",
    "Event": "metadata:1:ObjectMeta involvedObject:2:ObjectReference reason:3 message:4 source:5:EventSource "
    "firstTimestamp:6:Time lastTimestamp:7:Time count:8:int32 type:9 eventTime:10:MicroTime series:11:EventSeries "
    "action:12 related:13:ObjectReference reportingComponent:14 reportingInstance:15",
    "EventList": "metadata:1:ListMeta items:2:[]Event",
    "EventSeries": "count:1:int32 lastObservedTime:2:MicroTime",
    "EventSource": "component:1 host:2",
    "ObjectReference": "kind:1 namespace:2 name:3 uid:4 apiVersion:5 resourceVersion:6 fieldPath:7",
    # k8s.io/api/events/v1, whose names begin with that of the group: those of the core group have the others
    "EventsEvent": "metadata:1:ObjectMeta eventTime:2:MicroTime series:3:EventsEventSeries reportingController:4 "
    "reportingInstance:5 action:6 reason:7 regarding:8:ObjectReference related:9:ObjectReference note:10 type:11 "
    "deprecatedSource:12:EventSource deprecatedFirstTimestamp:13:Time deprecatedLastTimestamp:14:Time "
    "deprecatedCount:15:int32",
    "EventsEventList": "metadata:1:ListMeta items:2:[]EventsEvent",
    "EventsEventSeries": "count:1:int32 lastObservedTime:2:MicroTime",
    # k8s.io/api/coordination/v1
    "Lease": "metadata:1:ObjectMeta spec:2:LeaseSpec",
    "LeaseList": "metadata:1:ListMeta items:2:[]Lease",
    "LeaseSpec": "holderIdentity:1:?string leaseDurationSeconds:2:?int32 acquireTime:3:MicroTime renewTime:4:MicroTime "
    "leaseTransitions:5:?int32 strategy:6:?string preferredHolder:7:?string",
    # k8s.io/api/certificates/v1
    "CertificateSigningRequest": "metadata:1:ObjectMeta spec:2:CertificateSigningRequestSpec "
    "status:3:CertificateSigningRequestStatus",
    "CertificateSigningRequestList": "metadata:1:ListMeta items:2:[]CertificateSigningRequest",
    "CertificateSigningRequestSpec": "request:1:bytes signerName:7 expirationSeconds:8:?int32 usages:5:[]string "
    "username:2 uid:3 groups:4:[]string extra:6:{}ExtraValue",
    "CertificateSigningRequestStatus": "conditions:1:[]CertificateSigningRequestCondition certificate:2:bytes",
    "CertificateSigningRequestCondition": "type:1 status:6 reason:2 message:3 lastUpdateTime:4:Time "
    "lastTransitionTime:5:Time",
}

# The classes are made at run time: their fields are known to the table alone.
CLASSES: dict[str, Any] = {**message_classes("k8s", _TABLE)}

KINDS = {
    ("meta.k8s.io/v1", "DeleteOptions"): "DeleteOptions",
    ("events.k8s.io/v1", "Event"): "EventsEvent",
    ("events.k8s.io/v1", "EventList"): "EventsEventList",
    ("events.k8s.io/v1", "DeleteOptions"): "DeleteOptions",
} | {
    (api_version, kind): kind
    for api_version, kinds in (
        ("v1", ("Status", "DeleteOptions", "Namespace", "NamespaceList", "Event", "EventList")),
        ("coordination.k8s.io/v1", ("Lease", "LeaseList", "DeleteOptions")),
        (
            "certificates.k8s.io/v1",
            ("CertificateSigningRequest", "CertificateSigningRequestList", "DeleteOptions"),
        ),
        (
            "authorization.k8s.io/v1",
            (
                "LocalSubjectAccessReview",
                "SelfSubjectAccessReview",
                "SelfSubjectRulesReview",
                "SubjectAccessReview",
                "DeleteOptions",
            ),
        ),
        ("authentication.k8s.io/v1", ("SelfSubjectReview", "TokenReview", "DeleteOptions")),
        (
            "rbac.authorization.k8s.io/v1",
            (
                "ClusterRole",
                "ClusterRoleList",
                "ClusterRoleBinding",
                "ClusterRoleBindingList",
                "Role",
                "RoleList",
                "RoleBinding",
                "RoleBindingList",
                "DeleteOptions",
            ),
        ),
    )
    for kind in kinds
}
"""The message of each apiVersion and kind. Every group has a DeleteOptions of its own, which is the same."""

ALWAYS = {
    "OwnerReference": ("apiVersion", "kind", "name", "uid"),
    "LabelSelectorRequirement": ("key", "operator"),
    "FieldSelectorRequirement": ("key", "operator"),
    "SubjectAccessReviewStatus": ("allowed",),
    "SubjectRulesReviewStatus": ("incomplete",),
    "Subject": ("kind", "name"),
    "RoleRef": ("apiGroup", "kind", "name"),
    "NamespaceCondition": ("type", "status"),
    "Event": ("reportingComponent", "reportingInstance"),
    "EventsEventSeries": ("count",),
    "CertificateSigningRequestSpec": ("signerName",),
    "CertificateSigningRequestCondition": ("type", "status"),
}
"""The fields without ``omitempty``. Empty lists are left out anyway: in protobuf they are absent."""
