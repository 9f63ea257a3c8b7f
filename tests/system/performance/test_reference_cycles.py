"""What requests leave behind is freed the moment that they end, without the garbage collector.

``clusterregistry.apiserver.gc_tuning`` relies on it: what has grown old it has collected only once an hour.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.system.performance.clients import PATIENCE


def test_nothing_that_clients_do_leaves_a_circle_of_objects_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.system.performance.reference_cycles", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
