"""The member that an agent runs beside: one endpoint and one credential, from its pod or from a kubeconfig.

The spec of the Cluster does not count: the address there is for others, if it has one at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.client import rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.access.expiry import expiry_of
from clusterregistry.controllers.observer.credentials import AccessError, MemberCredential
from clusterregistry.controllers.observer.endpoint import Endpoint, EndpointError
from clusterregistry.controllers.observer.observation import CredentialInfo, Failure, Reason


class OwnMember:
    """Implements ``controllers.observer.credentials.MemberAccess`` for one member, and gives its endpoint."""

    def __init__(self, config: RestConfig, *, source: str) -> None:
        """``source`` says where the access comes from, without any credential. Raises ConfigError."""
        if not config.is_tls or config.insecure_skip_tls_verify:
            raise ConfigError("the member must be verified: its kubeconfig needs an https server and an authority")
        if config.proxy_url:
            raise ConfigError("proxy-url: an agent runs beside its member, and uses no proxy")
        self._config, self._name = config, source
        self._authorities = rest_config.authorities_reader(config)
        self._credentials = rest_config.credential_source(config)
        # The token of a pod, and files, are renewed by others.
        files = (config.token_file, config.client_certificate.file, config.exec_plugin)
        self._renews = any(each is not None for each in files)

    def endpoint(self, _: Mapping[str, Any]) -> Endpoint:
        """The endpoint of the member, with its authorities as they are now. Raises EndpointError."""
        try:
            authorities = self._authorities()
        except ConfigError as error:
            raise EndpointError(str(error)) from None
        return Endpoint(url=self._config.server, authorities=authorities, tls_server_name=self._config.tls_server_name)

    async def credential(self, cluster: Mapping[str, Any]) -> MemberCredential:  # noqa: ARG002 - there is one cluster
        """Raises AccessError."""
        try:
            found = await self._credentials.get()
        except ConfigError as error:
            raise AccessError(Failure(reason=Reason.CREDENTIAL_MISSING, message=str(error))) from None
        info = CredentialInfo(source=self._name, expires_at=expiry_of(found), renews=self._renews)
        return MemberCredential(credential=found, info=info)

    def reject(self, cluster: Mapping[str, Any], credential: MemberCredential) -> None:  # noqa: ARG002 - as above
        self._credentials.reject(credential.credential)
