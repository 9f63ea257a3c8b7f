"""The names of agents: their users, groups and requests for certificates. Server and clients agree on them.

An agent is a user for one cluster, whose name is a part of the user's. So is a member that joins, by its token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clusterregistry.api.clusterregistry import GROUP

AGENTS_GROUP = "system:clusterregistry:agents"
"""The organization of an agent's certificate."""

AGENT_PREFIX = "system:clusterregistry:agent:"
"""Before the name of the cluster: the common name of an agent's certificate."""

BOOTSTRAP_PREFIX = "system:bootstrap:"
"""Before the ID of a bootstrap token, as in Kubernetes."""

BOOTSTRAPPERS = "system:bootstrappers"
BOOTSTRAPPERS_GROUP = "system:bootstrappers:clusterregistry"

CLUSTER_EXTRA = f"{GROUP}/cluster-name"
"""The attribute of a joining user that names its cluster."""

OBSERVER = f"{GROUP}/observer"
"""The annotation of a cluster that says who observes it."""

AGENT = "agent"
"""Its value for a cluster with an agent: a controller leaves such a cluster alone."""

EVENT_NAMESPACE = "default"
"""Where events about clusters are, as those about all objects without a namespace."""

LEAST_SECONDS = 600
LONGEST_SECONDS = 90 * 86400
"""The validity of an agent's certificate."""

_LONGEST_EVENT_BASE = 200
"""Characters: the name of an event has room for more behind it."""

_TOKEN = re.compile(r"([a-z0-9]{6,32})\.([a-z0-9]{26,128})", re.ASCII)
_TOKEN_ID = re.compile(r"[a-z0-9]{6,32}", re.ASCII)


def agent_user(cluster: str) -> str:
    """The user name of a cluster's agent."""
    return AGENT_PREFIX + cluster


def request_prefix(cluster: str) -> str:
    """How the names of an agent's requests for certificates begin. No name of a cluster has a colon."""
    return f"agent:{cluster}:"


def event_prefix(cluster: str) -> str:
    """How the names of events about a cluster begin. Of a long name it is the beginning."""
    return cluster[:_LONGEST_EVENT_BASE].rstrip("-.") + "."


def has_agent(cluster: Mapping[str, Any]) -> bool:
    """Whether a cluster (a wire object) is observed by its agent."""
    metadata = cluster.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(OBSERVER) == AGENT


def split_token(token: str) -> tuple[str, str] | None:
    """The ID and the secret of a bootstrap token; None for any other token."""
    match = _TOKEN.fullmatch(token)
    return (match[1], match[2]) if match else None


def is_token_id(text: str) -> bool:
    return _TOKEN_ID.fullmatch(text) is not None
