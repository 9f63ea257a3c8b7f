"""The BootstrapToken kind as a resource, the users that tokens make, and the removal of those that have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from clusterregistry.api.clusterregistry import GROUP, v1beta1
from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import (
    BOOTSTRAP_TOKEN,
    KIND,
    PLURAL,
    default_usages,
    validate_token,
)
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.registry.columns import age_column, field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Version
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy

QUALIFIED_NAME = f"{PLURAL}.{GROUP}"

_usages = field_cell("spec", "usages")


def _shown_usages(token: dict[str, Any]) -> Any:
    usages = _usages(token)
    return ",".join(map(str, usages)) if isinstance(usages, list) else None


COLUMNS = (
    name_column("The ID of the token."),
    Column(
        name="Cluster",
        type="string",
        cell=field_cell("spec", "clusterName"),
        description="The cluster that the token is for.",
    ),
    Column(
        name="Expires", type="string", cell=field_cell("spec", "expirationTime"), description="When the token ends."
    ),
    Column(name="Usages", type="string", cell=_shown_usages, description="What the token may be used for."),
    Column(
        name="Description",
        type="string",
        priority=1,
        cell=field_cell("spec", "description"),
        description="What the token was made for.",
    ),
    age_column("When the token was made."),
)


class BootstrapTokenStrategy(SpecStrategy):
    """A token is for one cluster for ever; only its end and its description change."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(BOOTSTRAP_TOKEN)
        self._clock = clock

    def set_defaults(self, obj: Object) -> None:
        if isinstance(spec := obj.get("spec"), dict):
            obj["spec"] = {**spec}
            default_usages(obj["spec"])

    def validate_object(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_token(obj, old, now=self._clock())

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:  # noqa: ARG002 - the port's signature
        return ()


def bootstrap_token_resource() -> Resource:
    """The resource ``bootstraptokens``. No default role has rights on it: who makes tokens lets members in."""
    return Resource(
        group=GROUP,
        kind=KIND,
        plural=PLURAL,
        singular="bootstraptoken",
        versions=(Version(name=v1beta1.VERSION, schema=BOOTSTRAP_TOKEN, columns=COLUMNS),),
        storage_version=v1beta1.VERSION,
        strategy=BootstrapTokenStrategy(),
        read_your_writes=True,  # what makes a token may use it at once
        default_roles=(),
    )
