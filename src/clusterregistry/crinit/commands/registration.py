"""The registration of an aggregated registry with its host's kube-apiserver: the APIServices that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from clusterregistry.crinit.commands import apply
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.errors import NotReady
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests import apiservices
from clusterregistry.crinit.settings import Settings


@dataclass(frozen=True, slots=True)
class Availability:
    """What kube-apiserver says of an APIService."""

    available: bool
    message: str = ""
    """Empty when there is no such APIService, or kube-apiserver has not tried it yet."""


def path_to(version: str) -> str:
    return path_of(apiservices.API_VERSION, apiservices.KIND, name=apiservices.name_of(version))


def shown_as(version: str) -> str:
    return f"{apiservices.KIND} {apiservices.name_of(version)}"


def registered(session: Session) -> Iterator[str]:
    """Yields the versions whose APIService crinit made for this registry."""
    for version in apiservices.VERSIONS:
        found = session.client.get(path_to(version))
        if found is not None and apply.is_ours(found) and _is_for(session, found):
            yield version


def _is_for(session: Session, apiservice: dict[str, Any]) -> bool:
    """Names are fixed and labels do not have the namespace: the service tells which registry it is for."""
    service = (apiservice.get("spec") or {}).get("service") or {}
    return (service.get("namespace"), service.get("name")) == (session.namespace, session.name)


def remove_unserved(session: Session, settings: Settings) -> None:
    """Deletes the APIServices of an earlier run whose versions the server no longer serves."""
    served = apiservices.served(settings.argument_overrides)
    for version in registered(session):
        if version not in served:
            with session.progress.step(shown_as(version)) as outcome:
                session.client.delete(path_to(version))
                outcome.text = "deleted"


def availability(session: Session, version: str) -> Availability:
    found = session.client.get(path_to(version)) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    condition: dict[str, Any] = next((each for each in conditions if each.get("type") == "Available"), {})
    message = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
    return Availability(condition.get("status") == "True", message)


def wait(session: Session, versions: Iterable[str]) -> None:
    """Waits until kube-apiserver of the host cluster forwards requests for each version. Raises NotReady."""
    for version in versions:
        _wait(session, version)


def _wait(session: Session, version: str) -> None:
    message = ""

    def is_available() -> bool:
        nonlocal message
        state = availability(session, version)
        message = state.message or "Unknown: nothing is known yet"
        return state.available

    with session.progress.step(shown_as(version)) as outcome:
        if not session.patience.until(is_available):
            raise NotReady(
                f"the host's kube-apiserver does not reach {version} of the registry: {message}",
                remedy=remedy_of(version, message),
            )
        outcome.text = "available"


def remedy_of(version: str, message: str) -> str:
    """What to do about an APIService of which kube-apiserver says this."""
    if "bad status" in message and message.endswith(": 404"):
        return f"the registry does not serve {version}: name an image of this release, --image=IMAGE; then run it again"
    return (
        "is the aggregation layer enabled (--requestheader-client-ca-file and --proxy-client-cert-file "
        "of kube-apiserver), and may it reach the pods' port 8443?"
    )
