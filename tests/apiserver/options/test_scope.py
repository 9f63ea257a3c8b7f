from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError, scope
from tests.product import OPTIONS, load

TAKEN = {
    mode: {each.flag for group in scope.by_group(OPTIONS, aggregated=mode).values() for each in group}
    for mode in (False, True)
}
SAMPLES = {"BOOL": "false", "NUMBER": "7", "DURATION": "7s", "A,B,...": "a", "NAME=VALUE": "a=b"}


def refused(flag: str, tmp_path: Path, *, aggregated: bool) -> bool:
    """Whether a command says of a flag that it is not for it, whatever else is wrong."""
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


@pytest.mark.parametrize(
    "flag", sorted(flag for flag, each in OPTIONS.by_flag.items() if each.details.kind.metavar != "v1")
)
def test_a_command_has_the_flags_that_it_does_not_refuse(flag: str, tmp_path: Path) -> None:
    for aggregated, taken in TAKEN.items():
        assert (flag not in taken) == refused(flag, tmp_path, aggregated=aggregated)
