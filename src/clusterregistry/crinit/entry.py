"""The first thing that runs: imports nothing heavy, so that Ctrl-C during the imports ends quietly too."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """What the ``crinit`` script calls."""
    try:
        from clusterregistry.crinit.main import main  # noqa: PLC0415 - this is what takes its time

        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = 3
    sys.exit(status)
