"""Turns flags into ``Settings``. Every mistake is reported, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.client import credentials
from clusterregistry.client.errors import ConfigError
from clusterregistry.crinit.options import CrinitOptions, resolve_given
from clusterregistry.crinit.settings import (
    LONGEST_NAME,
    ControllerSettings,
    EtcdFiles,
    Mode,
    ServiceType,
    Settings,
)

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def settings(mode: Mode, name: str, given: Mapping[str, str]) -> Settings:
    """Returns the settings of flags as text. Raises OptionsError."""
    resolved = resolve_given(given)
    files, file_problems = read_files(resolved.options)
    chosen = _chosen(mode, name, resolved.options, files)
    problems = [*name_problems(name), *resolved.problems, *file_problems, *_conflicts(chosen)]
    problems += _controller_conflicts(chosen, given)
    if problems:
        raise OptionsError(problems)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The content of the files that flags name."""

    etcd: EtcdFiles = field(default_factory=EtcdFiles)
    access_config: str = ""


def _chosen(mode: Mode, name: str, options: CrinitOptions, files: Files) -> Settings:
    registry = options.registry
    default_type = ServiceType.LOAD_BALANCER if mode is Mode.STANDALONE else ServiceType.CLUSTER_IP
    return Settings(
        mode=mode,
        name=name,
        namespace=options.host.cluster_registry_namespace,
        image=registry.image,
        replicas=registry.replicas,
        service_type=registry.api_server_service_type or default_type,
        advertise_address=registry.api_server_advertise_address,
        node_port=registry.api_server_port,
        token_auth=registry.apiserver_enable_token_auth,
        audit=registry.audit_log,
        network_policy=registry.network_policy,
        persistent=registry.etcd_persistent_storage,
        capacity=registry.etcd_pv_capacity,
        storage_class=registry.storage_class or registry.etcd_pv_storage_class,
        etcd_image=registry.etcd_image,
        etcd_servers=registry.etcd_servers,
        etcd_files=files.etcd,
        argument_overrides=registry.apiserver_arg_overrides,
        controller=_controller(options, files),
    )


def _controller(options: CrinitOptions, files: Files) -> ControllerSettings | None:
    chosen = options.controller
    if not chosen.with_controller:
        return None
    return ControllerSettings(
        replicas=chosen.controller_replicas,
        access_config=files.access_config,
        argument_overrides=chosen.controller_arg_overrides,
    )


def name_problems(name: str) -> list[Problem]:
    """Returns why a word cannot be the name of a registry."""
    if len(name) <= LONGEST_NAME and _LABEL.fullmatch(name):
        return []
    rule = f'letters a to z, digits and "-", at most {LONGEST_NAME}; first a letter, last no "-"'
    return [Problem("", f'the name "{name}": must be {rule}')]


def read_files(options: CrinitOptions) -> tuple[Files, list[Problem]]:
    """Reads the files that flags name; a file that cannot be read is a problem, and empty."""
    problems: list[Problem] = []

    def content(flag: str, path: Path | None) -> bytes:
        try:
            return credentials.read_file(path) if path else b""
        except ConfigError as error:
            problems.append(Problem(flag, str(error)))
            return b""

    etcd = EtcdFiles(
        authority=content("--etcd-cafile", options.etcd_files.etcd_cafile),
        certificate=content("--etcd-certfile", options.etcd_files.etcd_certfile),
        key=content("--etcd-keyfile", options.etcd_files.etcd_keyfile),
    )
    access_config, access_problems = _access_config(content("--access-config", options.access.access_config))
    return Files(etcd=etcd, access_config=access_config), [*problems, *access_problems]


def _access_config(content: bytes) -> tuple[str, list[Problem]]:
    try:
        return content.decode(), []
    except UnicodeDecodeError:
        return "", [Problem("--access-config", "is not a text in UTF-8")]


def _conflicts(chosen: Settings) -> list[Problem]:
    """Returns a problem for flags that are valid each, but not together."""
    found = []
    if chosen.mode is Mode.AGGREGATED and chosen.token_auth:
        why = "an aggregated registry knows the users of its host cluster; leave it out"
        found.append(Problem("--apiserver-enable-token-auth", why))
    if chosen.node_port and chosen.service_type is not ServiceType.NODE_PORT:
        found.append(Problem("--api-server-port", "needs --api-server-service-type=NodePort"))
    if chosen.advertise_address and chosen.service_type is ServiceType.LOAD_BALANCER:
        why = "a LoadBalancer has its own; use NodePort or ClusterIP"
        found.append(Problem("--api-server-advertise-address", why))
    if chosen.etcd_files and not chosen.etcd_servers:
        found.append(Problem("--etcd-cafile, --etcd-certfile, --etcd-keyfile", "need --etcd-servers"))
    if bool(chosen.etcd_files.certificate) != bool(chosen.etcd_files.key):
        found.append(Problem("", "--etcd-certfile and --etcd-keyfile must be given together"))
    return found


def _controller_conflicts(chosen: Settings, given: Mapping[str, str]) -> list[Problem]:
    """Without a controller its flags would be ignored without notice; --with-controller=false removes it on purpose."""
    if chosen.controller or "with-controller" in given:
        return []
    flags = ("controller-replicas", "controller-arg-overrides", "access-config")
    return [Problem(f"--{flag}", "needs --with-controller") for flag in flags if flag in given]
