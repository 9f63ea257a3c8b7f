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


_LONGEST_WORD = 64
"""Characters: a longer word is no mistyped one, and to compare it would take its time."""

_CHARACTERS_TO_A_MISTAKE = 5
_MOST_MISTAKES = 3
_LEAST_PREFIX = 3


def nearest(wrong: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; ``""`` when none is near, or several are.

    Near is what has a mistake or two for its length (``secure-prot``), or leaves out words or their ends
    (``token-file``, ``oidc-issuer``). What only shares some of its words with another option is not near:
    ``log-format`` is no ``audit-log-format``.
    """
    if len(wrong) > _LONGEST_WORD:
        return ""
    words, typed = list(known), wrong.lower()
    most = min(max(1, len(typed) // _CHARACTERS_TO_A_MISTAKE), _MOST_MISTAKES)
    distances = {word: _mistakes(typed, word.lower()) for word in words if abs(len(word) - len(typed)) <= most}
    best = min(distances.values(), default=most + 1)
    if best <= most and best < len(typed):
        return next(word for word, distance in distances.items() if distance == best)
    shortened = [word for word in words if _shortens(typed.split("-"), word.lower().split("-"))]
    return shortened[0] if len(shortened) == 1 else ""


def _mistakes(one: str, other: str) -> int:
    """Characters left out, added, exchanged or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, theirs in enumerate(other, 1):
            distance = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (mine != theirs))
            if i > 1 and j > 1 and mine == other[j - 2] and theirs == one[i - 2]:
                distance = min(distance, older[j - 2] + 1)
            row.append(distance)
    return row[-1]


def _shortens(typed: Sequence[str], words: Sequence[str]) -> bool:
    """Whether each typed word begins one of the words, in their order and the first the first."""
    if len(typed[0]) < _LEAST_PREFIX or not words[0].startswith(typed[0]):
        return False
    rest = iter(words)
    return all(part and any(word.startswith(part) for word in rest) for part in typed)
