"""The types of SelfSubjectReview and TokenReview."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Map, Object, String

EXTRA = Map(
    description="Extra are further attributes of the user from the authenticator.",
    values=Array(items=String(), type_name="v1.ExtraValue"),
)

USER_INFO = Object(
    type_name="v1.UserInfo",
    description="UserInfo is a user as the server authenticates it.",
    fields={
        "username": String(description="Username is the name of the user."),
        "uid": String(description="UID identifies the user among users of the same name over time."),
        "groups": Array(items=String(), description="Groups are the groups that the user is a member of."),
        "extra": EXTRA,
    },
)

SELF_SUBJECT_REVIEW = Object(
    description="SelfSubjectReview contains the user information that the server has about the current user.",
    fields={
        "status": Object(
            type_name="v1.SelfSubjectReviewStatus",
            description="Status is filled in by the server.",
            fields={"userInfo": USER_INFO},
        ),
    },
)

TOKEN_REVIEW = Object(
    description="TokenReview attempts to authenticate a token to a known user.",
    required=("spec",),
    fields={
        "spec": Object(
            type_name="v1.TokenReviewSpec",
            description="Spec has the token.",
            fields={
                "token": String(description="Token is the bearer token."),
                "audiences": Array(
                    items=String(),
                    description="Audiences are the intended recipients of the token; none: the server itself.",
                ),
            },
        ),
        "status": Object(
            type_name="v1.TokenReviewStatus",
            description="Status is filled in by the server.",
            fields={
                "authenticated": Boolean(description="Authenticated is true if the token is that of a known user."),
                "user": USER_INFO,
                "audiences": Array(
                    items=String(), description="Audiences are those of the spec that the token is valid for."
                ),
                "error": String(description="Error is why the token could not be checked, or is invalid."),
            },
        ),
    },
)
