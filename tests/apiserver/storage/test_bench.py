"""The bench of the storage measures what it says, on both engines; how fast it is, is for `make bench-storage`."""

import re

import pytest

from tests.apiserver.storage.etcd_servers import NEEDS_ETCD
from tools import bench_storage

pytestmark = NEEDS_ETCD


def test_a_quick_run_fills_both_tables_for_both_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_storage.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    writes, starts = re.split(r"^Start$", printed, flags=re.MULTILINE)
    for engine in ("sqlite", "etcd"):
        assert len(re.findall(rf"^{engine} +[18] +[\d,]+ ", writes, re.MULTILINE)) == 2
        assert re.search(rf"^{engine} +50 +\d+\.\d\d +\d+\.\d\d +\d+$", starts, re.MULTILINE)
    # Writes that wait for each other's commit share one.
    (shared,) = re.findall(r"^sqlite +8 .* (\d+\.\d)$", writes, re.MULTILINE)
    assert float(shared) > 1


def test_columns_line_up() -> None:
    assert bench_storage.table("T", ["a", "bb"], ["ccc", "d"]) == "T\na    bb\nccc   d\n"
