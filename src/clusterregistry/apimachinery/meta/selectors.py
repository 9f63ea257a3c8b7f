"""The error and the limits of label selectors and field selectors."""

from __future__ import annotations

MAX_REQUIREMENTS = 1000
"""Requirements of one selector. Each is evaluated for every object of a list, and for every event of a watch."""

MAX_LENGTH = 64 * 1024
"""Characters of a selector: a URL is shorter anyway, but the body of a review is not."""


class SelectorError(ValueError):
    """A selector does not parse. The message is that of kube-apiserver's 400."""


def check_length(text: str) -> None:
    """Raises SelectorError for a text beyond MAX_LENGTH."""
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"the selector has {len(text)} characters, the limit is {MAX_LENGTH}")


def check_number(requirements: int) -> None:
    """Raises SelectorError for more than MAX_REQUIREMENTS."""
    if requirements > MAX_REQUIREMENTS:
        raise SelectorError(f"the selector has more than {MAX_REQUIREMENTS} different requirements")
