"""What is recorded without a policy of the operator's."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.audit import policy_file
from clusterregistry.apiserver.audit.policy import DEFAULT_POLICY, NOTHING
from clusterregistry.apiserver.audit.settings import Level
from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, User
from clusterregistry.apiserver.endpoints import request_info
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.audit.trails import JANE
from tests.docs import markdown

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.mark.parametrize("user", [JANE, ANONYMOUS_USER, None], ids=["user", "anonymous", "not authenticated"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CLUSTERS),
        ("PUT", f"{CLUSTERS}/a"),
        ("PATCH", f"{CLUSTERS}/a"),
        ("DELETE", f"{CLUSTERS}/a"),
        ("DELETE", CLUSTERS),
        ("PATCH", f"{CLUSTERS}/a/status"),
        ("POST", ROLES),
        ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/a"),
    ],
)
def test_every_write_is_recorded_without_its_body(method: str, path: str, user: User | None) -> None:
    recording = DEFAULT_POLICY.recording(user, request_info.parse(method, path, b""))
    assert recording.level is Level.Metadata
    assert recording.omitted_stages == {"RequestReceived"}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", CLUSTERS),
        ("GET", f"{CLUSTERS}/a"),
        ("GET", f"{CLUSTERS}?watch=true"),
        ("GET", ROLES),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/apis"),
        ("GET", "/openapi/v3"),
        ("GET", "/version"),
        ("PATCH", "/readyz"),
        ("DELETE", "/metrics"),
    ],
)
def test_nothing_else_is(method: str, target: str) -> None:
    path, _, query = target.partition("?")
    assert DEFAULT_POLICY.recording(JANE, request_info.parse(method, path, query.encode())) == NOTHING


def test_the_guide_shows_the_very_policy(tmp_path: Path) -> None:
    blocks = markdown.blocks(markdown.page("docs/guides/security/audit.md"))
    shown = next(block.body for block in blocks if block.info == "yaml")
    path = tmp_path / "policy.yaml"
    path.write_text(shown)
    assert tuple(policy_file.load(path).rules) == DEFAULT_POLICY.rules
