"""``python -m clusterregistry`` is ``clusterregistry``."""

from __future__ import annotations

from clusterregistry.cli.entry import run

run()
