"""``user``: makes users with client certificates of the registry, and lists the requests for certificates."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import secrets
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusterregistry import __version__
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.duration import human_duration
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import DURATION, FILE, INTEGER, TEXTS
from clusterregistry.cli.output import OUTPUT, TABLE, Output, rendered
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.cli.table import table_lines
from clusterregistry.client import rest_config
from clusterregistry.client.certificate_request import (
    REQUESTS,
    SIGNER,
    NewRequest,
    conditions,
    new_request,
    signed,
    validity,
)
from clusterregistry.client.errors import ClientError, ForbiddenError, NotFoundError, printable
from clusterregistry.client.kubeconfig_file import SECRET, locked, replace_content
from clusterregistry.client.rest import Client, ListOptions, Object, ResourceClient, items
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.registry_options import RegistryOptions, registry_config

USER_AGENT = f"clusterregistry-user/{__version__}"
MOST_DAYS = 365
"""The longest validity that the registry gives."""

_DAY = 86400
_SIGNING = 60.0
"""Seconds that an approved request may take to be signed."""

_LONGEST_NAME = 253
_LONGEST_SLUG = 60
_REGISTRY = "clusterregistry"
_ANOTHER = "name another file: --out=FILE"
_COLUMNS = ("USER", "GROUPS", "STATE", "EXPIRES", "REQUEST", "REQUESTED BY")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions(RegistryOptions):
    """User."""

    group: tuple[str, ...] = option(
        (), kind=TEXTS, help="A group of the user, to which roles are bound. May be repeated.", example="--group=team-a"
    )
    days: int = option(90, kind=INTEGER, help=f"How long the certificate is valid: {MOST_DAYS} days at most.")
    out: Path | None = option(
        None,
        kind=FILE,
        help="The new kubeconfig of the user, which only its owner can read: it holds the key.",
        default_shown="NAME.kubeconfig",
    )
    wait: float = option(
        0.0,
        kind=DURATION,
        help="How long to wait for the approval, if you may not approve the request yourself.",
        default_shown="not at all",
        example="--wait=1h",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOfUsersOptions(RegistryOptions):
    """Users."""

    output: Output = option("table", kind=OUTPUT, short="o", help="For people, or `json` or `yaml` for programs.")


CREATE_HELP = """\
Makes a user with a client certificate of the registry, and a kubeconfig for it.

The key is made on this machine and stands in the kubeconfig alone. The certificate is requested by the API, approved if
you may approve requests for clients, and fetched. The user has the rights that roles give to it and to its groups, so
none at first.

Usage:
  PROGRAM user create NAME [--group GROUP ...] [--days N] [flags]

Examples:
  # A teammate who may read all clusters
  PROGRAM user create jane --group readers --days 30
  kubectl create clusterrolebinding readers --clusterrole=view --group=readers
"""


def _create(given: Given[CreateOptions]) -> int:
    options, (user,) = given.options, given.operands
    _validate(user, options)
    file = (options.out or Path(f"{_slug(user)}.kubeconfig")).expanduser()
    config = registry_config(options, given.environ, user_agent=USER_AGENT)
    authorities = rest_config.authorities_reader(config)()
    _require_free(file)
    made = new_request(user, options.group)
    certificate = asyncio.run(_certificate(config, made, given))
    document = _kubeconfig(config, authorities, user, certificate=certificate, key=made.key)
    with locked(file, another=_ANOTHER):
        _require_free(file)
        replace_content(file, yaml_codec.encode(document), mode=SECRET, another=_ANOTHER)
    say(
        f"user:    {user}",
        f"groups:  {', '.join(options.group) or '<none>'}",
        f"expires: {times.render(datetime.fromtimestamp(validity(certificate)[1], UTC))}",
        f"file:    {file}",
        "",
        "The file holds the key of the user: hand it over as you would a password. Try it:",
        "",
        f"  {shlex.join(['kubectl', f'--kubeconfig={file}', 'auth', 'whoami'])}",
    )
    return exit_status.OK


def _validate(user: str, options: CreateOptions) -> None:
    """Raises OptionsError."""
    problems = [
        Problem(where, "must be printable text of at most 253 characters")
        for where, text in (("", user), *(("--group", group) for group in options.group))
        if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME
    ]
    if not 1 <= options.days <= MOST_DAYS:
        problems.append(Problem("--days", f"must be from 1 to {MOST_DAYS}"))
    if problems:
        raise OptionsError(problems)


def _require_free(file: Path) -> None:
    """Raises OperatorError before a certificate is made that could not be written."""
    if file.exists():
        raise OperatorError(f"there is a file {file} already", remedy=f"remove it, or {_ANOTHER}")
    if not file.parent.is_dir():
        raise OperatorError(f"there is no folder {file.parent}", remedy=f"make it, or {_ANOTHER}")
    if not os.access(file.parent, os.W_OK):
        raise OperatorError(f"the folder {file.parent} cannot be written", remedy=f"make it writable, or {_ANOTHER}")


def _slug(user: str) -> str:
    """The user's name as a part of names of files and requests."""
    return re.sub("[^a-z0-9]+", "-", user.lower(), flags=re.ASCII).strip("-")[:_LONGEST_SLUG].strip("-") or "user"


async def _certificate(config: RestConfig, made: NewRequest, given: Given[CreateOptions]) -> bytes:
    """The certificate in PEM. Raises OperatorError."""
    options, (user,) = given.options, given.operands
    name = f"user-{_slug(user)}-{secrets.token_hex(4)}"
    try:
        async with Client(config) as client:
            requests = client.resource(REQUESTS)
            request = await requests.create(made.manifest(name, seconds=options.days * _DAY))
            patience = _SIGNING if await _approved(requests, request, options) else options.wait
            async with asyncio.timeout(patience):
                return await signed(requests, name, next_step="try again")
    except TimeoutError:
        raise OperatorError(
            f"the certificate request {name} was not signed within {patience:g} s",
            remedy=f"see what became of it: kubectl describe csr {name}. Its key is gone: make the user again. The "
            "registry signs only if it has an authority for clients of its own (--generate-admin)",
        ) from None
    except ClientError as error:
        raise OperatorError(printable(str(error), 400), remedy=_remedy(error)) from None


async def _approved(requests: ResourceClient, request: Object, options: CreateOptions) -> bool:
    """Approves a request. False: another user has to, and is waited for. Raises ClientError and OperatorError."""
    name = request["metadata"]["name"]
    condition = {"type": "Approved", "status": "True", "reason": "UserCreate", "message": "Approved by its maker."}
    approved = {**request, "status": {**(request.get("status") or {}), "conditions": [condition]}}
    try:
        await requests.update(approved, subresource="approval")
    except ForbiddenError:
        if options.wait <= 0:
            with contextlib.suppress(ClientError):
                await requests.delete(name)
            raise OperatorError(
                "you may not approve requests for certificates",
                remedy="let a user with that right run this command, or give --wait=1h: then such a user approves the "
                "request meanwhile, with `kubectl certificate approve`",
            ) from None
        complain(
            "You may not approve the request. Waiting for a user with the right to update "
            "certificatesigningrequests/approval and to approve for the signer, who runs:",
            "",
            f"  kubectl certificate approve {name}",
            "",
        )
        return False
    return True


def _remedy(error: ClientError) -> str:
    if isinstance(error, ForbiddenError):
        return "ask the registry's administrator for the right to create, get and list certificatesigningrequests"
    if isinstance(error, NotFoundError):
        return "only a standalone registry signs certificates: in aggregated mode users are those of the host cluster"
    return "check that the kubeconfig is that of the registry, and that the registry runs"


def _kubeconfig(config: RestConfig, authorities: bytes, user: str, *, certificate: bytes, key: bytes) -> Object:
    cluster: Object = {"server": config.server}
    if authorities:
        cluster["certificate-authority-data"] = base64.b64encode(authorities).decode()
    if config.tls_server_name:
        cluster["tls-server-name"] = config.tls_server_name
    if config.proxy_url:
        cluster["proxy-url"] = config.proxy_url
    credential = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    context = {"cluster": _REGISTRY, "user": user}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _REGISTRY, "cluster": cluster}],
        "users": [{"name": user, "user": credential}],
        "contexts": [{"name": _REGISTRY, "context": context}],
        "current-context": _REGISTRY,
    }


# List


def _list(given: Given[ListOfUsersOptions]) -> int:
    config = registry_config(given.options, given.environ, user_agent=USER_AGENT)
    found = [each for request in asyncio.run(_requests(config)) if (each := _described(request)) is not None]
    if given.options.output != TABLE:
        say(rendered({"items": found}, given.options.output))
        return exit_status.OK
    if not found:
        complain("There are no requests for certificates of users.")
        return exit_status.OK
    say(*table_lines(_COLUMNS, map(_row, found)))
    return exit_status.OK


async def _requests(config: RestConfig) -> list[Object]:
    """The requests for client certificates. Raises OperatorError."""
    try:
        async with Client(config) as client:
            options = ListOptions(field_selector=f"spec.signerName={SIGNER}")
            return items(await client.resource(REQUESTS).list_all(options))
    except ClientError as error:
        raise OperatorError(printable(str(error), 400), remedy=_remedy(error)) from None


def _described(request: Object) -> Object | None:
    """What a request says of its user; None for one that cannot be read."""
    from clusterregistry.api.certificates.v1 import pkcs10  # noqa: PLC0415 - slow import

    spec, status = request.get("spec") or {}, request.get("status") or {}
    try:
        parsed = pkcs10.parse_request(content_of(spec.get("request") or "") or b"")
    except pkcs10.MalformedRequestError:
        return None
    certificate = content_of(status.get("certificate") or "")
    types = {each.get("type") for each in conditions(status)}
    state = next((each for each in ("Denied", "Failed") if each in types), "Issued" if certificate else "")
    return {
        "user": printable(", ".join(_values(parsed, pkcs10.COMMON_NAME_OID)), _LONGEST_NAME),
        "groups": [printable(each, _LONGEST_NAME) for each in _values(parsed, pkcs10.ORGANIZATION_OID)],
        "state": state or ("Approved" if "Approved" in types else "Pending"),
        "expires": _end(certificate),
        "request": request["metadata"]["name"],
        "requestedBy": printable(str(spec.get("username") or ""), _LONGEST_NAME),
    }


def _values(parsed: Any, oid: str) -> list[str]:
    return [str(each.value) for each in parsed.subject if each.oid.dotted_string == oid]


def _end(certificate: bytes | None) -> str | None:
    try:
        end = validity(certificate)[1] if certificate else None
    except (ValueError, IndexError):
        return None
    return None if end is None else times.render(datetime.fromtimestamp(end, UTC))


def _row(described: Mapping[str, Any]) -> tuple[str, ...]:
    end = described["expires"]
    left = times.parse(end).timestamp() - time.time() if end else 0.0
    return (
        described["user"] or "<none>",
        ",".join(described["groups"]) or "<none>",
        described["state"],
        "-" if not end else f"in {human_duration(int(left))}" if left > 0 else "expired",
        described["request"],
        described["requestedBy"],
    )


CREATE: Subcommand[Any] = Subcommand(
    help=CREATE_HELP,
    options=OptionSet(shape=CreateOptions, program="clusterregistry"),
    operands=Operands(least=1, most=1, missing="name the user: PROGRAM user create NAME"),
    run=_create,
)

LIST: Subcommand[Any] = Subcommand(
    help="Lists the requests for client certificates, with their users and the ends of their certificates.\n\nThe "
    "registry keeps a request for an hour after its certificate was issued or refused, and for a day while none has "
    "decided on it. Certificates live longer than their requests.\n\nUsage:\n  PROGRAM user list [flags]\n",
    options=OptionSet(shape=ListOfUsersOptions, program="clusterregistry"),
    run=_list,
)
