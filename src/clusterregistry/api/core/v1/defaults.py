"""The defaults of a Namespace: the label that is its name."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.core.v1.types import METADATA_NAME_LABEL


def set_namespace_defaults(namespace: dict[str, Any]) -> None:
    """Sets the label of a namespace that has a name, in place; whatever the client has sent there is replaced."""
    metadata = namespace["metadata"]
    name, labels = metadata.get("name"), metadata.get("labels", {})
    if name and labels.get(METADATA_NAME_LABEL) != name:
        metadata["labels"] = {**labels, METADATA_NAME_LABEL: name}
