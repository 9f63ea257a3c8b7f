"""``join-token``: makes, lists and deletes bootstrap tokens. A token is printed once, when it is made."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import hashlib
import secrets
import shlex
import string
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clusterregistry.agent import trust
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import (
    JOIN,
    KIND,
    LONGEST,
    PLURAL,
    expiration,
    expiration_time,
)
from clusterregistry.apimachinery.meta.duration import human_duration
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import ASSIGNMENTS, DURATION, TEXT
from clusterregistry.cli.output import OUTPUT, TABLE, Output, rendered
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.cli.table import table_lines
from clusterregistry.client import errors, rest_config
from clusterregistry.client.rest import GroupVersionResource, Object, WriteOptions, items
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.sync import SyncClient, SyncResourceClient
from clusterregistry.controllers.registry_options import RegistryOptions, registry_config

TOKENS = GroupVersionResource(GROUP, "v1beta1", PLURAL)
_USER_AGENT = "clusterregistry-join-token"
_ALPHABET = string.ascii_lowercase + string.digits
_ID_LETTERS = 10
_SECRET_BYTES = 16
_ATTEMPTS = 3
_COLUMNS = ("ID", "CLUSTER", "EXPIRES", "LABELS", "DESCRIPTION")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions(RegistryOptions):
    """Output."""

    output: Output = option("table", kind=OUTPUT, short="o", help="For people, or `json` or `yaml` for programs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions(OutputOptions):
    """Bootstrap tokens."""

    ttl: float = option(86400.0, kind=DURATION, help="How long the token can be used: 30 days at most.")
    label: tuple[tuple[str, str], ...] = option(
        (),
        kind=ASSIGNMENTS,
        help="A label of the cluster, if the join creates it. The member itself cannot choose labels: they decide "
        "which sets it belongs to. May be repeated.",
        example="--label=env=edge",
    )
    description: str = option("", kind=TEXT, help="What the token is for.")
    server: str = option(
        "",
        kind=TEXT,
        help="The URL by which the member reaches the registry, for the command that is printed.",
        default_shown="that of the kubeconfig",
        example="--server=https://registry.example.com:8443",
    )


def _create(given: Given[CreateOptions]) -> int:
    options, (cluster,) = given.options, given.operands
    _check(options)
    config = registry_config(options, given.environ, user_agent=_USER_AGENT)
    with _tokens(config) as tokens:
        made, token = _made(tokens, cluster, options)
    command = _join_command(config, token, server=options.server or config.server)
    if options.output != TABLE:
        say(rendered({"token": token, "command": command, "object": made}, options.output))
        return exit_status.OK
    say(
        f"token:   {token}",
        f"cluster: {cluster}",
        f"expires: {made['spec']['expirationTime']}",
        "",
        "The token is shown this once. Run this on the member, with a kubeconfig of the member at hand:",
        "",
        f"  {command}",
    )
    return exit_status.OK


def _check(options: CreateOptions) -> None:
    """Raises OptionsError."""
    problems = []
    if not 0 < options.ttl <= LONGEST:
        problems.append(Problem("--ttl", "must be more than 0s and at most 30 days (720h)"))
    if options.server and not options.server.startswith("https://"):
        problems.append(Problem("--server", "must be the https URL of the registry", "https://HOST:PORT"))
    names = [name for name, _ in options.label]
    problems += [
        Problem("--label", f'"{name}" is given more than once')
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if problems:
        raise OptionsError(problems)


def _made(tokens: SyncResourceClient, cluster: str, options: CreateOptions) -> tuple[Object, str]:
    """The stored object, and the token with its secret."""
    secret = secrets.token_hex(_SECRET_BYTES)
    spec: dict[str, Any] = {
        "secretHash": f"{trust.HASH_PREFIX}{hashlib.sha256(secret.encode()).hexdigest()}",
        "expirationTime": expiration_time(time.time() + options.ttl),
        "clusterName": cluster,
        "usages": [JOIN],
    }
    spec |= {"clusterLabels": dict(options.label)} if options.label else {}
    spec |= {"description": options.description} if options.description else {}
    for attempt in range(_ATTEMPTS):
        name = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LETTERS))
        manifest = {"apiVersion": f"{GROUP}/v1beta1", "kind": KIND, "metadata": {"name": name}, "spec": spec}
        try:
            made = tokens.create(manifest, WriteOptions(field_manager=_USER_AGENT))
        except errors.AlreadyExistsError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return made, f"{name}.{secret}"
    raise AssertionError("the loop ends by itself")


def _join_command(config: RestConfig, token: str, *, server: str) -> str:
    """The command for the member: with the hash of the authority, if the server presents one."""
    words = ["clusterregistry", "join", f"--server={server}", f"--token={token}"]
    pinned = ""
    if not config.insecure_skip_tls_verify and not config.proxy_url:
        authorities = rest_config.authorities_reader(config)()
        pinned = trust.hash_of_presented_authority(config.server, authorities, server_name=config.tls_server_name)
    words.append(f"--ca-hash={pinned}" if pinned else "--ca-file=FILE-WITH-THE-CA-OF-THE-REGISTRY")
    return shlex.join(words)


def _list(given: Given[OutputOptions]) -> int:
    config = registry_config(given.options, given.environ, user_agent=_USER_AGENT)
    with _tokens(config) as tokens:
        found = tokens.list_all()
    if given.options.output != TABLE:
        say(rendered(_without_managers(found), given.options.output))
        return exit_status.OK
    rows = [_row(each) for each in sorted(items(found), key=lambda each: str(each["metadata"]["name"]))]
    if not rows:
        complain("There are no bootstrap tokens.")
        return exit_status.OK
    say(*table_lines(_COLUMNS, rows))
    return exit_status.OK


def _without_managers(found: Object) -> Object:
    """The list without managedFields, which kubectl does not show either."""
    for each in items(found):
        each["metadata"].pop("managedFields", None)
    return found


def _row(token: Object) -> tuple[str, ...]:
    spec = token.get("spec") or {}
    labels = ",".join(f"{key}={value}" for key, value in sorted((spec.get("clusterLabels") or {}).items()))
    return (
        token["metadata"]["name"],
        spec.get("clusterName") or "",
        _left(expiration(spec.get("expirationTime"))),
        labels or "<none>",
        spec.get("description") or "",
    )


def _left(end: float | None) -> str:
    seconds = int((end or 0.0) - time.time())
    return f"in {human_duration(seconds)}" if seconds > 0 else "expired"


def _delete(given: Given[RegistryOptions]) -> int:
    config = registry_config(given.options, given.environ, user_agent=_USER_AGENT)
    with _tokens(config) as tokens:
        for name in given.operands:
            # A whole token is accepted: people copy what they have.
            tokens.delete(name.partition(".")[0])
            say(f"bootstrap token {name.partition('.')[0]} deleted")
    return exit_status.OK


@contextmanager
def _tokens(config: RestConfig) -> Iterator[SyncResourceClient]:
    """Raises OperatorError for what the server refuses."""
    try:
        with SyncClient(config) as client:
            yield client.resource(TOKENS)
    except errors.ClientError as error:
        raise OperatorError(str(error), remedy=_remedy(error)) from None


def _remedy(error: errors.ClientError) -> str:
    if isinstance(error, errors.ForbiddenError):
        return "ask the registry's administrator for the right to create, list and delete bootstraptokens"
    if isinstance(error, errors.NotFoundError):
        return "`clusterregistry join-token list` shows the tokens. Only a standalone registry has any"
    if isinstance(error, errors.UnauthorizedError):
        return "renew the credential in the kubeconfig: the registry does not know it"
    if isinstance(error, errors.TransportError):
        return "check that the kubeconfig is that of the registry, and that the registry runs"
    return "correct what the message names"


def _options(shape: type[Any]) -> OptionSet[Any]:
    return OptionSet(shape=shape, program="clusterregistry")


CREATE: Subcommand[CreateOptions] = Subcommand(
    help="""\
Makes a bootstrap token, with which one member can join as CLUSTER until the token ends.

Prints the token, and the command for the member. The token is shown this once: the registry keeps a hash of it.

Usage:
  PROGRAM join-token create CLUSTER [flags]

Examples:
  # A token for a day, and the labels that the cluster gets
  PROGRAM join-token create edge-1 --label=env=edge --label=region=eu

  # For a member that reaches the registry by another address
  PROGRAM join-token create edge-1 --server=https://registry.example.com:8443
""",
    options=_options(CreateOptions),
    operands=Operands(least=1, most=1, missing="name the cluster: clusterregistry join-token create CLUSTER"),
    run=_create,
)

LIST: Subcommand[OutputOptions] = Subcommand(
    help="""\
Lists the bootstrap tokens, without their secrets, which are kept nowhere.

Usage:
  PROGRAM join-token list [flags]
""",
    options=_options(OutputOptions),
    run=_list,
)

DELETE: Subcommand[RegistryOptions] = Subcommand(
    help="""\
Deletes bootstrap tokens: members can no longer join with them. Clusters that have joined, and their agents, stay.

Usage:
  PROGRAM join-token delete ID... [flags]
""",
    options=_options(RegistryOptions),
    operands=Operands(least=1, most=1000, missing="name the token: clusterregistry join-token delete ID"),
    run=_delete,
)
