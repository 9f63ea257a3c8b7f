"""The user of a context as a pointer in ``spec.authInfo``: the kind of credential and where it is, not the credential.

What a pointer has: the command of an exec entry with its arguments, names of files, or the name of the user and of its
kubeconfig. Tokens, keys, certificates, passwords and the environment of commands stay where they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from clusterregistry.api.clusterregistry.credential_patterns import find_credential
from clusterregistry.apimachinery.credentials import names_credential
from clusterregistry.client.kubeconfig import Context
from clusterregistry.client.rest import Object

MAX_ARGUMENTS = 64

_EMBEDDED = (
    ("token", "token", ("token", "tokenFile")),
    ("client-certificate", "client-certificate", ("client-certificate", "client-certificate-data")),
    ("basic", "password", ("username", "password")),
)
"""The type of a provider, its name, and the fields of a user that stand for it. The first that is there counts."""

_FILE_KEYS = {"tokenFile": "tokenFile", "client-certificate": "certificateFile", "client-key": "keyFile"}


def provider_of(context: Context, file: str) -> tuple[Object | None, list[str]]:
    """The provider for a context's user, None if it has no credential; and notes on what the pointer leaves out.

    ``file`` is the name of the kubeconfig, for credentials that stand in it.
    """
    user = context.user
    notes = ["the user that it impersonates is not imported"] if user.get("as") or user.get("as-groups") else []
    plugin = user.get("exec")
    if isinstance(plugin, dict):
        provider, left_out = _exec_provider(plugin)
        return provider, notes + left_out
    legacy = user.get("auth-provider")
    if isinstance(legacy, dict) and isinstance(legacy.get("name"), str):
        return {"name": legacy["name"], "type": "auth-provider", "config": {}}, notes
    for type_, name, fields in _EMBEDDED:
        if any(user.get(each) for each in fields):
            return {"name": name, "type": type_, "config": _place(context, file)}, notes
    return None, notes


def _place(context: Context, file: str) -> dict[str, str]:
    """Names of files, else where in the kubeconfig the credential stands."""
    files = {key: context.user[name] for name, key in _FILE_KEYS.items() if _is_text(context.user.get(name))}
    return files or {"kubeconfig": file, "user": context.user_name}


def _exec_provider(plugin: Mapping[str, Any]) -> tuple[Object, list[str]]:
    notes: list[str] = []
    command = plugin["command"] if _is_text(plugin.get("command")) else ""
    config = {"command": command} if command else {}
    arguments = plugin.get("args")
    if isinstance(arguments, list) and arguments:
        if _are_harmless(arguments):
            config["args"] = json.dumps(arguments)
        else:
            notes.append("the arguments of its command are not imported: one of them may be a credential")
    if names := sorted(_environment_names(plugin)):
        notes.append(f"the environment of its command is not imported: {', '.join(names[:MAX_ARGUMENTS])}")
    return {"name": PurePath(command).name or "exec", "type": "exec", "config": config}, notes


def _are_harmless(arguments: Sequence[Any]) -> bool:
    """Whether no argument looks like a credential, by itself or by the name of its flag."""
    if len(arguments) > MAX_ARGUMENTS or not all(isinstance(each, str) for each in arguments):
        return False
    # A value may follow its flag as the next word, so that the flag alone decides.
    return not any(
        find_credential(each) or (each.startswith("-") and names_credential(each.partition("=")[0]))
        for each in arguments
    )


def _environment_names(plugin: Mapping[str, Any]) -> Iterator[str]:
    listed = plugin.get("env")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and _is_text(each.get("name")):
            yield each["name"]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
