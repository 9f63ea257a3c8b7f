"""The first thing that runs. It imports nothing heavy, so that Ctrl-C during the imports ends quietly too."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """What the ``clusterregistry`` script calls."""
    try:
        gc.disable()  # imports make nothing but what stays: the collector would only look at it again and again
        from clusterregistry.registry.main import main  # noqa: PLC0415 - this is what takes its time

        gc.freeze()  # nor at what they have made, from now on
        gc.enable()
        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = 0
    sys.exit(status)
