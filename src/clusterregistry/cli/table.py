"""Tables for people, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table. Columns are three spaces apart, and as wide as their widest cell."""
    whole = [headings, *rows]
    widths = [max(len(row[column]) for row in whole) for column in range(len(headings))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in whole]
