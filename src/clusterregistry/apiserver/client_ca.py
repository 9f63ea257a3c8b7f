"""Whose certificates count, told to those who authenticate: from files, and from the host of aggregated mode."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.authn.certificates import Authorities, certificates_in
from clusterregistry.apiserver.authn.request_header import FrontProxy, ProxyHeaders
from clusterregistry.apiserver.filters.authentication import usual_headers
from clusterregistry.apiserver.hostcluster import authentication_config
from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.options.front_proxy import FrontProxyOptions
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.pki.live_tls import FurtherAuthorities, LiveTls, Loaded

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuthorities:
    """Whose certificates count for what. Empty until somebody has read the files."""

    clients: Authorities = field(default_factory=Authorities)
    front_proxies: Authorities = field(default_factory=Authorities)
    front_proxy: FrontProxy | None = None
    """Who takes the word of front proxies; None: nobody does."""

    def proxy_headers(self) -> ProxyHeaders:
        """The headers of front proxies: nobody further inwards must see them."""
        return self.front_proxy.headers if self.front_proxy else usual_headers()


def client_authorities(options: CompletedOptions) -> ClientAuthorities:
    """As the options say. Nobody is trusted before ``tell`` has been told of authorities."""
    authorities = Authorities()
    if not options.proxy_ca_files and not (options.host and options.host.reads_front_proxies):
        return ClientAuthorities(front_proxies=authorities)
    front_proxy = FrontProxy(
        authorities,
        headers=_proxy_headers(options.front_proxy),
        names=options.front_proxy.requestheader_allowed_names,
    )
    return ClientAuthorities(front_proxies=authorities, front_proxy=front_proxy)


def _proxy_headers(options: FrontProxyOptions) -> ProxyHeaders:
    return ProxyHeaders(
        user=_lower(options.requestheader_username_headers),
        uid=_lower(options.requestheader_uid_headers),
        group=_lower(options.requestheader_group_headers),
        extra=_lower(options.requestheader_extra_headers_prefix),
    )


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def update_authorities(trust: ClientAuthorities, loaded: Loaded) -> None:
    """What TLS verifies with from now on is what authentication believes."""
    trust.clients.replace(loaded.client_cas)
    trust.front_proxies.replace(loaded.proxy_cas)
    everyone_is_a_proxy = trust.front_proxy is not None and not trust.front_proxy.are_named
    if everyone_is_a_proxy and certificates_in(loaded.client_cas) & certificates_in(loaded.proxy_cas):
        _log.warning(
            "an authority of users is among those of front proxies: everybody with a certificate of it can pose as "
            "anybody. Give --requestheader-allowed-names, or front proxies an authority of their own"
        )


class AuthConfigSync:
    """Makes count what the host cluster says, as far as the options leave it to the host cluster."""

    def __init__(self, host: HostCluster, *, trust: ClientAuthorities, tls: LiveTls) -> None:
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
        update_authorities(self._trust, self._tls.loaded)
