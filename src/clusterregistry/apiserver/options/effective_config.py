"""The configuration in effect as a YAML file that ``--config`` takes, with where each value comes from.

It holds what options hold: names of files and never what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clusterregistry import __version__
from clusterregistry.apiserver.options import scope
from clusterregistry.apiserver.options.completion import CompletedOptions
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.options.resolution import Resolved
from clusterregistry.cli.options.field import Option

_PLAIN = re.compile(r"(?!null$)[A-Za-z0-9/_.][A-Za-z0-9/_.-]*", re.ASCII)
"""Values that mean the same to every reader of YAML without quotes. All others get quotes."""

_COLUMN = 44


def render(resolved: Resolved, completed: CompletedOptions, known: OptionSet, *, command: str) -> str:
    """The whole file. ``resolved`` is what was given, ``completed`` what became of it."""
    in_effect = _in_effect(completed)
    lines = [
        f"# The configuration in effect for `{known.program} {command}` (v{__version__}); --config takes this file.",
        "# Behind each value stands where it comes from. What is commented out is not set.",
    ]
    for name, options in scope.by_group(known, aggregated=completed.host is not None).items():
        group = getattr(resolved.options, name)
        lines += ["", f"# {known.title(name)}"]
        lines += [
            _line(each, getattr(group, each.field), resolved.sources.get(each.field, ""), in_effect.get(each.field, ""))
            for each in options
            if each.flag != "config"  # a file cannot name another file
        ]
    lines += ["", "# What follows from these:", *(f"#   {_comment(each)}" for each in _derived(completed))]
    lines += [f"# Warning: {_comment(warning)}" for warning in completed.warnings]
    return "\n".join(lines) + "\n"


def _line(option: Option, value: Any, source: str, in_effect: str) -> str:
    written = _written(option, value)
    entry = f"{option.flag}: {written}" if written else f"# {option.flag}:"
    if source and written:
        remark = source
    else:
        unset = "" if written or in_effect else option.details.default_shown.replace("`", "")
        remark = f"default: {unset}" if unset else "default"
    if in_effect:
        remark = f"{remark}; in effect: {in_effect}"
    return f"{entry:<{_COLUMN}}  # {_comment(remark)}"


def _written(option: Option, value: Any) -> str:
    """The value in YAML; ``""`` for what is not set."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        items = ["=".join(each) if isinstance(each, tuple) else str(each) for each in value]
        return f"[{', '.join(map(scalar, items))}]" if items or value != option.default else ""
    text = option.details.kind.show(value)
    return scalar(text) if text else ""


def scalar(text: str) -> str:
    """A text as YAML, on one line whatever is in it."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - a byte, two bytes


def _comment(text: str) -> str:
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _in_effect(completed: CompletedOptions) -> Mapping[str, str]:
    """By field: what is used, where that is another value than the one that is written."""
    serving, storage = completed.serving, completed.storage
    found = {
        "data_dir": "" if storage.data_dir else str(completed.data_dir),
        "cert_dir": "" if serving.cert_dir else str(completed.layout.cert_dir),
        "storage_backend": "" if storage.storage_backend else _backend(completed),
        "tls_cert_file": "" if serving.tls_cert_file else str(completed.serving_certificate),
        "generate_admin": "" if serving.generate_admin is not None else str(completed.generate_admin).lower(),
        "tls_private_key_file": "" if serving.tls_private_key_file else str(completed.serving_key),
    }
    return {field: text for field, text in found.items() if text}


def _backend(completed: CompletedOptions) -> str:
    return "etcd3" if completed.etcd else "sqlite"


def _derived(completed: CompletedOptions) -> Iterator[str]:
    yield f"server: {completed.server_url}"
    yield f"objects: {completed.etcd.shown}" if completed.etcd else f"objects: SQLite in {completed.data_dir}"
    if completed.generate_admin:
        yield f"administrator's kubeconfig: {completed.layout.kubeconfig}"
    if completed.host is None:
        yield f"authorization modes: {','.join(completed.authorization.authorization_mode)}"
        yield f"anonymous requests: {'allowed' if completed.authentication.anonymous_auth else 'refused'}"
    else:
        yield "users and their rights: those of the host cluster"
    if completed.client_ca_files:
        yield f"authorities of client certificates: {', '.join(map(str, completed.client_ca_files))}"
    yield f"audit log: {'written' if completed.audit_settings else 'none'}"
