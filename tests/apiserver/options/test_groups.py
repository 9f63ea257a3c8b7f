from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError
from clusterregistry.apiserver.options.groups import by_group
from tests.product import OPTIONS, load

TAKEN = {
    mode: {each.flag for group in by_group(OPTIONS, aggregated=mode).values() for each in group}
    for mode in (False, True)
}
SAMPLES = {"BOOL": "false", "NUMBER": "7", "DURATION": "7s", "A,B,...": "a", "NAME=VALUE": "a=b"}


def is_refused(flag: str, tmp_path: Path, *, aggregated: bool) -> bool:
    """Whether a command refuses a flag as one of the other command, among other mistakes."""
    kind = OPTIONS.by_flag[flag].details.kind
    text = kind.metavar.rpartition("|")[2] if "|" in kind.metavar else SAMPLES.get(kind.metavar, "x")
    if kind.show(OPTIONS.by_flag[flag].default) == text:
        text = "true"
    host = [f"--kubeconfig={tmp_path / 'kubeconfig'}"] if aggregated and flag != "kubeconfig" else []
    (tmp_path / "kubeconfig").write_text("{}")
    try:
        load([f"--{flag}={text}", *host], {"HOME": str(tmp_path)}, aggregated=aggregated)
    except OptionsError as error:
        return any(each.where == f"--{flag}" and "is only for" in each.message for each in error.problems)
    return False


@pytest.mark.parametrize("aggregated", [False, True])
def test_a_command_has_the_flags_that_it_does_not_refuse(tmp_path: Path, *, aggregated: bool) -> None:
    # A flag with one allowed value cannot be given another one.
    tried = {flag for flag, each in OPTIONS.by_flag.items() if each.details.kind.metavar != "v1"}
    refused = {flag for flag in tried if is_refused(flag, tmp_path, aggregated=aggregated)}
    assert refused == tried - TAKEN[aggregated]
    assert refused
