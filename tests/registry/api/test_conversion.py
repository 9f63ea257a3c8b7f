"""The conversion of clusters between v1alpha1 and v1beta1 loses nothing, whatever a cluster holds."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.v1alpha1 import types as v1alpha1
from clusterregistry.api.clusterregistry.v1beta1 import types as v1beta1
from clusterregistry.api.clusterregistry.v1beta1.conversion import (
    GENERATIONS_KEY,
    HEARTBEATS_KEY,
    LOCATION_KEY,
    annotation_errors,
    annotations_of,
    conditions_of,
    from_v1alpha1,
    from_v1alpha1_whole,
    inherit_annotations,
    keep_unseen,
    to_v1alpha1,
)
from clusterregistry.apimachinery.schema.structural import Structural
from tests.registry.api.clusters import ALPHAS, BETAS, JSON, ODD_BETAS, TEXTS, Object

SHARED = Structural(v1alpha1.CLUSTER)
BETA = Structural(v1beta1.STORED_CLUSTER)


def cluster(version: str = "v1alpha1", *, annotations: dict[str, str] | None = None, **parts: Any) -> Object:
    metadata: Object = {"name": "a", "uid": "u"} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": f"clusterregistry.k8s.io/{version}", "kind": "Cluster", "metadata": metadata, **parts}


def condition(**fields: Any) -> Object:
    return cluster(status={"conditions": [{"type": "OK", "status": "True", **fields}]})


# Nothing is lost


@given(BETAS)
def test_a_cluster_of_v1beta1_comes_back_from_v1alpha1_as_it_was(beta: Object) -> None:
    alpha = to_v1alpha1(beta)
    assert SHARED.validate(alpha) == []
    assert from_v1alpha1(alpha) == beta


@given(ALPHAS)
def test_a_cluster_of_v1alpha1_comes_back_from_where_v1beta1_is_stored(alpha: Object) -> None:
    stored = from_v1alpha1_whole(alpha)
    assert BETA.validate(stored) == []
    assert to_v1alpha1(stored) == with_structs_for_empty_names(alpha)


@given(ALPHAS)
def test_a_write_in_v1beta1_that_changes_nothing_changes_nothing(alpha: Object) -> None:
    """A client reads v1beta1, and sends it back."""
    written = to_v1alpha1(from_v1alpha1(alpha))
    keep_unseen(written, alpha)
    assert written == alpha


@given(BETAS, BETAS)
def test_a_write_in_v1beta1_over_another_cluster_is_what_was_written(beta: Object, old: Object) -> None:
    written = to_v1alpha1(beta)
    keep_unseen(written, to_v1alpha1(old))
    assert from_v1alpha1(written) == beta


@given(BETAS)
def test_a_put_in_v1alpha1_without_annotations_leaves_the_location_and_the_generations(beta: Object) -> None:
    alpha = to_v1alpha1(beta)
    sent = cluster(**{name: alpha[name] for name in ("spec", "status") if name in alpha})
    inherit_annotations(sent, alpha)
    shown = from_v1alpha1(sent)
    assert shown.get("status") == beta.get("status")
    assert {"location": None, **shown.get("spec", {})} == {"location": None, **beta.get("spec", {})}


@given(ALPHAS | BETAS.map(to_v1alpha1))
def test_conversions_are_idempotent_and_change_no_argument(alpha: Object) -> None:
    before = copy.deepcopy(alpha)
    beta = from_v1alpha1(alpha)
    assert from_v1alpha1(to_v1alpha1(beta)) == beta
    stored = from_v1alpha1_whole(alpha)
    assert from_v1alpha1_whole(to_v1alpha1(stored)) == stored
    assert alpha == before


def with_structs_for_empty_names(alpha: Object) -> Object:
    """``{}`` for ``{"name": ""}``: both name no type."""
    changed = copy.deepcopy(alpha)
    for provider in changed.get("spec", {}).get("authInfo", {}).get("providers", ()):
        if provider.get("type") == {"name": ""}:
            provider["type"] = {}
    return changed


# What a client may send


@given(ODD_BETAS)
def test_whatever_a_client_sends_can_be_converted_and_its_mistakes_stay(beta: Object) -> None:
    BETA.prune(beta)
    before = copy.deepcopy(beta)
    shown = from_v1alpha1(to_v1alpha1(beta))
    assert beta == before
    mistakes = BETA.validate(beta)
    assert [each.field for each in BETA.validate(shown)] == [each.field for each in mistakes]
    if not mistakes:
        assert shown == beta


@given(st.sampled_from([LOCATION_KEY, GENERATIONS_KEY, HEARTBEATS_KEY]), JSON.map(json.dumps) | TEXTS)
def test_whatever_is_in_an_annotation_nothing_fails_and_garbage_stays_an_annotation(key: str, text: str) -> None:
    alpha = cluster(annotations={key: text}, status={"conditions": [{"type": "a", "status": "True"}]})
    beta = from_v1alpha1(alpha)
    orjson.dumps(beta, option=orjson.OPT_NON_STR_KEYS)
    assert BETA.validate(beta) == []
    if annotation_errors({key: text}, {}):
        assert annotations_of(beta) == {key: text}
        assert to_v1alpha1(beta) == alpha


@pytest.mark.parametrize(
    "text",
    ["", "x", "null", "[]", '{"region":1}', '{"planet":"Mars"}', '{"latitude":true}', "{" * 5000, '"' + "x" * 300_000],
)
def test_a_text_that_is_no_location_is_refused_and_ignored(text: str) -> None:
    (error,) = annotation_errors({LOCATION_KEY: text}, {})
    assert error.field == f"metadata.annotations[{LOCATION_KEY}]"
    assert annotation_errors({LOCATION_KEY: text}, {LOCATION_KEY: text}) == []
    assert "spec" not in from_v1alpha1(cluster(annotations={LOCATION_KEY: text}))


def test_a_location_in_an_annotation_is_validated_as_that_of_v1beta1() -> None:
    errors = annotation_errors({LOCATION_KEY: json.dumps({"latitude": 91, "region": "x" * 254})}, {})
    assert [each.field for each in errors] == [
        f"metadata.annotations[{LOCATION_KEY}].region",
        f"metadata.annotations[{LOCATION_KEY}].latitude",
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"OK":-1}', '{"OK":"1"}', '{"OK":1.5}', f'{{"OK":{2**63}}}'])
def test_a_text_that_has_no_generations_is_refused_and_ignored(text: str) -> None:
    assert len(annotation_errors({GENERATIONS_KEY: text}, {})) == 1
    alpha = condition()
    alpha["metadata"]["annotations"] = {GENERATIONS_KEY: text}
    assert "observedGeneration" not in conditions_of(from_v1alpha1(alpha))[0]


def test_a_client_of_v1beta1_cannot_set_fields_by_their_annotations() -> None:
    beta = cluster("v1beta1", annotations={LOCATION_KEY: '{"region":"x"}', "note": "mine"})
    assert annotations_of(to_v1alpha1(beta)) == {"note": "mine"}


# Field by field


def test_a_type_of_provider_is_a_text_in_v1beta1() -> None:
    providers: list[Object] = [{"type": {"name": "x"}}, {"type": {}}, {"name": "n"}]
    beta = from_v1alpha1(cluster(spec={"authInfo": {"providers": providers}}))
    assert beta["spec"]["authInfo"]["providers"] == [{"type": "x"}, {"type": ""}, {"name": "n"}]
    assert to_v1alpha1(beta)["spec"]["authInfo"]["providers"] == providers


def test_a_location_is_an_annotation_in_v1alpha1() -> None:
    location = {"provider": "aws", "region": "eu-north-1", "zone": "a", "latitude": 59.33, "longitude": "18.07"}
    beta = cluster("v1beta1", spec={"cloudProvider": {"name": "eks"}, "location": location})
    alpha = to_v1alpha1(beta)
    assert alpha["spec"] == {"cloudProvider": {"name": "eks"}}
    assert json.loads(annotations_of(alpha)[LOCATION_KEY]) == location
    assert from_v1alpha1(alpha) == beta


def test_an_observed_generation_is_an_annotation_in_v1alpha1_and_belongs_to_its_condition() -> None:
    beta = condition(observedGeneration=3, reason="R")
    alpha = to_v1alpha1(beta)
    assert conditions_of(alpha) == [{"type": "OK", "status": "True", "reason": "R"}]
    assert annotations_of(alpha) == {GENERATIONS_KEY: '{"OK":3}'}
    alpha["status"]["conditions"] = [{"type": "Other", "status": "True"}]
    assert conditions_of(from_v1alpha1(alpha)) == [{"type": "Other", "status": "True"}]


def test_a_heartbeat_is_not_shown_in_v1beta1_and_survives_a_new_status_of_its_condition() -> None:
    alpha = condition(lastHeartbeatTime="2024-01-02T03:04:05Z")
    beta = from_v1alpha1(alpha)
    assert conditions_of(beta) == [{"type": "OK", "status": "True"}]
    assert annotations_of(beta) == {}
    written = to_v1alpha1({**beta, "status": {"conditions": [{"type": "OK", "status": "False"}]}})
    keep_unseen(written, alpha)
    assert conditions_of(written) == [
        {"type": "OK", "status": "False", "lastHeartbeatTime": "2024-01-02T03:04:05Z"},
    ]


def test_another_text_of_the_same_location_stays_as_it_was_written() -> None:
    alpha = cluster(annotations={LOCATION_KEY: '{ "region": "x" }'}, spec={})
    written = to_v1alpha1(from_v1alpha1(alpha))
    keep_unseen(written, alpha)
    assert written == alpha


def test_a_patch_may_remove_the_annotation_and_with_it_the_location() -> None:
    assert "location" not in from_v1alpha1(cluster(spec={"clusterID": "x"}))["spec"]
