"""What label selectors and field selectors share: how a bad one is refused, and how much of one is read."""

from __future__ import annotations

MAX_REQUIREMENTS = 1000
"""Different requirements of one selector. Each is asked of every object of a list, and of every event of a watch."""

MAX_LENGTH = 64 * 1024
"""Characters of a selector: no URL has room for more, but the question of a review has."""


class SelectorError(ValueError):
    """A selector that does not parse. ``str()`` of it is what kube-apiserver answers with its 400."""


def check_length(text: str) -> None:
    """Raises SelectorError for a text that is not read at all."""
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"the selector has {len(text)} characters, the limit is {MAX_LENGTH}")


def check_number(requirements: int) -> None:
    """Raises SelectorError for more requirements than are asked of an object."""
    if requirements > MAX_REQUIREMENTS:
        raise SelectorError(f"the selector has more than {MAX_REQUIREMENTS} different requirements")
