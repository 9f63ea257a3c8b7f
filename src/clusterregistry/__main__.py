"""``python -m clusterregistry`` is ``clusterregistry``."""

from __future__ import annotations

from clusterregistry.registry.entry import run

run()
