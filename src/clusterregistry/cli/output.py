"""How commands print their results: for people, or for programs."""

from __future__ import annotations

import json
from typing import Any, Literal

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.cli.options.value_types import Kind, choice

Output = Literal["table", "json", "yaml"]
TABLE = "table"
"""For people."""

OUTPUT: Kind[Output] = choice("table", "json", "yaml")


def rendered(document: dict[str, Any], output: Output) -> str:
    """A document for programs."""
    if output == "json":
        return json.dumps(document, indent=2)
    return yaml_codec.encode(document).decode().rstrip("\n")
