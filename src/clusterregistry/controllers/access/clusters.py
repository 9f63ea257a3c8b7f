"""The clusters that a check is about: of a registry, or of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apimachinery.meta.label_selectors import EVERYTHING, LabelSelector
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.errors import ClientError, ForbiddenError, NotFoundError, UnauthorizedError, printable
from clusterregistry.client.rest import Client, ListOptions, Object, items
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.access.subject import subject_of
from clusterregistry.controllers.cluster_client import KIND, ClusterClient, served_version

MAX_CLUSTERS = 100_000
MAX_BYTES = 256 << 20


class UnknownClusterError(OperatorError):
    """There is no cluster of this name."""


async def from_registry(config: RestConfig, *, name: str, selector: str) -> list[Object]:
    """The clusters of a registry, or the one of a name. Raises OperatorError."""
    try:
        async with Client(config) as client:
            clusters = ClusterClient(client, version=await served_version(client))
            return await _read(clusters, name=name, selector=selector)
    except ClientError as error:
        message = f"the clusters cannot be read from {config.server}: {printable(str(error), 400)}"
        raise OperatorError(message, remedy=_remedy(error)) from None


def _remedy(error: ClientError) -> str:
    if isinstance(error, UnauthorizedError):
        return "renew the credential in the kubeconfig: the registry does not know it"
    if isinstance(error, ForbiddenError):
        return "ask the registry's administrator for the rights get and list on clusters: the role view has them"
    return "check that the kubeconfig is that of the registry, and that the registry runs"


async def _read(clusters: ClusterClient, *, name: str, selector: str) -> list[Object]:
    if not name:
        listed = await clusters.resource.list_all(ListOptions(label_selector=selector), max_items=MAX_CLUSTERS)
        return [clusters.interpret(each) for each in items(listed)]
    try:
        return [await clusters.get(name)]
    except NotFoundError:
        raise UnknownClusterError(
            f'there is no cluster "{printable(name, 253)}" in the registry',
            remedy="see which there are: `kubectl get clusters`",
        ) from None


def from_file(file: Path, *, name: str, selector: LabelSelector = EVERYTHING) -> list[Object]:
    """The clusters in a YAML file: documents of kind Cluster, and lists of them. Raises OperatorError."""
    found = parse(read_file(file), str(file))
    chosen = [each for each in found if selector.matches(subject_of(each).labels)]
    if not name:
        return chosen
    named = [each for each in chosen if subject_of(each).name == name]
    if not named:
        raise UnknownClusterError(
            f'there is no cluster "{printable(name, 253)}" in {file}', remedy="name one of the clusters in the file"
        )
    return named


def read_file(file: Path) -> bytes:
    """A file of a bounded size. Raises OperatorError."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{file} cannot be read: {error.strerror or error}", remedy="name another file") from None
    if len(content) > MAX_BYTES:
        raise OperatorError(f"{file} is larger than {MAX_BYTES} bytes", remedy="split the file")
    return content


def parse(content: bytes, source: str) -> list[Object]:
    """The clusters in YAML, as they stand there; ``source`` is named in messages. Raises OperatorError."""
    found = [each for document in _documents(content, source) for each in _clusters(document, source)]
    if len(found) > MAX_CLUSTERS:
        raise OperatorError(f"{source} has more than {MAX_CLUSTERS} clusters", remedy="split the file")
    return found


def _documents(content: bytes, source: str) -> list[Any]:
    try:
        return [yaml_codec.decode(part, strict=False).value for part in _split(content)]
    except DecodeError as error:
        message = f"{source} is not YAML: {printable(str(error), 300)}"
        raise OperatorError(message, remedy="correct the file") from None


def _split(content: bytes) -> list[bytes]:
    """The documents, as kubectl splits them: at lines that begin with three dashes."""
    parts = (b"\n" + content).split(b"\n---")
    return [part for part in (parts[0], *(each.partition(b"\n")[2] for each in parts[1:])) if part.strip()]


def _clusters(document: Any, source: str) -> list[Object]:
    if document is None:
        return []
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in (f"{KIND}List", "List"):
        return [each for item in items(document) for each in _clusters(item, source)]
    if kind == KIND and str(document.get("apiVersion", "")).startswith(f"{GROUP}/"):
        return [document]
    raise OperatorError(f"{source} has something that is no {KIND} of {GROUP}", remedy="keep clusters in the file only")
