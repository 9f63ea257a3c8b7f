"""What the command does about its certificates while it serves."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from clusterregistry.apiserver.cli import standalone
from clusterregistry.apiserver.pki import provision
from tests.apiserver.pki.wants import DAY, layout_in, wanted


def test_certificates_that_end_soon_are_renewed_and_the_kubeconfig_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    layout, needed = layout_in(tmp_path), wanted(tmp_path)
    provision.provision(needed, lambda: time.time() - 300 * DAY)
    files = (layout.serving_certificate, layout.admin_certificate, layout.kubeconfig)
    before = [path.read_bytes() for path in files]
    standalone._renew(needed)
    after = [path.read_bytes() for path in files]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert len(caplog.messages) == len(files)
    standalone._renew(needed)
    assert [path.read_bytes() for path in files] == after
    assert len(caplog.messages) == len(files)
