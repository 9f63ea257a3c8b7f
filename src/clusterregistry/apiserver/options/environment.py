"""Reads options from environment variables: ``--secure-port`` is ``PROGRAM_SECURE_PORT``.

An empty variable counts as not set. An unknown variable with our prefix is a mistake and is named, except for those
that Kubernetes itself puts into a pod for a Service whose name begins like ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from clusterregistry.apiserver.options.flags import Given, Reading
from clusterregistry.apiserver.options.groups import OptionSet

_SERVICE_LINK = re.compile(
    r"\w*(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)", re.ASCII
)
# Where tools/programs.py keeps its downloads; a developer may have it set while running a server.
_NOT_OPTIONS = frozenset({"CACHE"})
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


def read(environment: Mapping[str, str], known: OptionSet) -> Reading:
    """Takes our variables out of an environment. Never raises: what is wrong is in ``problems``."""
    reading, prefix = Reading(known), known.environment_prefix
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix(prefix)
        if not variable.startswith(prefix) or name in _NOT_OPTIONS or not text or _is_service_link(name, text):
            continue
        flag = name.lower().replace("_", "-")
        if flag in known.by_flag and known.variable_of(flag) == variable:
            reading.given.append(Given(flag, text, variable))
        else:
            reading.refuse_unknown(flag, where=variable, shown_as=known.variable_of)
    return reading


def _is_service_link(name: str, text: str) -> bool:
    if _SERVICE_LINK.fullmatch(name):
        return True
    return (name == "PORT" or name.endswith("_PORT")) and _SERVICE_URL.match(text) is not None
