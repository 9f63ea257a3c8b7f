"""Turns flags into ``Settings``. Every mistake is reported, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.client import credentials
from clusterregistry.client.errors import ConfigError
from clusterregistry.crinit.options import CrinitOptions, EtcdFileOptions, resolve_given
from clusterregistry.crinit.settings import LONGEST_NAME, EtcdFiles, Mode, ServiceType, Settings

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def settings(mode: Mode, name: str, given: Mapping[str, str]) -> Settings:
    """Returns the settings of flags as text. Raises OptionsError."""
    resolved = resolve_given(given)
    files, file_problems = read_etcd_files(resolved.options.etcd_files)
    chosen = _chosen(mode, name, resolved.options, files)
    problems = [*name_problems(name), *resolved.problems, *file_problems, *_conflicts(chosen)]
    if problems:
        raise OptionsError(problems)
    return chosen


def _chosen(mode: Mode, name: str, options: CrinitOptions, files: EtcdFiles) -> Settings:
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
        etcd_files=files,
        argument_overrides=registry.apiserver_arg_overrides,
    )


def name_problems(name: str) -> list[Problem]:
    """Returns why a word cannot be the name of a registry."""
    if len(name) <= LONGEST_NAME and _LABEL.fullmatch(name):
        return []
    rule = f'letters a to z, digits and "-", at most {LONGEST_NAME}; first a letter, last no "-"'
    return [Problem("", f'the name "{name}": must be {rule}')]


def read_etcd_files(options: EtcdFileOptions) -> tuple[EtcdFiles, list[Problem]]:
    """Reads the files for an external etcd; a file that cannot be read is a problem, and empty."""
    problems: list[Problem] = []

    def content(flag: str, path: Path | None) -> bytes:
        try:
            return credentials.read_file(path) if path else b""
        except ConfigError as error:
            problems.append(Problem(flag, str(error)))
            return b""

    files = EtcdFiles(
        authority=content("--etcd-cafile", options.etcd_cafile),
        certificate=content("--etcd-certfile", options.etcd_certfile),
        key=content("--etcd-keyfile", options.etcd_keyfile),
    )
    return files, problems


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
