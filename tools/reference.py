"""Writes docs/reference/flags.md from the options. ``--check`` only tells whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from clusterregistry.options import reference

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "flags.md"


def main(arguments: list[str]) -> int:
    wanted = reference.markdown()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} is out of date: run tools/reference.py", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(wanted, encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
