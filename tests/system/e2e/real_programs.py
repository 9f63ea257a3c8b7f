"""The programs that these tests run: from the environment, or from the cache that tools/programs.py keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import programs

WANTED = "E2E"
"""The variable that enables these tests, which take a minute or two."""

KUBE_APISERVER = "E2E_KUBE_APISERVER"
ETCD = "E2E_ETCD"
"""The environment's names for programs to use instead of the cached ones."""

NOT_BUILT = "is not there: `make e2e` builds it (this takes Go)"
"""Why a test was skipped that should have run."""

HOST = os.environ.get("E2E_HOST", "1.36")
"""The release of the host cluster's kube-apiserver."""

HOST_PROGRAM = f"kube-apiserver-{HOST}"
ETCD_PROGRAM = "etcd-server-3.6"
HELM_PROGRAM = "helm-4.2"
KUBECTLS = ("1.27", "1.29", "1.33", "1.36")
"""The releases of kubectl that use a registry; where it does not matter which, it is the newest."""


def host_program(variable: str, name: str) -> Path:
    """A program that is there, else the test is skipped: these take minutes to build, which ``make e2e`` does.

    ``variable`` is the one of the environment that may name another program; empty if none does.
    """
    if not os.environ.get(WANTED):
        pytest.skip("a real kube-apiserver is run only by `make e2e`")
    chosen = os.environ.get(variable, "") if variable else ""
    path = Path(chosen) if chosen else programs.known_to_build()[name].path()
    if not path.exists():
        instead = f", or name one with {variable}" if variable else ""
        pytest.skip(f"{name} {NOT_BUILT}{instead}")
    return path


def kubectl(release: str) -> Path:
    return programs.fetch(programs.find(f"kubectl-{release}"))
