"""Builds the clients in Go and installs kopf, unless they are in the cache already."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.system.clients import go_clients, operators
from tools.environment import EnvironmentProblem
from tools.programs import ProgramError


def main() -> int:
    """What cannot be had does not keep the others from being there."""
    wanted: dict[str, Callable[[], Path]] = {
        **{f"client-go {release}": partial(go_clients.build, release) for release in go_clients.RELEASES},
        "kopf": operators.install,
    }
    problems = 0
    for name, provide in wanted.items():
        try:
            print(f"{name}: {provide()}", flush=True)  # noqa: T201 - it is a command
        except (ProgramError, EnvironmentProblem, OSError) as problem:
            problems += 1
            print(f"{name}: {problem}", file=sys.stderr)  # noqa: T201
    return min(problems, 1)


if __name__ == "__main__":
    sys.exit(main())
