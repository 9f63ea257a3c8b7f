"""``python -m clusterregistry`` is ``clusterregistry``."""

from __future__ import annotations

from clusterregistry.cli.main import run

run()
