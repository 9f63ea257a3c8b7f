"""The status of a cluster after an observation."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.api.clusterregistry.v1beta1.types import CLUSTER
from clusterregistry.api.clusterregistry.v1beta1.validation import validate_conditions
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.controllers import identity
from clusterregistry.controllers import status as statuses
from clusterregistry.controllers.observer.observation import (
    CredentialInfo,
    Health,
    Nodes,
    Observation,
    Reason,
    Section,
    ServingCertificate,
)
from clusterregistry.controllers.status import CONDITIONS, STATES, is_change, never_observed, next_status
from tests.controllers.observations import (
    AUTHORITY,
    NODES,
    NOW,
    OTHER_AUTHORITY,
    OTHER_UID,
    UID,
    YEAR,
    cluster,
    failed,
    failure,
    well,
)

DAY = 86400.0


def status_of(observation: Observation, before: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return next_status(observation, cluster(before, **spec), now=NOW)


def condition(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in status["conditions"] if each["type"] == name)


def shown(status: dict[str, Any], name: str) -> tuple[str, str]:
    found = condition(status, name)
    return found["status"], found["reason"]


def properties(status: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in status.get("properties", [])}


WELL = status_of(well())
LATER = NOW + 3600


def test_a_cluster_that_is_well_is_ready_with_all_that_is_known_of_it() -> None:
    assert WELL["state"] == "Ready"
    assert WELL["observedAt"] == "2027-01-15T08:00:00Z"
    assert WELL["version"] == {"kubernetes": "v1.36.4"}
    assert WELL["nodes"] == {"total": 3, "ready": 3}
    assert WELL["capacity"] == {"cpu": "12", "memory": "48Gi"}
    assert WELL["allocatable"] == {"cpu": "11", "memory": "45Gi"}
    assert properties(WELL) == {
        "clusterregistry.k8s.io/kube-system-uid": UID,
        "clusterregistry.k8s.io/serving-authority": AUTHORITY,
        "clusterregistry.k8s.io/serving-certificate-expiry": "2028-01-15T08:00:00Z",
    }
    assert {name: shown(WELL, name)[0] for name in CONDITIONS} == {
        **dict.fromkeys(CONDITIONS, "True"), "CertificateExpiring": "False",
    }  # fmt: skip


def part(reason: Reason, last: Any = None) -> Section[Any]:
    return Section(value=last, at=NOW, failure=failure(reason))


SICK = Section(value=Health(ready=False, failed_checks=("etcd", "poststarthook/rbac")), at=NOW)
ONE_DOWN = Section(value=replace(NODES, ready=2, not_ready=("node-2",)), at=NOW)

CASES = [
    # observation, state, condition that is not well, its status and reason
    (failed(Reason.NAME_NOT_RESOLVED), "Unreachable", "Reachable", "False", "NameNotResolved"),
    (failed(Reason.CONNECTION_REFUSED), "Unreachable", "Reachable", "False", "ConnectionRefused"),
    (failed(Reason.TIMED_OUT), "Unreachable", "Reachable", "False", "TimedOut"),
    (failed(Reason.TLS_UNTRUSTED), "Unreachable", "Reachable", "False", "TLSUntrusted"),
    (failed(Reason.NO_ENDPOINT), "Unreachable", "Reachable", "False", "NoEndpoint"),
    (failed(Reason.TIMED_OUT), "Unreachable", "NodesReady", "Unknown", "TimedOut"),
    (failed(Reason.TIMED_OUT, breaker_open_until=NOW + 60), "Unreachable", "Reachable", "False", "TimedOut"),
    (failed(Reason.TIMED_OUT, breaker_open_until=NOW + 60), "Unreachable", "NodesReady", "Unknown", "BreakerOpen"),
    (failed(Reason.CREDENTIAL_MISSING), "Denied", "CredentialsValid", "False", "CredentialMissing"),
    (failed(Reason.CREDENTIAL_MISSING), "Denied", "Reachable", "Unknown", "CredentialMissing"),
    (failed(Reason.CREDENTIAL_EXPIRED), "Denied", "CredentialsValid", "False", "CredentialExpired"),
    (failed(Reason.UNAUTHORIZED), "Denied", "CredentialsValid", "False", "Unauthorized"),
    (failed(Reason.UNAUTHORIZED), "Denied", "Reachable", "True", "Answered"),
    (failed(Reason.BAD_RESPONSE), "Degraded", "ControlPlaneHealthy", "Unknown", "BadResponse"),
    (well(nodes=part(Reason.FORBIDDEN)), "Denied", "CredentialsValid", "False", "Forbidden"),
    (well(nodes=part(Reason.FORBIDDEN)), "Denied", "NodesReady", "Unknown", "Forbidden"),
    (well(nodes=part(Reason.UNAUTHORIZED)), "Denied", "CredentialsValid", "False", "Unauthorized"),
    (well(kube_system_uid=part(Reason.FORBIDDEN)), "Denied", "IdentityVerified", "Unknown", "Forbidden"),
    (well(health=part(Reason.FORBIDDEN)), "Denied", "ControlPlaneHealthy", "Unknown", "Forbidden"),
    (well(health=SICK), "Degraded", "ControlPlaneHealthy", "False", "NotReady"),
    (well(health=part(Reason.BAD_RESPONSE)), "Degraded", "ControlPlaneHealthy", "False", "BadResponse"),
    (well(version=part(Reason.NOT_READY)), "Degraded", "ControlPlaneHealthy", "False", "NotReady"),
    (well(nodes=ONE_DOWN), "Degraded", "NodesReady", "False", "NotReady"),
    (well(nodes=part(Reason.TIMED_OUT, NODES)), "Degraded", "NodesReady", "Unknown", "TimedOut"),
    (well(nodes=part(Reason.BAD_RESPONSE)), "Degraded", "NodesReady", "Unknown", "BadResponse"),
    (well(nodes=Section()), "Degraded", "NodesReady", "Unknown", "NeverObserved"),
    (well(nodes=Section(value=NODES, at=NOW - 181)), "Degraded", "NodesReady", "Unknown", "StatusStale"),
    (well(health=Section(value=Health(ready=True), at=NOW - 91)), "Degraded", "OK", "False", "StatusStale"),
    (well(at=NOW - 91), "Stale", "OK", "Unknown", "StatusStale"),
    # the worst problem counts
    (well(health=SICK, nodes=part(Reason.FORBIDDEN)), "Denied", "OK", "False", "Forbidden"),
    (well(health=SICK, nodes=ONE_DOWN), "Degraded", "OK", "False", "NotReady"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("observation", "state", "name", "status", "reason"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_worst_problem_is_the_state(
    observation: Observation, state: str, name: str, status: str, reason: str
) -> None:
    found = status_of(observation)

    assert found["state"] == state
    assert shown(found, name) == (status, reason)
    assert shown(found, "OK")[0] == ("Unknown" if state == "Stale" else "False")


def test_fresh_data_are_fresh_for_three_intervals() -> None:
    observation = well(
        at=NOW - 90,
        asked_at=NOW - 90,
        health=Section(value=Health(ready=True), at=NOW - 90),
        version=Section(value="v1.36.4", at=NOW - 90),
        nodes=Section(value=NODES, at=NOW - 180),
        kube_system_uid=Section(value=UID, at=NOW - 86400),
    )

    assert status_of(observation)["state"] == "Ready"


def test_a_cluster_that_is_left_alone_by_its_breaker_keeps_what_it_had() -> None:
    """Its rounds are reported without questions: the parts do not get old."""
    nonsense = well(at=NOW, asked_at=NOW - 290, breaker_open_until=NOW + 10, health=part(Reason.BAD_RESPONSE))
    sections: dict[str, Any] = {
        "version": replace(nonsense.version, at=NOW - 290),
        "nodes": replace(nonsense.nodes, at=NOW - 350),
    }

    found = status_of(replace(nonsense, **sections))

    assert (found["state"], shown(found, "OK")) == ("Degraded", ("False", "BadResponse"))
    assert shown(found, "NodesReady") == ("True", "AllNodesReady")


def test_a_message_names_what_is_not_ready() -> None:
    found = status_of(well(health=SICK, nodes=ONE_DOWN))

    assert condition(found, "OK")["message"] == (
        "/readyz fails: etcd, poststarthook/rbac; 1 of 3 nodes are not ready: node-2"
    )


def test_a_cluster_without_nodes_is_ready() -> None:
    found = status_of(well(nodes=Section(value=Nodes(total=0, ready=0), at=NOW)))

    assert (found["state"], shown(found, "NodesReady")) == ("Ready", ("True", "NoNodes"))
    assert found["nodes"] == {"total": 0, "ready": 0}


# What was known


def test_a_failure_keeps_what_was_known() -> None:
    found = status_of(failed(Reason.TIMED_OUT), WELL)

    assert found["state"] == "Unreachable"
    for name in ("version", "nodes", "capacity", "allocatable", "properties"):
        assert found[name] == WELL[name]


def test_a_part_that_fails_keeps_its_last_value() -> None:
    found = status_of(well(nodes=part(Reason.TIMED_OUT), version=Section(value="v1.37.0", at=NOW)), WELL)

    assert found["nodes"] == {"total": 3, "ready": 3}
    assert found["version"] == {"kubernetes": "v1.37.0"}


def test_an_observer_that_has_just_started_leaves_the_status_as_it_was() -> None:
    nothing = Observation(at=NOW)

    assert next_status(nothing, cluster(WELL), now=LATER) == WELL
    assert next_status(nothing, cluster(), now=NOW)["state"] == "Never"


def test_nothing_is_known_of_a_cluster_that_was_never_observed() -> None:
    found = never_observed(cluster(), now=NOW)

    assert found["state"] == "Never"
    assert "observedAt" not in found
    assert {shown(found, name) for name in CONDITIONS} == {("Unknown", "NeverObserved")}


# Times


def test_a_transition_has_its_time_only_when_the_status_changes() -> None:
    later = next_status(replace(failed(Reason.TIMED_OUT), at=LATER, asked_at=LATER), cluster(WELL), now=LATER)
    again = next_status(replace(failed(Reason.CONNECTION_REFUSED), at=LATER + 60), cluster(later), now=LATER + 60)

    assert condition(later, "Reachable")["lastTransitionTime"] == "2027-01-15T09:00:00Z"
    assert condition(again, "Reachable")["lastTransitionTime"] == "2027-01-15T09:00:00Z"
    assert condition(again, "Reachable")["reason"] == "ConnectionRefused"
    assert condition(later, "CertificateExpiring")["lastTransitionTime"] == "2027-01-15T08:00:00Z"


def test_conditions_name_the_generation_that_they_are_about() -> None:
    found = next_status(well(), cluster(generation=7), now=NOW)

    assert {each["observedGeneration"] for each in found["conditions"]} == {7}


def test_a_heartbeat_is_no_change() -> None:
    later = next_status(_shifted(well(), 30), cluster(WELL), now=NOW + 30)

    assert later["observedAt"] != WELL["observedAt"]
    assert not is_change(later, WELL)
    assert is_change({**later, "state": "Degraded"}, WELL)
    assert is_change(later, {**WELL, "state": "Stale"})
    assert is_change(later, {})


def test_parts_of_others_are_no_change() -> None:
    foreign = {
        **WELL,
        "conditions": [{"type": "Backup", "status": "True"}, *reversed(WELL["conditions"])],
        "properties": [{"name": "example.com/team", "value": "x"}, *reversed(WELL["properties"])],
    }

    assert not is_change(next_status(_shifted(well(), 30), cluster(foreign), now=NOW + 30), foreign)


def test_a_stale_mark_of_the_server_goes_with_the_next_observation() -> None:
    marked = copy.deepcopy(WELL)
    marked["state"] = "Stale"
    condition(marked, "OK").update(status="Unknown", reason="StatusStale", lastTransitionTime="2027-01-15T08:02:00Z")

    found = next_status(_shifted(well(), 3600), cluster(marked), now=LATER)

    assert found["state"] == "Ready"
    assert condition(found, "OK")["lastTransitionTime"] == "2027-01-15T09:00:00Z"
    assert condition(found, "Reachable")["lastTransitionTime"] == "2027-01-15T08:00:00Z"


# Identity


@pytest.mark.parametrize(
    "other",
    [
        well(kube_system_uid=Section(value=OTHER_UID, at=NOW)),
        well(serving=ServingCertificate(not_after=NOW + YEAR, authority=OTHER_AUTHORITY)),
    ],
    ids=["uid", "authority"],
)
def test_another_identity_is_told_and_the_record_stays(other: Observation) -> None:
    found = status_of(other, WELL)

    assert (found["state"], shown(found, "IdentityVerified")) == ("Degraded", ("False", "IdentityChanged"))
    assert properties(found)[identity.KUBE_SYSTEM_UID] == UID
    assert properties(found)[identity.SERVING_AUTHORITY] == AUTHORITY
    assert status_of(other, found) == found
    assert status_of(well(), found)["state"] == "Ready"


def test_a_record_that_was_removed_is_made_anew() -> None:
    other = well(kube_system_uid=Section(value=OTHER_UID, at=NOW))
    changed = status_of(other, WELL)
    changed["properties"] = [each for each in changed["properties"] if each["name"] != identity.KUBE_SYSTEM_UID]

    found = status_of(other, changed)

    assert (found["state"], properties(found)[identity.KUBE_SYSTEM_UID]) == ("Ready", OTHER_UID)


def test_the_cluster_id_of_the_spec_counts_before_anything_is_on_record() -> None:
    found = status_of(well(), clusterID=OTHER_UID)

    assert (found["state"], shown(found, "IdentityVerified")) == ("Degraded", ("False", "IdentityChanged"))
    assert identity.KUBE_SYSTEM_UID not in properties(found)
    assert identity.SERVING_AUTHORITY not in properties(found)
    assert status_of(well(), clusterID=UID.upper())["state"] == "Ready"


def test_a_cluster_id_of_another_convention_is_not_compared() -> None:
    assert status_of(well(), clusterID="emea-042")["state"] == "Ready"


def test_an_identity_that_has_changed_stays_so_while_the_cluster_is_not_asked() -> None:
    changed = status_of(well(kube_system_uid=Section(value=OTHER_UID, at=NOW)), WELL)

    found = status_of(failed(Reason.TIMED_OUT), changed)

    assert (found["state"], shown(found, "IdentityVerified")) == ("Unreachable", ("False", "IdentityChanged"))


# Expiry


def test_a_certificate_that_ends_soon_is_told() -> None:
    soon = well(serving=ServingCertificate(not_after=NOW + 13 * DAY, authority=AUTHORITY))
    found = status_of(soon)

    assert found["state"] == "Ready"
    assert shown(found, "CertificateExpiring") == ("True", "CertificateExpiring")
    assert "2027-01-28T08:00:00Z" in condition(found, "CertificateExpiring")["message"]


def test_a_credential_that_ends_soon_is_told_unless_it_renews_itself() -> None:
    info = CredentialInfo(source="rule 1 (file)", expires_at=NOW + DAY)
    found = status_of(well(credential=info))

    assert shown(found, "CertificateExpiring") == ("True", "CredentialExpiring")
    assert properties(found)[statuses.CREDENTIAL_EXPIRY] == "2027-01-16T08:00:00Z"
    renewed = status_of(well(credential=replace(info, renews=True)))
    assert shown(renewed, "CertificateExpiring") == ("False", "NotExpiring")


def test_the_end_of_a_certificate_is_remembered_while_the_cluster_is_silent() -> None:
    almost = NOW + YEAR - DAY
    silent = replace(failed(Reason.TIMED_OUT), at=almost, asked_at=almost)

    found = next_status(silent, cluster(WELL), now=almost)

    assert shown(found, "CertificateExpiring") == ("True", "CertificateExpiring")


# Properties of the function


def _shifted(observation: Observation, seconds: float) -> Observation:
    """The same findings, later."""
    parts = {
        name: replace(section, at=section.at + seconds)
        for name in ("health", "version", "nodes", "kube_system_uid")
        if (section := getattr(observation, name)).value is not None
    }
    return replace(observation, at=observation.at + seconds, asked_at=observation.asked_at + seconds, **parts)


def sections(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Section[Any]]:
    failures = st.none() | st.sampled_from(list(Reason)).map(failure)
    ages = st.sampled_from([0.0, 60.0, 120.0, 4000.0])
    return st.builds(
        lambda value, age, why: Section(value=value, at=NOW - age if value is not None else 0.0, failure=why),
        st.none() | values, ages, failures,
    )  # fmt: skip


observations = st.builds(
    Observation,
    at=st.sampled_from([NOW, NOW - 60, NOW - 4000]),
    asked_at=st.sampled_from([0.0, NOW, NOW - 300]),
    failure=st.none() | st.sampled_from(list(Reason)).map(failure),
    credential=st.none()
    | st.builds(CredentialInfo, source=st.just("rule 1 (env)"), expires_at=st.none() | st.just(NOW + DAY)),
    serving=st.none()
    | st.builds(ServingCertificate, not_after=st.just(NOW + DAY), authority=st.text("ab", max_size=2)),
    health=sections(st.builds(Health, ready=st.booleans())),
    version=sections(st.just("v1.36.4")),
    nodes=sections(st.just(NODES) | st.just(replace(NODES, ready=1, not_ready=("x" * 253,) * 10))),
    kube_system_uid=sections(st.sampled_from([UID, OTHER_UID])),
    breaker_open_until=st.sampled_from([0.0, NOW + 60]),
)
stored = st.none() | st.builds(status_of, observations)
SCHEMA = Structural(CLUSTER)


@given(observations, stored, st.sampled_from([{}, {"clusterID": UID}, {"clusterID": "x"}]))
def test_every_status_is_valid_consistent_and_says_the_same_again(
    observation: Observation, before: dict[str, Any] | None, spec: dict[str, Any]
) -> None:
    found = status_of(observation, before, **spec)
    again = status_of(observation, found, **spec)

    assert again == found
    assert not is_change(again, found)
    assert not SCHEMA.validate(cluster(found))
    assert not validate_conditions(found["conditions"])
    assert all(len(each["message"]) <= statuses.MAX_MESSAGE for each in found["conditions"])
    _check_consistency(found)


def _check_consistency(found: dict[str, Any]) -> None:
    state = found["state"]
    assert state in STATES
    expected = {"Ready": "True", "Never": "Unknown", "Stale": "Unknown"}
    assert shown(found, "OK")[0] == expected.get(state, "False")
    unwell = {name for name in CONDITIONS[1:6] if shown(found, name)[0] != "True"}
    if state == "Ready":
        assert not unwell
    if state == "Unreachable":
        assert shown(found, "Reachable")[0] == "False"
    if state == "Denied":
        assert shown(found, "CredentialsValid")[0] == "False"
    if state == "Degraded":
        assert unwell
    if state in {"Degraded", "Ready", "Denied"}:
        assert shown(found, "Reachable")[0] != "False"


@given(observations, stored)
def test_the_record_of_an_identity_is_never_replaced(observation: Observation, before: dict[str, Any] | None) -> None:
    recorded, found = properties(before or {}), properties(status_of(observation, before))

    for name in (identity.KUBE_SYSTEM_UID, identity.SERVING_AUTHORITY):
        assert found.get(name) == recorded[name] if name in recorded else True


@given(observations, stored)
def test_v1alpha1_has_the_same_status(observation: Observation, before: dict[str, Any] | None) -> None:
    whole = cluster(status_of(observation, before))

    assert conversion.from_v1alpha1(conversion.to_v1alpha1(whole)) == whole
