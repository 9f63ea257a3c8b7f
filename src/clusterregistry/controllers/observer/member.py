"""A bounded client of one cluster: verified TLS, no redirects, limits for bytes, depth and time, one connection.

A member has a transport of its own. Connections, and with them client certificates, are never shared between clusters,
not even between two with the same address.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clusterregistry.client import errors
from clusterregistry.client.credentials import Credential, TLSContexts
from clusterregistry.client.resolver import Resolver
from clusterregistry.client.rest import Object, decode_object, raise_for_status
from clusterregistry.client.rest_config import Pem, RestConfig
from clusterregistry.client.transport import Request, Response, Transport, TransportParts
from clusterregistry.controllers.observer.endpoint import Endpoint
from clusterregistry.controllers.observer.failure import CutError, ProbeError, RoundError, bounded, probe_error
from clusterregistry.controllers.observer.observation import Failure, Reason, ServingCertificate
from clusterregistry.controllers.observer.settings import ObserverSettings

_JSON = (("accept", "application/json"),)
_TEXT = (("accept", "text/plain, */*;q=0.1"),)
_IDLE_INTERVALS = 2.5
"""For which a connection is kept, in intervals: a skipped round keeps it, an open breaker does not."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What all members of an observer share: TLS contexts without client certificates, and names."""

    tls_contexts: TLSContexts = field(default_factory=TLSContexts)
    resolver: Resolver = field(default_factory=Resolver)


class _RoundCredential:
    """The credential of the round that runs."""

    def __init__(self) -> None:
        self.current = Credential()

    async def get(self) -> Credential:
        return self.current

    def reject(self, _: Credential) -> bool:
        return False


class Member:
    """Requests to one cluster at one endpoint, with the credentials of this cluster alone."""

    def __init__(self, endpoint: Endpoint, *, settings: ObserverSettings, shared: SharedParts) -> None:
        """Raises ConfigError for authorities that cannot be used."""
        self.endpoint = endpoint
        self.serving: ServingCertificate | None = None
        self.connections = 0
        """How many connections there have been."""
        self._credential = _RoundCredential()
        parts = TransportParts(
            credentials=self._credential,
            tls_contexts=shared.tls_contexts,
            resolver=shared.resolver,
            inspect=self._inspect,
        )
        config = RestConfig(
            server=endpoint.url,
            user_agent=settings.user_agent,
            certificate_authority=Pem(data=endpoint.authorities),
            tls_server_name=endpoint.tls_server_name,
            connect_timeout=settings.deadline,
            keepalive=_IDLE_INTERVALS * settings.interval,
        )
        self._transport = Transport(config, parts)

    async def use(self, credential: Credential) -> None:
        """Sets the credential of the next requests. Another client certificate ends the connection."""
        before = self._credential.current
        if (before.certificate, before.key) != (credential.certificate, credential.key):
            await self.disconnect()
        self._credential.current = credential

    async def exchange(self, request: Request) -> Response:
        """The response, once more if a kept connection had ended meanwhile. Raises ProbeError."""
        before = self.connections
        try:
            return await self._once(request)
        except CutError:
            if self.connections != before:
                raise
        return await self._once(request)

    async def _once(self, request: Request) -> Response:
        try:
            return await self._transport.exchange(request)
        except errors.ClientError as error:
            raise probe_error(error, credential=self._credential.current) from error

    async def disconnect(self) -> None:
        """Ends the connection at once; the next request opens another."""
        await self._transport.close()

    def _inspect(self, session: ssl.SSLObject) -> None:
        self.connections += 1
        self.serving = serving_certificate(session)


class RoundClient:
    """What probes read with: the requests of one round, with one deadline (by the loop's clock)."""

    def __init__(self, member: Member, credential: Credential, *, deadline: float) -> None:
        self._member, self._credential, self._deadline = member, credential, deadline

    async def get(self, target: str, *, limit: int) -> Response:
        """The response of a GET, whatever its status, apart from 401 and redirects. Raises ProbeError."""
        return await self._get(target, limit=limit, text=True)

    async def get_object(self, target: str, *, limit: int) -> Object:
        """The JSON object of a GET, if its status is a success. Raises ProbeError."""
        response = await self.get_success(target, limit=limit)
        return self.interpret(lambda: decode_object(response))

    async def get_success(self, target: str, *, limit: int) -> Response:
        """The response of a GET for JSON, if its status is a success. Raises ProbeError."""
        response = await self._get(target, limit=limit, text=False)
        self.interpret(lambda: raise_for_status(response))
        return response

    async def _get(self, target: str, *, limit: int, text: bool) -> Response:
        timeout = self._deadline - asyncio.get_running_loop().time()
        if timeout <= 0:
            raise RoundError(Failure(reason=Reason.TIMED_OUT, message="there is no time left for this request"))
        request = Request(method="GET", target=target, fields=_TEXT if text else _JSON, timeout=timeout, limit=limit)
        response = await self._member.exchange(request)
        if response.status in _ENDING:
            self.interpret(lambda: raise_for_status(response))
        return response

    def interpret(self, step: Callable[[], T]) -> T:
        """The result of a step. Raises ProbeError for errors of the client."""
        try:
            return step()
        except errors.ClientError as error:
            raise probe_error(error, credential=self._credential) from error

    def refuse(self, message: str) -> ProbeError:
        """The error of a response that no Kubernetes API sends."""
        return ProbeError(Failure(reason=Reason.BAD_RESPONSE, message=bounded(message, credential=self._credential)))


_ENDING = frozenset({401, *range(300, 400)})


def serving_certificate(session: ssl.SSLObject) -> ServingCertificate | None:
    """The end of the server's certificate, and the authority that verified it: the end of the verified chain."""
    from cryptography import x509  # noqa: PLC0415 - a slow import, for programs that only look at endpoints
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    chain = _verified_chain(session)
    if not chain:
        return None
    try:
        leaf, authority = x509.load_der_x509_certificate(chain[0]), x509.load_der_x509_certificate(chain[-1])
        key = authority.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return ServingCertificate(
            not_after=leaf.not_valid_after_utc.timestamp(), authority=hashlib.sha256(key).hexdigest()
        )
    except Exception:  # noqa: BLE001 - what OpenSSL accepts may be refused by the other parser, in many ways
        return None


def _verified_chain(session: ssl.SSLObject) -> list[bytes]:
    """The certificates from the server's to the authority's, in DER. Public since Python 3.13."""
    public = getattr(session, "get_verified_chain", None)
    if public is not None:
        return list(public())
    inner: Any = getattr(session, "_sslobj", None)
    get_chain: Callable[[], list[Any]] | None = getattr(inner, "get_verified_chain", None)
    return [_der(certificate) for certificate in get_chain() or []] if get_chain is not None else []


def _der(certificate: Any) -> bytes:
    encoded = certificate.public_bytes(_ENCODING_DER)
    return encoded if isinstance(encoded, bytes) else ssl.PEM_cert_to_DER_cert(encoded)


_ENCODING_DER = 2
"""``_ssl.ENCODING_DER``."""
