from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.api.coordination.v1.validation import validate_lease


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({}, []),
        ({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}, []),
        ({"leaseDurationSeconds": 0}, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
        (
            {"leaseDurationSeconds": -1, "leaseTransitions": -1},
            [
                "spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
    ],
)
def test_a_lease_has_a_duration_and_does_not_count_backwards(spec: dict[str, Any], wrong: list[str]) -> None:
    assert [str(error) for error in validate_lease({"spec": spec})] == wrong
