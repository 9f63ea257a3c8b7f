"""The first module that a program runs: it imports nothing heavy, so that Ctrl-C during the imports ends quietly."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn


def run(module: str, *, interrupted: int = 0) -> NoReturn:
    """Calls ``main`` of a module and exits with its status; ``interrupted`` is the status after Ctrl-C."""
    try:
        gc.disable()  # imports create objects that all stay: a collection would find nothing
        main = import_module(module).main
        gc.freeze()  # later collections skip these objects
        gc.enable()
        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = interrupted
    sys.exit(status)
