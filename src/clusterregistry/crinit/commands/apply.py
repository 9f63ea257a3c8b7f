"""Applies manifests one by one, and never takes over what somebody else made."""

from __future__ import annotations

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.commands.progress import Progress
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import CONFLICT, Client, path_to
from clusterregistry.crinit.manifests.objects import CRINIT, INSTANCE, MANAGED_BY, Manifest


def apply(client: Client, progress: Progress, manifest: Manifest) -> Manifest:
    """Creates the object or makes it as the manifest says. Raises HostError, or OperatorError when it is not ours."""
    shown = shown_as(manifest)
    with progress.step(shown) as outcome:
        before = client.get(path_to(manifest))
        if before is not None:
            require_ours(before, manifest)
            require_staying(before, manifest)
        elif manifest["kind"] == "Secret":
            _create_first(client, manifest)
        after = client.apply(manifest)
        if before is None:
            progress.made.append(shown)
            outcome.text = "created"
        elif _version(before) != _version(after):
            progress.changed.append(shown)
            outcome.text = "updated"
        else:
            outcome.text = "unchanged"
    return after


def _create_first(client: Client, manifest: Manifest) -> None:
    """Two runs at once must not make two authorities: the second one may not apply its own over the first."""
    try:
        client.create(manifest)
    except HostError as error:
        if error.status != CONFLICT:
            raise
        raise OperatorError(
            f"{shown_as(manifest)} was made by somebody else at the same moment",
            remedy="run the same command again: it takes what is there",
        ) from None


def shown_as(manifest: Manifest) -> str:
    described = manifest["metadata"]
    namespace = f"{described['namespace']}/" if described.get("namespace") else ""
    return f"{manifest['kind']} {namespace}{described['name']}"


def require_ours(found: Manifest, manifest: Manifest) -> None:
    """Ours is what carries our label, and the name of the same registry where the manifest names one."""
    labels, wanted = found["metadata"].get("labels") or {}, manifest["metadata"]["labels"]
    if not is_ours(found) or labels.get(INSTANCE) != wanted.get(INSTANCE):
        maker = labels.get(MANAGED_BY) or "somebody else"
        raise OperatorError(
            f"{shown_as(manifest)} is there already, and {maker} made it, not crinit for this registry",
            remedy="choose another name or namespace, or remove that object first",
        )


def require_staying(found: Manifest, manifest: Manifest) -> None:
    """What is on its way out would take everything with it that is applied now."""
    if found["metadata"].get("deletionTimestamp"):
        raise OperatorError(
            f"{shown_as(manifest)} is being deleted",
            remedy="wait until it is gone and run the same command again; `kubectl describe` says what it waits for",
        )


def is_ours(found: Manifest) -> bool:
    return (found["metadata"].get("labels") or {}).get(MANAGED_BY) == CRINIT


def _version(found: Manifest) -> str:
    return str(found["metadata"].get("resourceVersion"))
