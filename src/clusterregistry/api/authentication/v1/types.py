"""The types of SelfSubjectReview and TokenReview."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Map, Object, String

EXTRA = Map(
    description="Extra is what the authenticator knows of the user beyond name and groups.",
    values=Array(items=String()),
)

USER_INFO = Object(
    type_name="v1.UserInfo",
    description="UserInfo is a user as the server recognises one.",
    fields={
        "username": String(description="Username is the name of the user."),
        "uid": String(description="UID tells users of the same name at different times apart."),
        "groups": Array(items=String(), description="Groups are the groups that the user is a member of."),
        "extra": EXTRA,
    },
)

SELF_SUBJECT_REVIEW = Object(
    description="SelfSubjectReview tells the user who asks who they are to the server.",
    fields={
        "status": Object(
            type_name="v1.SelfSubjectReviewStatus",
            description="Status is filled in by the server.",
            fields={"userInfo": USER_INFO},
        ),
    },
)

TOKEN_REVIEW = Object(
    description="TokenReview asks whose token this is.",
    required=("spec",),
    fields={
        "spec": Object(
            type_name="v1.TokenReviewSpec",
            required=("token",),
            description="Spec is the question.",
            fields={
                "token": String(description="Token is the bearer token."),
                "audiences": Array(
                    items=String(),
                    description="Audiences are those for whom the token may be meant; none: the server itself.",
                ),
            },
        ),
        "status": Object(
            type_name="v1.TokenReviewStatus",
            description="Status is filled in by the server.",
            fields={
                "authenticated": Boolean(description="Authenticated says whether the token is that of a user."),
                "user": USER_INFO,
                "audiences": Array(
                    items=String(), description="Audiences are those of the question for whom the token is meant."
                ),
                "error": String(description="Error says why the token could not be checked, or is not good."),
            },
        ),
    },
)
