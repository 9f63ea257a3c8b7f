"""Reads Markdown as far as the tests need it: code blocks, links, headings and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_NOT_OURS = {"build", "dist", "node_modules"}
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: ([^>]+) -->\s*\Z")
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced code block. ``info`` is what stands behind the opening fence, ``line`` where that is.

    ``not_run`` is the reason why nobody can follow it in a test, from the comment right before it.
    """

    info: str
    body: str
    line: int
    not_run: str = ""


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    return sorted(
        path
        for path in ROOT.rglob("*.md")
        if not any(part.startswith(".") or part in _NOT_OURS for part in path.relative_to(ROOT).parts)
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    """The text of a document by its path in the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    return [
        Block(
            info=found["info"].strip(),
            body=found["body"],
            line=text.count("\n", 0, found.start()) + 1,
            not_run=_reason(text[: found.start()]),
        )
        for found in _FENCE.finditer(text)
    ]


def _reason(before: str) -> str:
    found = _NOT_RUN.search(before)
    return " ".join(found[1].split()) if found else ""


def prose(text: str) -> str:
    """The text without its code blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    return _LINK.findall(_INLINE_CODE.sub("", prose(text)))


def anchors(text: str) -> set[str]:
    """What a link may name behind ``#``: the headings, as GitHub spells them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(prose(text))
    }


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"there is no heading {heading!r}"
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table_rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row, without the headings and the lines below them."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        follows_heading = number + 1 < len(lines) and _is_rule(lines[number + 1])
        if line.startswith("|") and not _is_rule(line) and not follows_heading:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def code_in(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def _is_rule(line: str) -> bool:
    return bool(re.fullmatch(r"\|[\s:|-]+\|", line))
