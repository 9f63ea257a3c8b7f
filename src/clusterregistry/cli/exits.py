"""Exit statuses. They are part of the contract: --help lists them."""

from __future__ import annotations

OK = 0
USAGE = 2
STARTUP = 3
