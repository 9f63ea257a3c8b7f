"""The programs that a kubeconfig from the registry may start to sign a user in, and their arguments.

An exec entry is run on the machine of the user of the kubeconfig, and what it is made of comes from the writers of a
Cluster. So only the programs here are ever named: without a path, with fixed arguments, and with values that match a
pattern and stand behind ``--flag=``, where they cannot be flags of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EXEC_KEY = "exec"
"""The key in the config of a provider that names the program; the other keys are those of its parameters."""

COMMAND_KEY, ARGUMENTS_KEY = "command", "args"
"""The keys of a provider that was imported from a kubeconfig: its command, and its arguments as a JSON list."""

MAX_ARGUMENTS = 64

API_VERSION = "client.authentication.k8s.io/v1beta1"
"""The version that all of these programs print."""

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A key of the config that becomes ``FLAG=VALUE``. The value matches the pattern as a whole."""

    key: str
    flag: str
    pattern: str
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A program that prints a credential."""

    command: str
    arguments: Sequence[str] = ()
    parameters: Sequence[Parameter] = ()
    hint: str
    takes_cluster: bool = False
    """Whether it is told which cluster the credential is for."""


PLUGINS: Mapping[str, Plugin] = {
    each.command: each
    for each in (
        Plugin(
            command="aws",
            arguments=("eks", "get-token", "--output=json"),
            parameters=(
                Parameter(
                    key="clusterName",
                    flag="--cluster-name",
                    pattern="[A-Za-z0-9][A-Za-z0-9_-]{0,99}",
                    is_required=True,
                ),
                Parameter(key="region", flag="--region", pattern="[a-z]{2,3}(?:-[a-z]{2,20}){1,3}-[0-9]{1,2}"),
                Parameter(
                    key="roleARN",
                    flag="--role-arn",
                    pattern="arn:aws[a-z-]{0,20}:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}",
                ),
            ),
            hint="Install the AWS CLI and sign in: https://docs.aws.amazon.com/cli/",
        ),
        Plugin(
            command="gke-gcloud-auth-plugin",
            hint="Install it with: gcloud components install gke-gcloud-auth-plugin",
            takes_cluster=True,
        ),
        Plugin(
            command="kubelogin",
            arguments=("get-token",),
            parameters=(
                Parameter(key="serverID", flag="--server-id", pattern=_UUID, is_required=True),
                Parameter(key="clientID", flag="--client-id", pattern=_UUID),
                Parameter(key="tenantID", flag="--tenant-id", pattern=_UUID),
                Parameter(key="login", flag="--login", pattern="azurecli|devicecode|interactive"),
            ),
            hint="Install it with: az aks install-cli",
        ),
        Plugin(
            command="kubectl-oidc_login",
            arguments=("get-token",),
            parameters=(
                Parameter(
                    key="issuerURL",
                    flag="--oidc-issuer-url",
                    pattern=r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]{0,512})?",
                    is_required=True,
                ),
                Parameter(
                    key="clientID",
                    flag="--oidc-client-id",
                    pattern="[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}",
                    is_required=True,
                ),
                Parameter(key="scope", flag="--oidc-extra-scope", pattern="[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}"),
            ),
            hint="Install it with: kubectl krew install oidc-login",
        ),
    )
}


class PluginError(ValueError):
    """The config of a provider makes no exec entry; the message says why, without any of its values."""


def exec_entry(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The exec entry of a provider's config; None if it names no program. Raises PluginError."""
    if config.get(EXEC_KEY):
        plugin, values = _plugin(config[EXEC_KEY], EXEC_KEY), config
    elif config.get(COMMAND_KEY):
        plugin, values = _imported(config[COMMAND_KEY], config.get(ARGUMENTS_KEY) or "[]")
    else:
        return None
    return {
        "apiVersion": API_VERSION,
        "command": plugin.command,
        "args": [*plugin.arguments, *_values(plugin, values)],
        "installHint": plugin.hint,
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": plugin.takes_cluster,
    }


def _values(plugin: Plugin, config: Mapping[str, Any]) -> list[str]:
    made = []
    for each in plugin.parameters:
        value = config.get(each.key)
        if value is None and not each.is_required:
            continue
        if not isinstance(value, str) or not re.fullmatch(each.pattern, value, re.ASCII):
            wrong = "is missing" if value is None else "has a value that is not allowed"
            raise PluginError(f"{each.key} {wrong} for {plugin.command}")
        made.append(f"{each.flag}={value}")
    return made


def _plugin(command: Any, key: str) -> Plugin:
    plugin = PLUGINS.get(command) if isinstance(command, str) else None
    if plugin is None:
        raise PluginError(f"{key} must be one of {', '.join(PLUGINS)}")
    return plugin


def _imported(command: Any, arguments: Any) -> tuple[Plugin, dict[str, str]]:
    """The program of an imported exec entry, and its arguments by the keys of parameters."""
    words = _words(arguments)
    if command == "kubectl" and words[:1] == ["oidc-login"]:
        command, words = "kubectl-oidc_login", words[1:]
    plugin = _plugin(command, COMMAND_KEY)
    flags = {each.flag: each.key for each in plugin.parameters}
    fixed = {word for each in plugin.arguments for word in each.split("=")}
    values: dict[str, str] = {}
    rest = iter([part for word in words for part in word.split("=", 1)])
    for word in rest:
        if word in flags:
            values[flags[word]] = next(rest, "")
        elif word not in fixed:
            raise PluginError(f"{ARGUMENTS_KEY} has one that is not allowed for {plugin.command}")
    return plugin, values


def _words(arguments: Any) -> list[str]:
    try:
        words = json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        words = None
    if not isinstance(words, list) or len(words) > MAX_ARGUMENTS or not all(isinstance(each, str) for each in words):
        raise PluginError(f"{ARGUMENTS_KEY} must be a JSON list of at most {MAX_ARGUMENTS} texts")
    return words
