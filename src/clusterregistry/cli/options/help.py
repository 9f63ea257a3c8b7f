"""Renders options for people: --help for a terminal, and the entries of a reference page."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clusterregistry.cli.options.field import Option

_INDENT = " " * 6


def terminal_width() -> int:
    """Returns the width for help texts: that of the terminal, within limits."""
    return max(60, min(shutil.get_terminal_size().columns, 110))


def help_by_group(groups: Mapping[str, Sequence[Option]], width: int) -> str:
    """Renders all options, by the title of their group."""
    parts = [f"{title}:\n{help_text(options, width)}\n" for title, options in groups.items()]
    return "\n".join(parts)


def help_text(options: Iterable[Option], width: int) -> str:
    """Renders options with all of their help."""
    return "\n".join(line for each in options for line in _lines(each, each.details.help, width))


def short_help(options: Iterable[Option], width: int) -> str:
    """Renders options with the first sentence of their help."""
    return "\n".join(line for each in options for line in _lines(each, _first_sentence(each), width))


def _lines(option: Option, text: str, width: int) -> Iterator[str]:
    yield f"  {_signature(option)}"
    default = f" Default: {option.default_text}." if option.default_text else ""
    described = f"{text}{default}".replace("`", "")
    yield from textwrap.wrap(
        described, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )


def _first_sentence(option: Option) -> str:
    return re.split(r"(?<=\.) ", option.details.help, maxsplit=1)[0]


def _signature(option: Option) -> str:
    kind, short = option.details.kind, option.details.short
    flag = f"-{short}, --{option.flag}" if short else f"--{option.flag}"
    return f"{flag}={kind.metavar}" if kind.bare is None else f"{flag}[={kind.metavar}]"


def reference_entry(option: Option, *, heading: str = "###", remarks: Iterable[str] = ()) -> str:
    """Renders an option in Markdown; ``remarks`` are further items of its list."""
    details = option.details
    lines = [f"{heading} `--{option.flag}`", "", *textwrap.wrap(details.help, 118, break_on_hyphens=False), ""]
    lines.append(f"- Value: `{details.kind.metavar}`")
    if option.default_text:
        lines.append(f"- Default: {details.default_shown or f'`{option.default_text}`'}")
    lines += [f"- {remark}" for remark in remarks]
    if details.example:
        lines.append(f"- Example: `{details.example}`")
    return "\n".join((*lines, ""))
