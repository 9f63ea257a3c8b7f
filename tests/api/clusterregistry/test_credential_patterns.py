"""Real-looking credentials in every place of a Cluster where text can be, and what must give no alarm there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.credential_patterns import find_credential, finder_for
from clusterregistry.api.clusterregistry.secret_lint import LAST_APPLIED
from tests.apiserver.api.clients import causes
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.registry.secrets import certificate, credentials, encoded, innocent, letters, private_keys

Object = dict[str, Any]
Place = Callable[[str], Object]


@pytest.fixture(scope="module")
def warning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessClient]:
    with InProcess(tmp_path_factory.mktemp("warning")).running() as server:
        yield server.client()


@pytest.fixture(scope="module")
def rejecting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessClient]:
    with InProcess(tmp_path_factory.mktemp("rejecting"), "--secret-lint=reject").running() as server:
        yield server.client()


def _config(text: str) -> Object:
    return {"authInfo": {"providers": [{"name": "first"}, {"name": "second", "config": {"note": text}}]}}


PLACES: dict[str, Place] = {
    "metadata.annotations[example.com/note]": lambda text: cluster("a", annotations={"example.com/note": text}),
    "spec.authInfo.providers[1].config.note": lambda text: {**cluster("a"), "spec": _config(text)},
    "spec.authInfo.providers[0].name": lambda text: {
        **cluster("a"),
        "spec": {"authInfo": {"providers": [{"name": text}]}},
    },
    "spec.authInfo.user.name": lambda text: {**cluster("a"), "spec": {"authInfo": {"user": {"name": text}}}},
    "spec.cloudProvider.name": lambda text: cluster("a", provider=text),
}
"""By the path that a finding has there."""

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]")


def _parts(secret: str) -> list[str]:
    """What of a credential must not be shown: every run of letters that is long enough to be part of it."""
    return [part for part in re.findall(r"[A-Za-z0-9+/]{16,}", secret) if not part.startswith("LS0tLS1CRUdJTi")]


def test_every_credential_is_known_by_its_looks_also_within_other_text() -> None:
    missed = [
        (what, form)
        for what, secret in credentials().items()
        for form in (secret, f" {secret}\n", f"note: {secret}" if "base64" not in what else secret)
        if not find_credential(form)
    ]
    assert missed == []


def test_nothing_else_gives_an_alarm() -> None:
    assert [(what, found) for what, text in innocent().items() if (found := find_credential(text))] == []


def _found_at_once(texts: list[str]) -> list[str]:
    find = finder_for(texts)
    return [find(text) if find else "" for text in texts]


def test_looking_at_many_texts_at_once_finds_the_same_as_looking_at_each() -> None:
    others = list(innocent().values())
    assert _found_at_once(others) == [""] * len(others)
    for secret in credentials().values():
        for form in (secret, encoded(secret), f" {secret}\n", *re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", secret)):
            found = find_credential(form)
            assert _found_at_once([form]) == [found], form
            assert _found_at_once([*others[:5], form, *others[5:]]) == [*[""] * 5, found, *[""] * len(others[5:])], form


def test_text_in_base64_is_searched_for_all_that_base64_can_hold() -> None:
    key = next(iter(private_keys().values()))
    for bare in ("AKIA" + "A1" * 8, "ASIA" + "A1" * 8, "AIza" + "a1" * 18, encoded(key)):
        for text in (bare + "/" + letters(24), letters(24) + "/" + bare):
            assert _found_at_once([text]) == [find_credential(text)], text


@pytest.mark.parametrize("path", PLACES)
def test_a_credential_is_warned_of_with_its_path_and_never_shown(warning: InProcessClient, path: str) -> None:
    wrong = []
    for what, secret in credentials().items():
        answer = warning.post(CLUSTERS, PLACES[path](secret), dryRun="All")
        told = [text for text in answer.warnings if text.startswith(f"{path}: looks like ")]
        shown = [part for part in _parts(secret) if any(part in text for text in answer.warnings)]
        if answer.status != 201 or len(told) != 1 or shown:
            wrong.append((what, answer.status, answer.warnings))
    assert wrong == []


@pytest.mark.parametrize("path", PLACES)
def test_a_credential_is_rejected_with_its_path_and_never_shown(rejecting: InProcessClient, path: str) -> None:
    wrong = []
    for what, secret in credentials().items():
        answer = rejecting.post(CLUSTERS, PLACES[path](secret), dryRun="All")
        named = [field for field, _ in causes(answer.json)] if answer.status == 422 else []
        shown = [part for part in _parts(secret) if part.encode() in answer.body]
        if named != [path] or shown:
            wrong.append((what, answer.status, named, shown))
    assert wrong == []


@pytest.mark.parametrize("path", PLACES)
def test_nothing_else_is_rejected(rejecting: InProcessClient, path: str) -> None:
    answers = {what: rejecting.post(CLUSTERS, PLACES[path](text), dryRun="All") for what, text in innocent().items()}
    assert [(what, answer.body) for what, answer in answers.items() if answer.status != 201] == []


def test_a_label_can_be_a_credential(warning: InProcessClient, rejecting: InProcessClient) -> None:
    fitting = {what: secret for what, secret in credentials().items() if _LABEL.fullmatch(secret)}
    assert {"AWS access key", "GitHub p", "GitLab", "Slack bot"} <= fitting.keys()
    for secret in fitting.values():
        labelled = cluster("a", labels={"example.com/note": secret})
        answer = warning.post(CLUSTERS, labelled, dryRun="All")
        assert [text[:60] for text in answer.warnings if secret not in text] == [answer.warnings[0][:60]]
        assert answer.warnings[0].startswith("metadata.labels[example.com/note]: looks like ")
        refused = rejecting.post(CLUSTERS, labelled, dryRun="All").refused(422, "Invalid")
        assert causes(refused) == [("metadata.labels[example.com/note]", "FieldValueForbidden")]


@pytest.mark.parametrize("key", ["token", "id-token", "password", "client-secret", "client-key-data", "apiKey"])
def test_what_has_no_looks_is_known_by_its_key(rejecting: InProcessClient, key: str) -> None:
    spec = {"authInfo": {"providers": [{"name": "x", "config": {key: letters(20)}}]}}
    answer = rejecting.post(CLUSTERS, {**cluster("a"), "spec": spec}, dryRun="All")
    assert causes(answer.refused(422, "Invalid")) == [
        (f"spec.authInfo.providers[0].config.{key}", "FieldValueForbidden")
    ]
    assert letters(20).encode() not in answer.body


def test_the_bundle_takes_certificates_and_nothing_that_holds_a_key(warning: InProcessClient) -> None:
    def bundled(text: str) -> Object:
        return {**cluster("a"), "spec": {"kubernetesApiEndpoints": {"caBundle": encoded(text)}}}

    for fine in ("certificate", "chain"):
        answer = warning.post(CLUSTERS, bundled(innocent()[fine]), dryRun="All")
        answer.expect(201)
        assert answer.warnings == []
    for key in private_keys().values():
        for mixed in (key, certificate() + key, key + certificate(), f"\n# the key\n{key}"):
            answer = warning.post(CLUSTERS, bundled(mixed), dryRun="All")
            assert causes(answer.refused(422, "Invalid")) == [
                ("spec.kubernetesApiEndpoints.caBundle", "FieldValueInvalid")
            ]
            assert not [part for part in _parts(encoded(mixed)) if part.encode() in answer.body]


def test_other_credentials_in_the_bundle_are_found(warning: InProcessClient, rejecting: InProcessClient) -> None:
    path = "spec.kubernetesApiEndpoints.caBundle"
    for what in ("kubeconfig with a key", "kubeconfig with an opaque token", "JWT", "dockerconfigjson"):
        bundle = encoded(credentials()[what])
        mixed = {**cluster("a"), "spec": {"kubernetesApiEndpoints": {"caBundle": bundle}}}
        told = warning.post(CLUSTERS, mixed, dryRun="All").warnings
        assert [text.partition(":")[0] for text in told] == [path], what
        refused = rejecting.post(CLUSTERS, mixed, dryRun="All")
        assert causes(refused.refused(422, "Invalid")) == [(path, "FieldValueForbidden")]
        assert bundle.encode() not in refused.body


def test_an_applied_object_is_looked_at_once(warning: InProcessClient) -> None:
    applied = PLACES["spec.cloudProvider.name"](credentials()["GitHub p"])
    applied["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(applied)}
    answer = warning.post(CLUSTERS, applied, dryRun="All")
    assert [text.partition(":")[0] for text in answer.warnings] == ["spec.cloudProvider.name"]


def test_what_only_the_last_applied_configuration_still_holds_is_told(warning: InProcessClient) -> None:
    applied = PLACES["spec.cloudProvider.name"](credentials()["GitHub p"])
    left = cluster("a", annotations={LAST_APPLIED: json.dumps(applied)})
    (told,) = warning.post(CLUSTERS, left, dryRun="All").warnings
    assert told.startswith(f"metadata.annotations[{LAST_APPLIED}]: looks like a GitHub token")
    clean = cluster("a", annotations={LAST_APPLIED: innocent()["last applied configuration"]})
    assert warning.post(CLUSTERS, clean, dryRun="All").warnings == []
