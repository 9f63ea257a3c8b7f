"""Exit statuses. They are part of the contract: --help lists them."""

from __future__ import annotations

OK = 0
FOUND = 1
"""A check has found something wrong; the check itself went well."""

USAGE = 2
STARTUP = 3
