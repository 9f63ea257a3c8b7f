"""Options about limits: the group, and its mistakes."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import INTEGER


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Limits."""

    max_requests_inflight: int = option(
        400,
        kind=INTEGER,
        help="How many requests that only read are worked on at once, watches aside. Others wait, each user in turn, "
        "and get a 429 when that takes too long. 0 is no limit.",
        example="--max-requests-inflight=800",
    )
    max_mutating_requests_inflight: int = option(
        200,
        kind=INTEGER,
        help="The same for requests that write. 0 is no limit.",
        example="--max-mutating-requests-inflight=400",
    )
    max_connections: int = option(
        10_000,
        kind=INTEGER,
        help="How many connections may be open at once, each with a file descriptor and about 50 KiB of memory. A "
        "further connection is closed at once. One address cannot take the last tenth.",
        example="--max-connections=2000",
    )


def problems(options: LimitOptions) -> list[Problem]:
    """Returns every mistake in the group."""
    named = {
        "--max-requests-inflight": options.max_requests_inflight,
        "--max-mutating-requests-inflight": options.max_mutating_requests_inflight,
    }
    found = [Problem(flag, "must not be negative") for flag, value in named.items() if value < 0]
    if options.max_connections < 1:
        found.append(Problem("--max-connections", "must be at least 1"))
    return found
