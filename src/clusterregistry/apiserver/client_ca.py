"""Which client certificates and front proxies authentication accepts: from files, and from the host cluster."""

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
    """The authorities of client certificates. They are empty until ``update_authorities`` fills them."""

    clients: Authorities = field(default_factory=Authorities)
    front_proxies: Authorities = field(default_factory=Authorities)
    front_proxy: FrontProxy | None = None
    """Authenticates requests through front proxies; None: no front proxy is trusted."""

    def proxy_headers(self) -> ProxyHeaders:
        """The headers of front proxies, which no later filter may see."""
        return self.front_proxy.headers if self.front_proxy else usual_headers()


def client_authorities(options: CompletedOptions) -> ClientAuthorities:
    """The authorities that the options name, still without certificates."""
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
    def lower(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.lower() for name in names)

    return ProxyHeaders(
        user=lower(options.requestheader_username_headers),
        uid=lower(options.requestheader_uid_headers),
        group=lower(options.requestheader_group_headers),
        extra=lower(options.requestheader_extra_headers_prefix),
    )


def update_authorities(trust: ClientAuthorities, loaded: Loaded) -> None:
    """Has authentication accept the certificates that TLS verifies with from now on."""
    trust.clients.replace(loaded.client_cas)
    trust.front_proxies.replace(loaded.proxy_cas)
    any_name_is_a_proxy = trust.front_proxy is not None and not trust.front_proxy.are_named
    if any_name_is_a_proxy and certificates_in(loaded.client_cas) & certificates_in(loaded.proxy_cas):
        _log.warning(
            "an authority of users is among those of front proxies: every client with a certificate of it can pose as "
            "any user. Give --requestheader-allowed-names, or front proxies an authority of their own"
        )


class AuthConfigSync:
    """Applies the host cluster's configuration of authentication, as far as the options leave it to the host."""

    def __init__(self, host: HostCluster, *, trust: ClientAuthorities, tls: LiveTls) -> None:
        self._host, self._trust, self._tls = host, trust, tls

    async def apply(self, config: AuthenticationConfig) -> None:
        """Raises ValueError for authorities that cannot be used; then no part of the configuration is applied."""
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
