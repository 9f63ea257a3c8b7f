from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError
from tests.product import load


@pytest.mark.parametrize(("arguments", "seconds"), [([], 3600.0), (["--event-ttl=90s"], 90.0)])
def test_events_are_kept_for_an_hour_or_as_long_as_is_said(
    tmp_path: Path, arguments: list[str], seconds: float
) -> None:
    assert load(arguments, {"HOME": str(tmp_path)}).storage.event_ttl == seconds


def test_events_cannot_be_kept_for_no_time(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match=r"--event-ttl.*must be longer than 0s"):
        load(["--event-ttl=0"], {"HOME": str(tmp_path)})
