"""Reads options from a YAML file: one mapping, each key a flag's name without the dashes.

Values are taken as the text that stands in the file (``08`` stays ``08``), so that a value means the same here and
on the command line. Lists are joined with commas. An empty value counts as not given, an empty list as an empty one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clusterregistry.apiserver.options.flags import Given, Reading
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.cli.options.problems import Problem

if TYPE_CHECKING:
    from yaml import Node

MAX_BYTES = 1 << 20


def read(path: Path, known: OptionSet) -> Reading:
    """Takes a file apart. Never raises: what is wrong is in ``problems``, with the line."""
    import yaml  # noqa: PLC0415 - only those who have a file pay for the parser

    reading = Reading(known)
    try:
        text = _text(path)
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        from clusterregistry.cli.options import yaml_errors  # noqa: PLC0415 - only for mistakes

        reading.problems.append(Problem(str(path), *yaml_errors.explain(error, text)))
    except RecursionError:
        reading.problems.append(Problem(str(path), "this is not YAML: nested too deeply"))
    except _UnreadableError as error:
        reading.problems.append(Problem("--config", str(error)))
    else:
        _read_root(root, path, reading)
    return reading


class _UnreadableError(Exception):
    pass


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _UnreadableError(f"{path}: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise _UnreadableError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _UnreadableError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _read_root(root: Node | None, path: Path, reading: Reading) -> None:
    import yaml  # noqa: PLC0415

    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        what = "the file must be a mapping of options, such as `secure-port: 8443`"
        reading.problems.append(Problem(str(path), what, _mapping_hint(root)))
        return
    lines: dict[str, int] = {}
    for key, value in root.value:
        where = f"{path}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            reading.problems.append(Problem(where, "a key must be the name of a flag"))
        elif key.value in lines:
            reading.problems.append(Problem(where, f"{key.value} is there twice", f"first in line {lines[key.value]}"))
        else:
            lines[key.value] = key.start_mark.line + 1
            _read_entry(key.value, value, where=where, reading=reading)


def _mapping_hint(root: Node) -> str:
    """What to change in a file whose content is a list or a text."""
    import yaml  # noqa: PLC0415

    if isinstance(root, yaml.SequenceNode):
        return "this is a list: write options without the dash before them"
    from clusterregistry.cli.options import yaml_errors  # noqa: PLC0415 - only for mistakes

    return yaml_errors.option_hint(str(root.value).split(" --")[0])


def _read_entry(flag: str, value: Node, *, where: str, reading: Reading) -> None:
    import yaml  # noqa: PLC0415

    if flag not in reading.known.by_flag:
        reading.refuse_unknown(flag, where=f"{flag} in {where}", shown_as=str)
        return
    if flag == "config":
        reading.problems.append(Problem(where, "config: a file cannot name another file"))
        return
    text = _value_text(value)
    if text is None:
        reading.problems.append(Problem(where, f"{flag}: must be a single value or a list of them"))
    elif text or isinstance(value, yaml.SequenceNode):
        reading.given.append(Given(flag, text, f"{where}: {flag}"))


def _value_text(value: Node) -> str | None:
    import yaml  # noqa: PLC0415

    if isinstance(value, yaml.ScalarNode):
        return "" if value.style is None and value.value in {"", "~", "null"} else str(value.value)
    if isinstance(value, yaml.SequenceNode) and all(isinstance(each, yaml.ScalarNode) for each in value.value):
        return ",".join(each.value for each in value.value)
    return None
