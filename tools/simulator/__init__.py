"""Simulated member clusters: thousands of Kubernetes APIs on loopback in one process, with faults that can be switched.

Nothing here is a Kubernetes. Each member has an address (127.1.x.y), an authority and a certificate of its own, accepts
a token and client certificates, and answers what observers and overviews ask: health, version, nodes, the kube-system
namespace, counts of pods, deployments, events and Helm releases. Everything it says is marked as simulated.

    python -m tools.simulator --members 200 --write-registry DIRECTORY
"""

from tools.simulator.faults import Fault
from tools.simulator.member import SimulatedMember
from tools.simulator.simulator import Simulator

__all__ = ["Fault", "SimulatedMember", "Simulator"]
