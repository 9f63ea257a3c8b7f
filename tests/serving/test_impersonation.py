"""Nobody is answered as himself when he asked to be somebody else."""

from __future__ import annotations

import pytest

from tests.api.clients import Client
from tests.api.objects import CLUSTERS


@pytest.mark.parametrize("header", ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid"])
def test_a_request_to_act_as_somebody_else_is_refused(client: Client, header: str) -> None:
    refused = client.get(CLUSTERS, headers={header: "viewer"}).refused(403, "Forbidden")
    assert "impersonation is not supported yet" in refused["message"]
