"""Finds words in the code and the documentation that the glossary replaces by usual ones; part of ``make lint``.

The words are in docs/architecture/glossary.md, in the table of words that are not used. Code spans are left out,
since a name may be anything, and so is the changelog, which quotes earlier releases.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture" / "glossary.md"
SECTION = "## Words that are not used"
_CHECKED = ("src", "docs", "deploy", "README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "tools", "benchmarks")
_TEXT_TYPES = frozenset({".md", ".yaml", ".service", ".toml", ""})
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_ROW = re.compile(r"^\| (?P<words>[^|]+) \| (?P<instead>[^|]+) \|$", re.MULTILINE)


def replaced_words(page: str) -> dict[str, str]:
    """What to say instead, by the word in lower case."""
    rows = _ROW.findall(page.partition(SECTION)[2])[2:]
    return {word.strip(): instead for words, instead in rows for word in words.split(",")}


def finder(words: dict[str, str]) -> re.Pattern[str]:
    spaced = (re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"\b(?:{'|'.join(spaced)})\b", re.IGNORECASE)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The parts of a file that people read, each with the number of its first line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.STRING, tokenize.COMMENT}:
            yield token.start[0], token.string


def find_words(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines and the words that are found there."""
    for line, text in prose(path):
        plain = _CODE_SPAN.sub(lambda span: " " * len(span[0]), text)
        for found in pattern.finditer(plain):
            yield line + plain.count("\n", 0, found.start()), " ".join(found[0].split())


def checked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "--", *_CHECKED], cwd=ROOT, check=True, capture_output=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.exists() and path != PAGE and path.suffix in _TEXT_TYPES | {".py"}]


def main() -> int:
    words = replaced_words(PAGE.read_text(encoding="utf-8"))
    pattern = finder(words)
    count = 0
    for path in checked_files():
        for line, word in find_words(path, pattern):
            count += 1
            print(f"{path.relative_to(ROOT)}:{line}: not “{word}”, but: {words[word.lower()]}")
    if count:
        print(f"{count} words that docs/architecture/glossary.md replaces", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
