"""Problems with options, collected so that all are reported at once, and the hints for unknown names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the place of the option, the message, and a hint where there is one."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class OptionsError(Exception):
    """The options cannot be used; ``problems`` lists every mistake."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Words that users of other programs type, and flags that do not work yet: each is refused with a hint."""

    synonyms: Mapping[str, str] = field(default_factory=dict)
    """By the word of another program: the flag of ours."""
    advice: Mapping[str, str] = field(default_factory=dict)
    """By the word of another program: what to do, where no flag of ours does the same."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """By the flag that is planned and refused today: a hint, or an empty text."""

    def nearest_flag(self, typed: str, known: Iterable[str]) -> str:
        """Returns the known flag that an unknown one probably means; ``""`` when none or several are near."""
        word = _normalized(typed)
        if word in self.advice:
            return ""
        flags = list(known)
        candidate = self.synonyms.get(word, word)
        return candidate if candidate in flags else nearest(word, flags)

    def hint(self, typed: str, known: Iterable[str], *, shown_as: Callable[[str], str] = "--{}".format) -> str:
        """Returns a hint for an unknown flag; ``""`` when there is none."""
        flag = self.nearest_flag(typed, known)
        return f"did you mean {shown_as(flag)}?" if flag else self.advice.get(_normalized(typed), "")


def by_word(table: Mapping[str, str]) -> dict[str, str]:
    """Turns ``{meaning: "word word"}`` into ``{word: meaning}``."""
    return {word: meaning for meaning, words in table.items() for word in words.split()}


def _normalized(typed: str) -> str:
    """With dashes, as kube-apiserver reads underscores, and in lower case unless it is a single letter."""
    return typed.replace("_", "-").lower() if len(typed) > 1 else typed


_LONGEST_WORD = 64
"""Characters: a longer word is not a mistyped flag, and the comparison takes quadratic time."""

_CHARACTERS_TO_A_MISTAKE = 5
_MOST_MISTAKES = 3
_LEAST_PREFIX = 3


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Returns the known word that was probably meant; ``""`` when none is near, or several are.

    A word is near with one or two mistakes for its length (``secure-prot``), or when it leaves out words or their
    ends (``token-file``, ``oidc-issuer``). A word that only shares some of its parts is not near: ``log-format`` is
    not ``audit-log-format``.
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
