"""Tables, for pages and for terminals."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 0) -> str:
    """For a page: the first column and the last ones, so many, to the left, figures to the right."""
    ruler = ["---", *("---:" for _ in head[1 : len(head) - words]), *("---" for _ in range(words))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ruler, *rows))


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """For a terminal: columns as wide as need be, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = list(zip(row, widths, strict=True))
        first = cells[0][0].ljust(cells[0][1])
        lines.append("  ".join([first, *(cell.rjust(width) for cell, width in cells[1:])]).rstrip())
    return "\n".join(lines)
