"""Where a load's requests come from."""

import itertools
from collections.abc import Callable, Iterator

from benchmarks.driver import Sending


def forever(make: Callable[[int], Sending]) -> Iterator[Sending]:
    """Requests without an end, each made from its number when it is sent."""
    return map(make, itertools.count())
