"""Logging of the process: plain lines on standard error."""

from __future__ import annotations

import logging
import sys
import time

EVERYTHING = 5


class _Lines(logging.Formatter):
    """``2030-01-02T03:04:05.678Z INFO clusterregistry.serving: ready``; times in UTC, as in Kubernetes' own logs."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime


def configure(verbosity: int) -> None:
    """Sets up the root logger: our own details from 1 on; libraries only warn until 5, then tell everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= EVERYTHING else logging.WARNING)
    logging.getLogger("clusterregistry").setLevel(logging.DEBUG if verbosity else logging.INFO)
