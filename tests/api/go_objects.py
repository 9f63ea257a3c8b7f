"""Objects as Go reads and writes them: ``go_objects.json`` has the answers of the types in k8s.io/api v0.36.

Each entry has what was ``sent`` as JSON and either the ``error`` of the strict decoder, or the ``answer`` in JSON, the
same in ``protobuf`` (base64) and the strict error for ``unknown`` fields, if there are any.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OBJECTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "go_objects.json").read_text())
ACCEPTED = [each for each in OBJECTS if "answer" in each]


def name_of(entry: dict[str, Any]) -> str:
    """The name of a test about the entry."""
    sent = {name: value for name, value in entry["sent"].items() if name not in ("apiVersion", "kind")}
    return f"{entry['sent']['kind']} {json.dumps(sent)[:60]}"
