"""Whose certificates count, told to those who authenticate: from files, and from the host of aggregated mode."""

from __future__ import annotations

import asyncio
import logging

from clusterregistry.authn.certificates import certificates_in
from clusterregistry.hostcluster import authentication_config
from clusterregistry.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.options.host_cluster import HostCluster
from clusterregistry.pki.errors import CertificateError
from clusterregistry.pki.reloading import FurtherAuthorities, LiveTls, Loaded
from clusterregistry.serving.app import Trust

_log = logging.getLogger(__name__)


def tell(trust: Trust, loaded: Loaded) -> None:
    """What TLS verifies with from now on is what authentication believes."""
    trust.clients.replace(loaded.client_cas)
    trust.front_proxies.replace(loaded.proxy_cas)
    everyone_is_a_proxy = trust.front_proxy is not None and not trust.front_proxy.are_named
    if everyone_is_a_proxy and certificates_in(loaded.client_cas) & certificates_in(loaded.proxy_cas):
        _log.warning(
            "an authority of users is among those of front proxies: everybody with a certificate of it can pose as "
            "anybody. Give --requestheader-allowed-names, or front proxies an authority of their own"
        )


class HostsWord:
    """Makes count what the host cluster says, as far as the options leave it to the host cluster."""

    def __init__(self, host: HostCluster, *, trust: Trust, tls: LiveTls) -> None:
        self._host, self._trust, self._tls = host, trust, tls

    async def take(self, config: AuthenticationConfig) -> None:
        """Raises ValueError for authorities that cannot be used; nothing of the configuration counts then."""
        further = FurtherAuthorities(
            origin=authentication_config.SHOWN,
            clients=config.client_cas if self._host.reads_client_cas else "",
            proxies=config.proxy_cas if self._host.reads_front_proxies else "",
        )
        try:
            await asyncio.to_thread(self._tls.trust_also, further)
        except CertificateError as error:
            raise ValueError(str(error)) from None
        if self._trust.front_proxy is not None and self._host.reads_front_proxies:
            self._trust.front_proxy.replace(headers=config.headers, names=config.proxy_names)
        tell(self._trust, self._tls.loaded)
