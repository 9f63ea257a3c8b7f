"""What is wrong with the options: collected, never raised one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong option: where it was given, what is wrong, and what to do about it where we know."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class OptionsError(Exception):
    """Options that cannot be used; ``problems`` names all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def nearest(wrong: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; ``""`` when none is near."""
    import difflib  # noqa: PLC0415 - only when somebody mistyped

    found = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.75)
    return found[0] if found else ""
