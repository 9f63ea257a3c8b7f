"""Services of one namespace: endpoints of ready pods, node ports, and load balancers with an address of their own."""

from __future__ import annotations

import random
import socket
from typing import Any

from tests.crinit import kubelet_endpoint
from tests.crinit.containers import Pod
from tests.crinit.namespaces import Namespace
from tests.crinit.networks import Address, Egress, Forward, local, may_balance


class Routes:
    """``pods`` is a view: those that run at any moment, by the name of their Deployment."""

    def __init__(self, namespace: Namespace, pods: dict[str, Pod]) -> None:
        self._namespace, self._pods = namespace, pods
        self._services: list[dict[str, Any]] = []
        self._forwards: dict[Address, Forward] = {}
        self._published: dict[str, list[str]] = {}
        self._addresses: dict[str, str] = {}
        self._egress = Egress(namespace.host.directory, self._find)

    def close(self) -> None:
        for forward in (self._egress, *self._forwards.values()):
            forward.close()

    def look(self) -> None:
        self._services = [each for each in self._namespace.items("v1", "services") if each["spec"].get("selector")]
        for service in self._services:
            self._publish(service)
            if service["spec"]["type"] == "LoadBalancer" and not service["status"]["loadBalancer"]:
                self._balance(service)
            for port in service["spec"]["ports"]:
                if "nodePort" in port:
                    self._forward(("127.0.0.1", port["nodePort"]), service, port)

    def _forward(self, address: Address, service: dict[str, Any], port: dict[str, Any]) -> None:
        if address not in self._forwards:
            listening = socket.create_server(address)
            self._forwards[address] = Forward(listening, lambda: self._target(service, port))

    def hosts(self) -> str:
        """The names of the services for /etc/hosts, each with an address that leads to its pods.

        Empty where this user may not listen on the ports of services.
        """
        if not may_balance():
            return ""
        services = [each for each in self._namespace.items("v1", "services") if each["spec"].get("selector")]
        return "\n".join(
            f"{self._address(each)} {each['metadata']['name']}.{self._namespace.name}.svc" for each in services
        )

    def _address(self, service: dict[str, Any]) -> str:
        name = service["metadata"]["name"]
        if name not in self._addresses:
            self._addresses[name] = self._listening(service)
        return self._addresses[name]

    def _listening(self, service: dict[str, Any]) -> str:
        """An address of its own with the ports of the service."""
        number = random.randrange(1 << 8, 253 << 8)
        address = f"127.0.{number >> 8}.{number & 255}"
        for port in service["spec"]["ports"]:
            self._forward((address, port["port"]), service, port)
        return address

    def _balance(self, service: dict[str, Any]) -> None:
        balanced = {"loadBalancer": {"ingress": [{"ip": self._listening(service)}]}}
        self._namespace.set_status("v1", "services", service["metadata"]["name"], balanced)

    def _target(self, service: dict[str, Any], port: dict[str, Any]) -> Address | None:
        for pod in list(self._pods.values()):
            if service["spec"]["selector"].items() <= pod.template["metadata"]["labels"].items():
                return local(pod.address), pod.ports()[port["targetPort"]]
        return None

    def _find(self, host: str, number: int) -> Address | None:
        """Where a connection of kube-apiserver ends."""
        if host == kubelet_endpoint.ADDRESS:
            return local(host), number
        for service in self._services:
            for port in service["spec"]["ports"]:
                if (service["spec"].get("clusterIP"), port["port"]) == (host, number):
                    return self._target(service, port)
        return None

    def _publish(self, service: dict[str, Any]) -> None:
        """Writes which pods are behind a service; older kube-apiservers read the first kind, newer ones the second."""
        name, ports = service["metadata"]["name"], service["spec"]["ports"]
        selector = service["spec"]["selector"].items()
        behind = [pod for pod in self._pods.values() if selector <= pod.template["metadata"]["labels"].items()]
        addresses = [pod.address for pod in behind if pod.is_reported_ready()]
        if self._published.get(name, []) == addresses:
            return
        numbers = behind[0].ports() if behind else {}
        open_ports = [
            {"name": each["name"], "port": numbers[each["targetPort"]], "protocol": "TCP"} for each in ports if numbers
        ]
        subset = {"addresses": [{"ip": each} for each in addresses], "ports": open_ports}
        self._namespace.put("v1", "endpoints", {"metadata": {"name": name}, "subsets": [subset] if addresses else []})
        slices = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses],
            "ports": open_ports,
        }
        self._namespace.put("discovery.k8s.io/v1", "endpointslices", slices)
        self._published[name] = addresses
