"""The port of reviews: what they are called, and how they are answered."""

from __future__ import annotations

from typing import Any, Protocol

from clusterregistry.apimachinery.schema.schemas import Object as ObjectSchema
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.registry.resource import Definition, Version

Object = dict[str, Any]

VERBS = ("create",)


class Review(Protocol):
    """One kind of question."""

    @property
    def definition(self) -> Definition: ...

    def validate(self, question: Object) -> None:
        """Raises the API errors that tell what is wrong with the question, which is of the right kind.

        Pure: a large question is looked at in another thread.
        """
        ...

    async def answer(self, question: Object, user: User) -> Object:
        """What a client is answered with; ``question`` is valid and its own, ``user`` is who asks. Raises nothing."""
        ...


def definition(*, group: str, version: str, kind: str, schema: ObjectSchema) -> Definition:
    """A kind that can only be created, one version of it."""
    singular = kind.lower()
    return Definition(
        group=group,
        kind=kind,
        plural=f"{singular}s",
        singular=singular,
        versions=(Version(name=version, schema=schema, decode=_conform),),
        verbs=VERBS,
        native=True,
    )


def _conform(obj: Object) -> list[str]:
    from clusterregistry.apimachinery.codecs import native_structs  # noqa: PLC0415 - needs protobuf, which is dear to import

    return native_structs.conform(obj)


def answered(question: Object, status: Object) -> Object:
    """The question with its answer, in the order in which kube-apiserver writes them."""
    return {
        "kind": question["kind"],
        "apiVersion": question["apiVersion"],
        "metadata": question["metadata"],
        "spec": question.get("spec", {}),
        "status": status,
    }


def user_info(user: User) -> Object:
    """A user as the API shows one; what is empty is left out."""
    shown = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in shown.items() if value}
