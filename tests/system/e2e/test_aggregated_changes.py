"""The host cluster changes, goes away and comes back while a registry is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client.errors import DisconnectedError, TLSError
from tests.remote_servers import Authority
from tests.system.e2e.host_clusters import ADMIN, CONFIGMAP, JANE, NOBODY, PROXY_NAME, HostCluster
from tests.system.e2e.registries import CLUSTERS, Registry
from tools.exchanges import decoded
from tools.processes import wait_for

pytestmark = pytest.mark.e2e

FOR_LONG = (
    "--authentication-token-webhook-cache-ttl=1h",
    "--authorization-webhook-cache-authorized-ttl=1h",
    "--authorization-webhook-cache-unauthorized-ttl=1h",
)


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Registry]:
    """A registry and a host cluster of a test's own. What the host answers holds for the whole test."""
    with HostCluster(tmp_path / "host") as host, Registry(host, tmp_path / "registry", *FOR_LONG) as registry:
        yield registry


def as_a_proxy(registry: Registry, authority: Authority) -> Any:
    """The body of the answer to a front proxy with a certificate of this authority; None without a connection."""
    try:
        client = authority.client(PROXY_NAME)
        return decoded(registry.call(CLUSTERS, client=client, x_remote_user="root", x_remote_group="system:masters"))
    except (TLSError, DisconnectedError):
        return None


@pytest.mark.skew("exchange of the front-proxy authority", of="aggregated")
def test_the_authority_of_front_proxies_is_exchanged_without_a_restart(changing: Registry, tmp_path: Path) -> None:
    host, former, later = changing.host, changing.host.proxies, Authority(tmp_path, "later")
    assert as_a_proxy(changing, later) is None
    host.use_proxy_authority(later)
    host.restart()  # which makes it add the new authority to the configmap
    wait_for(changing.is_available, changing.process.logged)
    wait_for(lambda: as_a_proxy(changing, later) == decoded(host.call("GET", CLUSTERS)))
    host.call("DELETE", CONFIGMAP)  # which makes it write a configmap without the former authority
    wait_for(lambda: as_a_proxy(changing, former) is None, changing.process.logged)
    wait_for(changing.is_available, changing.process.logged)


@pytest.mark.skew("an absence of the host cluster", of="aggregated")
def test_a_registry_outlives_its_host_cluster(changing: Registry) -> None:
    host = changing.host
    assert changing.call(CLUSTERS, token=ADMIN).status == 200
    assert changing.call(CLUSTERS, token=JANE).status == 403
    host.go_away()

    # What was decided before holds.
    assert changing.call(CLUSTERS, token=ADMIN).status == 200
    assert changing.call(CLUSTERS, token=JANE).status == 403
    # What was not cannot be decided now, which is no fault of the user.
    unknown = changing.call(CLUSTERS, token=NOBODY)
    assert (unknown.status, decoded(unknown)["reason"]) == (503, "ServiceUnavailable")
    assert "the host cluster cannot be reached" in decoded(unknown)["message"]
    undecided = changing.call(f"{CLUSTERS}/a", token=JANE)
    assert undecided.status == 503
    assert 'whether User "jane" may get resource "clusters"' in decoded(undecided)["message"]
    wait_for(lambda: changing.call("/readyz").status == 500, changing.process.logged)
    assert "[-]access-review failed" in decoded(changing.call("/readyz?verbose"))
    assert changing.call("/livez").status == 200

    host.start()
    wait_for(changing.is_ready, changing.process.logged)
    wait_for(changing.is_available, changing.process.logged)
    assert changing.call(CLUSTERS, token=NOBODY).status == 403
    assert changing.call(f"{CLUSTERS}/a", token=JANE).status == 403


@pytest.mark.skew("a restart of the registry", of="aggregated")
def test_an_api_service_is_available_again_when_the_registry_is(changing: Registry) -> None:
    changing.process.end()
    wait_for(lambda: changing.host.call("GET", CLUSTERS).status == 503)
    changing.process.start()
    changing.process.wait_until(changing.is_ready)
    wait_for(changing.is_available, changing.process.logged)
