"""The port of reviews: their definition, validation and answer."""

from __future__ import annotations

from typing import Any, Protocol

from clusterregistry.apimachinery.schema import native
from clusterregistry.apimachinery.schema.schemas import Object as ObjectSchema
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.registry.resource import Definition, Version

Object = dict[str, Any]

VERBS = ("create",)


class Review(Protocol):
    """One kind of review. ``question`` is the object that the client sent."""

    @property
    def definition(self) -> Definition: ...

    def validate(self, question: Object) -> None:
        """Raises the API errors of an invalid review, which is of the right kind.

        Pure: a large review is validated in another thread.
        """
        ...

    async def answer(self, question: Object, user: User) -> Object:
        """The object to return. ``question`` is valid and may be changed, ``user`` sent it. Raises nothing."""
        ...


def definition(*, group: str, version: str, kind: str, schema: ObjectSchema, namespaced: bool = False) -> Definition:
    """The definition of a kind that can only be created, in one version."""
    singular = kind.lower()
    return Definition(
        group=group,
        kind=kind,
        plural=f"{singular}s",
        singular=singular,
        versions=(Version(name=version, schema=schema, decode=native.decoder(schema, kind=kind)),),
        verbs=VERBS,
        namespaced=namespaced,
        native=True,
    )


def answered(question: Object, status: Object) -> Object:
    """The review with its status, in kube-apiserver's order."""
    return {
        "kind": question["kind"],
        "apiVersion": question["apiVersion"],
        "metadata": question["metadata"],
        "spec": question.get("spec", {}),
        "status": status,
    }


def user_info(user: User) -> Object:
    """A user as UserInfo, without empty fields."""
    shown = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in shown.items() if value}
