from __future__ import annotations

import pytest

from clusterregistry.apiserver.discovery import documents

OFFERED = ["application/json", "application/x-proto"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/x-proto", "application/x-proto"),
        ("application/x-proto, */*", "application/x-proto"),
        ("*/*, application/x-proto", "application/x-proto"),
        ("application/x-proto;q=0.1, application/json;q=0.2", "application/json"),
        ("application/x-proto;q=bad, application/json;q=0.2", "application/json"),
        ("application/json;charset=utf-8", "application/json"),
        ("Application/JSON", None),  # kube-apiserver compares them as they are written
        ("text/html", None),
        ("application", None),
    ],
)
def test_the_best_clause_that_matches_decides(accept: str, expected: str | None) -> None:
    assert documents.preferred(accept, OFFERED) == expected
