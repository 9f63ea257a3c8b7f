"""The options of crinit, each stated once. Those of v0.0.3 keep their names.

``RegistryOptions`` and ``ControllerOptions`` describe a registry: crinit records them beside it, and a later run need
not repeat them.
"""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from clusterregistry.cli.options.field import Option, OptionSet, option, options_of
from clusterregistry.cli.options.problems import Problem, Vocabulary, by_word
from clusterregistry.cli.options.sources import Given, Reading, Resolved, resolve
from clusterregistry.cli.options.value_types import BOOLEAN, DURATION, FILE, Kind, choice
from clusterregistry.crinit.settings import (
    DEFAULT_CAPACITY,
    DEFAULT_CONTROLLER_REPLICAS,
    DEFAULT_ETCD_IMAGE,
    DEFAULT_IMAGE,
    DEFAULT_NAMESPACE,
    ServiceType,
    split_arguments,
)

INIT = "init"
DELETE = "delete"
STATUS = "status"
UPGRADE = "upgrade"
COMMANDS = (INIT, DELETE, STATUS, UPGRADE)

_INIT = frozenset({INIT})
_APPLYING = frozenset({INIT, UPGRADE})
_CHANGING = frozenset({INIT, UPGRADE, DELETE})

_LONGEST_LABEL = 63
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII | re.IGNORECASE)
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?", re.ASCII)


def _text(metavar: str) -> Kind[str]:
    return Kind(metavar=metavar, parse=str.strip, empty_is_default=True)


def _number(metavar: str, least: int, most: int) -> Kind[int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
            raise ValueError(f'"{text}" is not a number from {least} to {most}')
        return int(text)

    return Kind(metavar=metavar, parse=parse)


def _parse_namespace(text: str) -> str:
    if len(text) > _LONGEST_LABEL or not _NAMESPACE.fullmatch(text):
        raise ValueError(f'"{text}" is not a namespace: lower case letters, digits and "-", at most {_LONGEST_LABEL}')
    return text


def _parse_image(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f'"{text}" is not an image such as registry.example.com/clusterregistry:1.0')
    return text


def _parse_address(text: str) -> str:
    if _HOST.fullmatch(text):
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f'"{text}" is not an IP address or a host name, without port') from None


def _parse_service_type(text: str) -> ServiceType:
    for each in ServiceType:
        if each.lower() == text.lower():
            return each
    raise ValueError(f'"{text}" is not one of {", ".join(ServiceType)}')


def _parse_quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text):
        raise ValueError(f'"{text}" is not a size such as {DEFAULT_CAPACITY}')
    return text


def _parse_urls(text: str) -> tuple[str, ...]:
    urls = tuple(part for part in text.split(",") if part)
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f'"{url}" is not a URL such as https://etcd-1.example.com:2379')
    return urls


def _parse_arguments(text: str) -> tuple[str, ...]:
    found = split_arguments(text)
    if wrong := [part for part in found if not part.startswith("--") or part == "--"]:
        raise ValueError(f"{wrong[0]} is no argument such as --v=1")
    return found


def _show_optional(value: object) -> str:
    return str(value) if value else ""


IMAGE: Kind[str] = Kind(metavar="IMAGE", parse=_parse_image)
SERVICE_TYPE: Kind[ServiceType | None] = Kind(
    metavar="TYPE",
    parse=_parse_service_type,
    show=_show_optional,
    empty_is_default=True,
    choices=tuple(str(each) for each in ServiceType),
)
ARGUMENTS: Kind[tuple[str, ...]] = Kind(
    metavar="ARGS", parse=_parse_arguments, show=",".join, next_is_value=lambda _: True, empty_is_default=True
)
URLS: Kind[tuple[str, ...]] = Kind(metavar="URL,URL", parse=_parse_urls, show=",".join, empty_is_default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """Host cluster."""

    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig to read and to add the registry to.",
        default_shown="$KUBECONFIG, else ~/.kube/config",
    )
    host_cluster_context: str = option(
        "",
        kind=_text("CONTEXT"),
        help="The context of the cluster to deploy into.",
        default_shown="the current context",
    )
    cluster_registry_namespace: str = option(
        DEFAULT_NAMESPACE,
        kind=Kind(metavar="NAMESPACE", parse=_parse_namespace),
        help="The namespace in the host cluster.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Registry."""

    image: str = option(
        DEFAULT_IMAGE,
        kind=IMAGE,
        commands=_APPLYING,
        help="The image of the server, which the nodes must be able to pull.",
    )
    replicas: int = option(
        1,
        kind=_number("NUMBER", 1, 100),
        commands=_INIT,
        help="How many servers run at once. More than one keep their objects in etcd.",
    )
    api_server_service_type: ServiceType | None = option(
        None,
        kind=SERVICE_TYPE,
        commands=_INIT,
        help="The type of the service: LoadBalancer, NodePort or ClusterIP.",
        default_shown="LoadBalancer standalone, ClusterIP aggregated",
    )
    api_server_advertise_address: str = option(
        "",
        kind=Kind(metavar="ADDRESS", parse=_parse_address, empty_is_default=True),
        commands=_INIT,
        help="The address or name by which clients reach the service. Not for LoadBalancer.",
        default_shown="found in the host cluster",
    )
    api_server_port: int = option(
        0,
        kind=_number("PORT", 0, 65535),
        commands=_INIT,
        help="The port of a NodePort service; 0 takes any free one.",
    )
    apiserver_enable_token_auth: bool = option(
        False,
        kind=BOOLEAN,
        commands=_INIT,
        help="Make a token for the administrator too. Standalone only.",
    )
    audit_log: bool = option(
        True,
        kind=BOOLEAN,
        commands=_INIT,
        help="Record who changed what: the server writes audit events to its log, see `kubectl logs`.",
    )
    network_policy: bool = option(
        True,
        kind=BOOLEAN,
        commands=_INIT,
        help="Let only the registry's own pods reach its etcd, where the host's network supports NetworkPolicies.",
    )
    apiserver_arg_overrides: tuple[str, ...] = option(
        (),
        kind=ARGUMENTS,
        commands=_INIT,
        help="Arguments of the server to set or replace: --arg1=value1,--arg2=value2.",
    )
    etcd_persistent_storage: bool = option(
        True,
        kind=BOOLEAN,
        commands=_INIT,
        help="Keep the data, those of SQLite as well, on a persistent volume. When false they are lost with the pod.",
    )
    etcd_pv_capacity: str = option(
        DEFAULT_CAPACITY,
        kind=Kind(metavar="QUANTITY", parse=_parse_quantity),
        commands=_INIT,
        help="The size of each volume.",
    )
    etcd_pv_storage_class: str = option(
        "", kind=_text("CLASS"), commands=_INIT, help="The name of --storage-class in v0.0.3."
    )
    storage_class: str = option(
        "",
        kind=_text("CLASS"),
        commands=_INIT,
        help="The storage class of the volumes.",
        default_shown="the default class of the host cluster",
    )
    etcd_image: str = option(
        DEFAULT_ETCD_IMAGE,
        kind=IMAGE,
        commands=_INIT,
        help="The image of etcd, where three members are deployed for --replicas.",
    )
    etcd_servers: tuple[str, ...] = option(
        (), kind=URLS, commands=_INIT, help="An existing etcd, in place of one of our own."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFileOptions:
    """Access to --etcd-servers. The content of the files is in a Secret since the first run."""

    etcd_cafile: Path | None = option(None, kind=FILE, commands=_INIT, help="The authority of --etcd-servers.")
    etcd_certfile: Path | None = option(
        None, kind=FILE, commands=_INIT, help="Our client certificate for --etcd-servers."
    )
    etcd_keyfile: Path | None = option(None, kind=FILE, commands=_INIT, help="The key of --etcd-certfile.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """Controller, which observes the clusters of the registry."""

    with_controller: bool = option(
        False,
        kind=BOOLEAN,
        commands=_INIT,
        help="Deploy the controller too: it observes the clusters and writes their status. When false, remove it.",
    )
    controller_replicas: int = option(
        DEFAULT_CONTROLLER_REPLICAS,
        kind=_number("NUMBER", 1, 100),
        commands=_INIT,
        help="How many controllers run. One of them observes, the others take over when it ends.",
    )
    controller_arg_overrides: tuple[str, ...] = option(
        (),
        kind=ARGUMENTS,
        commands=_INIT,
        help="Arguments of the controller to set or replace: --arg1=value1,--arg2=value2.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """Access of the controller to clusters. The content of the file is in a ConfigMap since the first run."""

    access_config: Path | None = option(
        None,
        kind=FILE,
        commands=_INIT,
        help="The access.yaml of the controller: which credential is for which cluster.",
        default_shown="KEY.token and KEY.kubeconfig in the Secret NAME-clusters",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Run."""

    timeout: float = option(
        300.0,
        kind=DURATION,
        commands=_APPLYING,
        help="How long to wait for each step.",
    )
    dry_run: bool = option(False, kind=BOOLEAN, commands=_CHANGING, help="Change nothing; print what would be done.")
    output: Literal["", "yaml"] = option(
        "",
        kind=choice("yaml"),
        short="o",
        commands=_APPLYING,
        help="With --dry-run: print the manifests that would be applied.",
    )
    keep_data: bool = option(
        False,
        kind=BOOLEAN,
        commands=frozenset({DELETE}),
        help="Leave volumes, certificates and credentials, so that a later init finds them again.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrinitOptions:
    """All options of crinit, in the order of --help and of the reference."""

    host: HostOptions = field(default_factory=HostOptions)
    registry: RegistryOptions = field(default_factory=RegistryOptions)
    etcd_files: EtcdFileOptions = field(default_factory=EtcdFileOptions)
    controller: ControllerOptions = field(default_factory=ControllerOptions)
    access: AccessOptions = field(default_factory=AccessOptions)
    run: RunOptions = field(default_factory=RunOptions)


OPTIONS = OptionSet(
    shape=CrinitOptions,
    command_line_only=("help",),
    # The words of kubectl and helm.
    vocabulary=Vocabulary(
        synonyms=by_word({"host-cluster-context": "context cluster", "cluster-registry-namespace": "namespace n"})
    ),
)
REMEMBERED = frozenset(each.flag for shape in (RegistryOptions, ControllerOptions) for each in options_of(shape))


def resolve_given(given: Mapping[str, str]) -> Resolved[CrinitOptions]:
    """Parses flags as text, such as those of a record. Never raises."""
    reading = Reading([Given(flag, text, f"--{flag}") for flag, text in given.items()])
    return resolve(OPTIONS, reading, {})


def remembered(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the flags that a later run for the same registry need not repeat."""
    return {flag: text for flag, text in given.items() if flag in REMEMBERED}


def options_for(command: str) -> list[Option]:
    """Returns the options that a command takes, in the order of --help."""
    return [each for each in OPTIONS.by_flag.values() if command in (each.details.commands or COMMANDS)]


def misplaced(given: Iterable[str], command: str) -> list[Problem]:
    """Returns a problem for each flag that only other commands take."""
    return [
        Problem("", f"--{flag} is not for {command}, only for {', '.join(sorted(commands))}")
        for flag in given
        if (commands := OPTIONS.by_flag[flag].details.commands) and command not in commands
    ]
