"""How clients reach the service: known at once, or waited for."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.commands import diagnosis
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.errors import NotReady
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests.services import PORT
from clusterregistry.crinit.settings import ServiceType, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """``names`` go into the certificate. ``from_here``: crinit may expect to reach it too."""

    url: str
    names: tuple[str, ...] = ()
    from_here: bool = True


def wait(session: Session, settings: Settings) -> Reached:
    """Raises NotReady when a load balancer has no address in time, OperatorError when no node has one."""
    if settings.service_type is ServiceType.LOAD_BALANCER:
        return _load_balancer(session, settings)
    if settings.service_type is ServiceType.NODE_PORT:
        return _node_port(session, settings)
    host = settings.advertise_address or settings.service_host
    return Reached(url=_url(host, PORT), names=(host,), from_here=bool(settings.advertise_address))


def known(session: Session, settings: Settings) -> tuple[str, ...]:
    """The addresses that a load balancer has now, without waiting."""
    service = session.client.get(_path(settings)) or {}
    return _ingresses(service)


def _load_balancer(session: Session, settings: Settings) -> Reached:
    found: tuple[str, ...] = ()

    def has_address() -> bool:
        nonlocal found
        found = known(session, settings)
        return bool(found)

    with session.progress.step("Address of the load balancer") as outcome:
        if not session.patience.until(has_address):
            raise NotReady(
                f"the load balancer of the service {settings.name} has no address after {session.patience.text()}",
                remedy="does the host cluster make load balancers? If not: --api-server-service-type=NodePort; "
                "if it is slow: the same command again, with a longer --timeout",
                evidence=diagnosis.events(session, "Service", settings.name),
            )
        outcome.text = found[0]
    return Reached(url=_url(found[0], PORT), names=found)


def _ingresses(service: dict[str, Any]) -> tuple[str, ...]:
    ingresses = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return tuple(
        str(each.get("ip") or each.get("hostname")) for each in ingresses if each.get("ip") or each.get("hostname")
    )


def _node_port(session: Session, settings: Settings) -> Reached:
    service = session.client.get(_path(settings)) or {}
    port = next((each.get("nodePort") for each in (service.get("spec") or {}).get("ports") or []), None)
    if not port:
        raise OperatorError(f"the service {settings.name} has no node port", remedy="run the same command again")
    if settings.advertise_address:
        return Reached(url=_url(settings.advertise_address, port), names=(settings.advertise_address,))
    nodes = node_addresses(session.client.items(path_of("v1", "Node")))
    if not nodes:
        raise OperatorError(
            "no node of the host cluster has an address", remedy="give one: --api-server-advertise-address=ADDRESS"
        )
    return Reached(url=_url(nodes[0], port), names=nodes)


def node_addresses(nodes: list[dict[str, Any]]) -> tuple[str, ...]:
    """All of them, those that are reached from outside first."""
    listed = [each for node in nodes for each in (node.get("status") or {}).get("addresses") or []]
    return tuple(
        dict.fromkeys(
            str(each["address"]) for kind in ("ExternalIP", "InternalIP") for each in listed if each.get("type") == kind
        )
    )


def _path(settings: Settings) -> str:
    return path_of("v1", "Service", namespace=settings.namespace, name=settings.name)


def _url(host: str, port: int) -> str:
    try:
        shown = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host  # noqa: PLR2004 - IPv6
    except ValueError:
        shown = host
    return f"https://{shown}:{port}"
