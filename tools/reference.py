"""Writes docs/reference/flags.md and crinit.md from the options. ``--check`` only tells whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from clusterregistry.apiserver.options import reference
from clusterregistry.crinit import reference as crinit_reference
from clusterregistry.registry.product import PRODUCT

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "flags.md"
CRINIT_PAGE = PAGE.with_name("crinit.md")


def main(arguments: list[str]) -> int:
    pages = {PAGE: reference.markdown(PRODUCT.options), CRINIT_PAGE: crinit_reference.markdown()}
    return max([_write(page, wanted, only_check="--check" in arguments) for page, wanted in pages.items()])


def _write(page: Path, wanted: str, *, only_check: bool) -> int:
    if page.exists() and page.read_text(encoding="utf-8") == wanted:
        return 0
    if only_check:
        print(f"{page.name} is out of date: run tools/reference.py", file=sys.stderr)
        return 1
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(wanted, encoding="utf-8")
    print(f"wrote {page.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
