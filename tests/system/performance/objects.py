"""A cluster as users have them: labels, two endpoints, a few kilobytes of certificates, a status."""

from __future__ import annotations

import base64
from typing import Any

from tests.apiserver.api.objects import cluster


def name_of(number: int) -> str:
    """Of the same length for all, so that one object can be made from another's bytes."""
    return f"cluster-{number:06}"


def full_cluster(name: str) -> dict[str, Any]:
    authority = base64.b64encode(b"x" * 300).decode()
    made = cluster(name, labels={"env": "prod", "region": "eu-west-1"}, annotations={"example.com/owner": "team-a"})
    made["spec"] = {
        "kubernetesApiEndpoints": {
            "serverEndpoints": [
                {"clientCIDR": "10.0.0.0/8", "serverAddress": "10.1.2.3:443"},
                {"clientCIDR": "0.0.0.0/0", "serverAddress": f"{name}.example.com:443"},
            ],
            "caBundle": authority,
        },
        "cloudProvider": {"name": "aws"},
    }
    return made
