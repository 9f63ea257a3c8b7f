"""When a request is sent again, and after which pause.

A read may be repeated whenever it may help. A write is repeated only if the server certainly has not carried it out:
there was no connection, or the server refused the request before it processed it, with 429, or with 503 and a
Retry-After header, which kube-apiserver sends from its filters. Everything else is left to the caller, who can look at
the object first. A 401 is handled by ``rest``, which uses another credential once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from http import HTTPStatus

from clusterregistry.client import errors
from clusterregistry.client.errors import APIStatusError, ClientError, ConnectError

_PASSING = frozenset({
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT,
})  # fmt: skip
"""Failures of a read that may pass by themselves. A 500 is repeated only if the server names a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses that grow from ``first`` by ``factor`` up to ``longest``; up to ``jitter`` of each is added at random."""

    first: float = 0.5
    factor: float = 2.0
    longest: float = 30.0
    jitter: float = 0.2

    def pause(self, failures: int) -> float:
        """Seconds after so many failures, the first being 1."""
        exponent = min(failures - 1, 64)
        seconds = min(self.first * self.factor**exponent, self.longest)
        return seconds * (1 + self.jitter * random.random())  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often one call is attempted, and the pauses between. The call's timeout is for all of it."""

    attempts: int = 5
    backoff: Backoff = Backoff()
    longest_retry_after: float = 60.0
    """A server that names a longer time gets no further attempt: the caller decides."""

    def pause(self, error: ClientError, *, failures: int, repeatable: bool) -> float | None:
        """Seconds until the next attempt; None: the error is final."""
        if failures >= self.attempts or not may_repeat(error, repeatable=repeatable):
            return None
        named = error.retry_after if isinstance(error, APIStatusError) else None
        if named is None:
            return self.backoff.pause(failures)
        return named if named <= self.longest_retry_after else None


ONCE = RetryPolicy(attempts=1)
"""No second attempt."""


def may_repeat(error: ClientError, *, repeatable: bool) -> bool:
    """Whether the same request may be sent again. ``repeatable``: it changes nothing, however often it is sent."""
    if isinstance(error, ConnectError):
        return _may_pass(error) and (repeatable or not error.outcome_unknown)
    if isinstance(error, APIStatusError):
        return _may_repeat_status(error, repeatable=repeatable)
    return repeatable and isinstance(error, errors.DisconnectedError)


def _may_pass(error: ConnectError) -> bool:
    """A certificate that is refused, and a proxy that refuses, do so again."""
    return not isinstance(error, errors.TLSError | errors.ProxyError)


def _may_repeat_status(error: APIStatusError, *, repeatable: bool) -> bool:
    if repeatable:
        return error.code in _PASSING or error.retry_after is not None
    if error.code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    return error.code == HTTPStatus.SERVICE_UNAVAILABLE and error.has_retry_after_header


def parse_retry_after(value: str | None) -> float | None:
    """The seconds of a Retry-After header; None without one. Dates, which no API server sends, count as absent."""
    if value is None or not value.isascii() or not value.strip().isdigit():
        return None
    return float(min(int(value.strip()[:9]), 10**8))
