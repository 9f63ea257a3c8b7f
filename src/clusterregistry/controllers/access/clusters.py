"""The clusters that a check is about: of a registry, or of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apimachinery.meta.label_selectors import EVERYTHING, LabelSelector
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import kubeconfig
from clusterregistry.client.errors import ClientError, ConfigError, NotFoundError, printable
from clusterregistry.client.rest import Client, GroupVersionResource, ListOptions, Object, ResourceClient, items
from clusterregistry.client.rest_config import RestConfig, from_context, in_cluster
from clusterregistry.controllers.access.subject import subject_of

PLURAL, KIND = "clusters", "Cluster"
MAX_CLUSTERS = 100_000
MAX_BYTES = 256 << 20
MAX_DOCUMENT = 3 << 20
_VERSIONS = (v1beta1.VERSION, v1alpha1.VERSION)
"""The best first. Rules and probes read either."""


class UnknownClusterError(OperatorError):
    """There is no cluster of this name."""


def find_config(environ: Mapping[str, str], *, file: Path | None, context: str, user_agent: str) -> RestConfig:
    """Access by a kubeconfig as kubectl finds it, else by the service account of this pod. Raises OperatorError."""
    try:
        where = kubeconfig.paths(environ, explicit=str(file or ""))
        is_given = bool(where.source) or any(each.exists() for each in where.files)
        own = None if is_given or context else in_cluster(environ, user_agent=user_agent)
        return own or from_context(kubeconfig.load(where).context(context), user_agent=user_agent)
    except ConfigError as error:
        raise OperatorError(str(error), remedy="name the kubeconfig of the registry: --kubeconfig=FILE") from None


async def from_registry(config: RestConfig, *, name: str, selector: str) -> list[Object]:
    """The clusters of a registry, or the one of a name. Raises OperatorError."""
    try:
        async with Client(config) as client:
            return await _read(client, name=name, selector=selector)
    except ClientError as error:
        message = f"the clusters cannot be read from {config.server}: {printable(str(error), 400)}"
        remedy = "check the address, the rights (get and list on clusters) and that the server is a cluster registry"
        raise OperatorError(message, remedy=remedy) from None


async def _read(client: Client, *, name: str, selector: str) -> list[Object]:
    for version in _VERSIONS:
        resource = client.resource(GroupVersionResource(GROUP, version, PLURAL))
        try:
            return await _read_version(resource, name=name, selector=selector)
        except NotFoundError as error:
            if error.details.get("name") == name and name:
                raise _unknown(name, client.config.server) from None
            if version == _VERSIONS[-1]:
                raise
    raise AssertionError


async def _read_version(resource: ResourceClient, *, name: str, selector: str) -> list[Object]:
    if name:
        return [await resource.get(name)]
    return items(await resource.list_all(ListOptions(label_selector=selector), max_items=MAX_CLUSTERS))


def from_file(file: Path, *, name: str, selector: LabelSelector = EVERYTHING) -> list[Object]:
    """The clusters in a YAML file: documents of kind Cluster, and lists of them. Raises OperatorError."""
    found = [each for document in _documents(file) for each in _clusters(document, file)]
    if len(found) > MAX_CLUSTERS:
        raise OperatorError(f"{file} has more than {MAX_CLUSTERS} clusters", remedy="split the file")
    chosen = [each for each in found if selector.matches(subject_of(each).labels)]
    if not name:
        return chosen
    named = [each for each in chosen if subject_of(each).name == name]
    if not named:
        raise _unknown(name, str(file))
    return named


def _unknown(name: str, where: str) -> UnknownClusterError:
    message = f'there is no cluster "{printable(name, 253)}" in {where}'
    return UnknownClusterError(message, remedy="see which there are: `kubectl get clusters`")


def _documents(file: Path) -> list[Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{file} cannot be read: {error.strerror or error}", remedy="name another file") from None
    if len(content) > MAX_BYTES:
        raise OperatorError(f"{file} is larger than {MAX_BYTES} bytes", remedy="split the file")
    try:
        return [yaml_codec.decode(part, strict=False).value for part in _split(content)]
    except DecodeError as error:
        message = f"{file} is not YAML: {printable(str(error), 300)}"
        raise OperatorError(message, remedy="correct the file") from None


def _split(content: bytes) -> list[bytes]:
    """The documents, as kubectl splits them: at lines that begin with three dashes."""
    parts = (b"\n" + content).split(b"\n---")
    return [part for part in (parts[0], *(each.partition(b"\n")[2] for each in parts[1:])) if part.strip()]


def _clusters(document: Any, file: Path) -> list[Object]:
    if document is None:
        return []
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in (f"{KIND}List", "List"):
        return [each for item in items(document) for each in _clusters(item, file)]
    if kind == KIND and str(document.get("apiVersion", "")).startswith(f"{GROUP}/"):
        return [document]
    raise OperatorError(f"{file} has something that is no {KIND} of {GROUP}", remedy="keep clusters in the file only")
