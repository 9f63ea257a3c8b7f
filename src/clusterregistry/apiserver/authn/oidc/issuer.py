"""An issuer's keys as they are now: found at start, fetched again when a token names one that is not known.

While the issuer does not answer, the keys that it had are good. Strangers with invented keys cannot make us call it
more than once in a few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusterregistry.apiserver.authn.oidc.claims import Refused, Token
from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.singleflight import SingleFlight
from clusterregistry.apiserver.webhooks.transport import Call, Caller

if TYPE_CHECKING:
    from jwt import PyJWK


log = logging.getLogger(__name__)

REFETCH_SECONDS = 5.0
"""The least time between two fetches that tokens cause."""

RETRY_SECONDS = 10.0
"""Between two tries to find the issuer at start, as in kube-apiserver."""

MAX_KEYS = 32
"""A token that names no key is tried with all of them, so there must not be many."""

RSA_BITS = range(2048, 8193)
"""Fewer are not safe, more take long to check."""

_FITTING = {("EC", "P-256"): ("ES256",), ("EC", "P-384"): ("ES384",), ("EC", "P-521"): ("ES512",)}
_FITTING_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


class Issuer:
    """Somebody whose tokens are believed. ``start`` it on the loop that uses it, ``close`` it at the end."""

    def __init__(
        self,
        settings: IssuerSettings,
        caller: Caller,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.keys = KeySet()
        self._settings, self._caller, self._clock, self._sleep = settings, caller, clock, sleep
        self._keys_url = ""
        self._fetched_at = float("-inf")
        self._questions: SingleFlight[str, None] = SingleFlight()
        self._finding: asyncio.Task[None] | None = None
        self._state = HealthState(
            f"the OpenID Connect issuer {settings.url}",
            consequence="only tokens signed with keys known before are good",
        )

    def start(self) -> None:
        """Begins to look for the issuer, and returns at once: a server starts also while its issuer is down."""
        self._finding = asyncio.get_running_loop().create_task(self._find())

    async def close(self) -> None:
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        await self._questions.close()

    async def _find(self) -> None:
        while not self.keys:
            await self._fetch()
            if not self.keys:
                await self._sleep(RETRY_SECONDS)

    async def refetch(self) -> None:
        """Fetches the keys again unless that was just done, or they are still being looked for."""
        due = bool(self.keys) and self._clock() - self._fetched_at >= REFETCH_SECONDS
        if due or self._questions.under_way:
            await self._questions.ask("keys", self._fetch)

    async def _fetch(self) -> None:
        self._fetched_at = self._clock()
        try:
            self._keys_url = self._keys_url or await self._discover()
            document = await self._caller.exchange(Call(url=self._keys_url))
            if not self.keys.is_of(document):
                self.keys = read_keys(document, self._settings.algorithms)
                log.info("the OpenID Connect issuer %s has %d keys", self._settings.url, len(self.keys))
        except (CallFailed, ValueError) as error:
            self._state.failed(error)
        else:
            self._state.worked()

    async def _discover(self) -> str:
        """Where the keys are. Raises CallFailed."""
        document = await self._caller.exchange(Call(url=self._settings.discovery_url))
        if document.get("issuer") != self._settings.url:
            raise CallFailed(f"it calls itself {document.get('issuer')!r}, --oidc-issuer-url must be exactly that")
        url = document.get("jwks_uri")
        if not isinstance(url, str) or not url.startswith("https://"):
            raise CallFailed("its jwks_uri is no https URL")
        return url


# Keys


@dataclass(frozen=True, slots=True)
class Key:
    """One of the issuer's keys for one algorithm."""

    key_id: str
    algorithm: str
    key: PyJWK


class KeySet:
    """The keys of an issuer. Never changes: other keys are another set."""

    def __init__(self, keys: Iterable[Key] = (), *, source: object = None) -> None:
        self._keys = tuple(keys)
        self._source = source

    def __len__(self) -> int:
        return len(self._keys)

    def is_of(self, document: Mapping[str, Any]) -> bool:
        """Whether it was read from an equal document."""
        return self._source == document

    def has_signed(self, token: Token) -> bool:
        """Whether one of the keys has signed the token. Raises Refused for a token that no key can have signed."""
        name = token.key_id
        fitting = (key for key in self._keys if key.algorithm == token.algorithm and name in ("", key.key_id))
        return any(_has_signed(key, token) for key in fitting)


def check_header(token: Token, algorithms: Collection[object]) -> None:
    """Raises Refused for a token that must not even be tried."""
    if token.algorithm not in algorithms:
        raise Refused("its algorithm is not one of --oidc-signing-algs")
    if "crit" in token.header or "b64" in token.header:
        raise Refused("its header asks for an extension that is not known here (crit, b64)")


def _has_signed(key: Key, token: Token) -> bool:
    import jwt  # noqa: PLC0415 - loaded with the keys

    try:
        jwt.PyJWS().decode(token.text, key.key, algorithms=[key.algorithm])
    except jwt.PyJWTError:
        return False
    return True


def read_keys(document: Mapping[str, Any], algorithms: Iterable[str]) -> KeySet:
    """The usable keys of a JSON web key set. Raises ValueError when it is none; what is unusable is left out."""
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise ValueError("it is no set of keys")  # noqa: TRY004 - one kind of error for a bad document
    if len(entries) > MAX_KEYS:
        raise ValueError(f"it has more than {MAX_KEYS} keys")
    allowed = tuple(algorithms)
    keys = [key for entry in entries if isinstance(entry, dict) for key in _keys_of(entry, allowed)]
    if not keys:
        raise ValueError(f"it has no key for {', '.join(allowed)}")
    return KeySet(keys, source=dict(document))


def _keys_of(entry: Mapping[str, Any], allowed: tuple[str, ...]) -> list[Key]:
    """The key once for each algorithm that it may be used with."""
    if entry.get("use", "sig") != "sig":
        return []
    name = entry.get("kid", "")
    fitting = [one for one in _fitting(entry) if one in allowed and entry.get("alg", one) == one]
    if not isinstance(name, str):
        return []
    loaded = ((algorithm, _loaded(entry, algorithm)) for algorithm in fitting)
    return [Key(name, algorithm, key) for algorithm, key in loaded if key is not None]


def _fitting(entry: Mapping[str, Any]) -> tuple[str, ...]:
    kind, curve = entry.get("kty"), entry.get("crv")
    if kind == "RSA":
        return _FITTING_RSA
    return _FITTING.get((kind, curve), ()) if isinstance(kind, str) and isinstance(curve, str) else ()


def _loaded(entry: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    import jwt  # noqa: PLC0415 - brings cryptography along: 60 ms that only servers with an issuer pay

    # A private key among the public ones is an issuer's mistake: only what is public is read.
    public = {name: value for name, value in entry.items() if name in {"kty", "crv", "x", "y", "n", "e"}}
    try:
        key = jwt.PyJWK(public, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        log.warning("a key of the issuer is left out: %s", type(error).__name__)
        return None
    if entry["kty"] == "RSA" and key.key.key_size not in RSA_BITS:
        log.warning("a key of the issuer is left out: an RSA key must have %d to %d bits", RSA_BITS[0], RSA_BITS[-1])
        return None
    return key
