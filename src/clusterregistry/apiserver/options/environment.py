"""Reads options from environment variables: ``--secure-port`` is ``CLUSTERREGISTRY_SECURE_PORT``.

An empty variable counts as not set. An unknown variable with our prefix is a mistake and is named, except for those
that Kubernetes itself puts into a pod for a Service whose name begins like ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from clusterregistry.apiserver.options.flags import Given, Reading
from clusterregistry.apiserver.options.groups import BY_FLAG
from clusterregistry.cli.options.field import ENVIRONMENT_PREFIX, variable_of

_SERVICE_LINK = re.compile(
    r"\w*(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)", re.ASCII
)
# Where tools/programs.py keeps its downloads; a developer may have it set while running a server.
_NOT_OPTIONS = frozenset({"CLUSTERREGISTRY_CACHE"})
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


def read(environment: Mapping[str, str]) -> Reading:
    """Takes our variables out of an environment. Never raises: what is wrong is in ``problems``."""
    reading = Reading()
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NOT_OPTIONS or not text:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if _is_service_link(name, text):
            continue
        flag = name.lower().replace("_", "-")
        if flag in BY_FLAG and variable_of(flag) == variable:
            reading.given.append(Given(flag, text, variable))
        else:
            reading.refuse_unknown(flag, where=variable, shown_as=variable_of)
    return reading


def _is_service_link(name: str, text: str) -> bool:
    if _SERVICE_LINK.fullmatch(name):
        return True
    return (name == "PORT" or name.endswith("_PORT")) and _SERVICE_URL.match(text) is not None
