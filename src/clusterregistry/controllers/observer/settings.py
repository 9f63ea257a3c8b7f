"""The settings of an observer: how often it asks, how long it waits, and how much it reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverSettings:
    """Times are in seconds, sizes in bytes."""

    interval: float = 30.0
    """Between the starts of two rounds of a cluster: ``/readyz`` and ``/version``."""
    node_interval: float = 60.0
    """Between two lists of the nodes, the most expensive part for the cluster and for the observer."""
    identity_interval: float = 600.0
    """Between two looks at the kube-system namespace. Each new connection looks at once."""
    jitter: float = 0.1
    """The part of an interval that a round may start early, at random. Never late: a cluster that falls silent is
    noticed within an interval and the deadline."""
    deadline: float = 5.0
    """For all requests of a round."""
    credential_deadline: float = 12.0
    """For the credential of a round, which a program may have to fetch: more than the 10 s of such a program."""
    concurrency: int = 64
    """Rounds at once, of those that are not slow."""
    prompt: float = 1.0
    """After which a round counts as slow, and leaves its place to the next one."""
    slow_concurrency: int = 192
    """Slow rounds at once. They cost sockets and memory, hardly any CPU. Beyond that, prompt rounds wait, too."""
    start_pause: float = 0.005
    """Between the first rounds of clusters that appear at once: 5,000 handshakes take 25 s of waiting, not of CPU."""
    kept_connections: int = 2500
    """Connections that are kept between rounds, 80 KiB each: a handshake takes ten times the CPU of a request. Clusters
    beyond this number are connected for each round. With 5,000 clusters that is 195 MB less, for 13% of a core more."""
    breaker_failures: int = 3
    """Failed rounds, one after the other, that open the breaker."""
    breaker_pause: float = 60.0
    """For which the breaker stays open the first time; each further failure doubles it."""
    breaker_longest_pause: float = 300.0
    """For which it stays open at most. It is also the longest Retry-After that is obeyed."""
    max_text: int = 64 << 10
    """Of ``/readyz``, ``/version`` and single objects: kube-apiserver sends a tenth of it."""
    max_page: int = 4 << 20
    """Of a page of nodes: 40 KiB a node, of which the kubelet's list of images is the largest part."""
    page_size: int = 100
    """Nodes on a page."""
    max_nodes: int = 5000
    """Kubernetes supports no more. A cluster that lists more is not asked for the rest."""
    max_node_bytes: int = 128 << 20
    """Of all pages of nodes in one round."""
    user_agent: str = "clusterregistry-observer"
    addresses: tuple[str, ...] = ()
    """The addresses by which clusters see the observer, for ``clientCIDR``. Empty: those of its own routes, which is
    wrong behind NAT."""
