"""The user's kubeconfig: read as kubectl does, and changed in nothing but our entries."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.host import kubeconfig_files as files
from clusterregistry.crinit.host import kubeconfigs

ENTRIES = {
    "clusters": {"server": "https://127.0.0.1:1"},
    "users": {"token": "t"},
    "contexts": {"cluster": "fleet", "user": "fleet"},
}
NAMES = st.sampled_from(["fleet", "host", "other", "prod"])
SCALARS = st.one_of(st.text(max_size=8), st.integers(-5, 5), st.booleans(), st.none())


def entries(singular: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    entry = st.fixed_dictionaries({"name": NAMES, singular: st.dictionaries(st.text(max_size=6), SCALARS, max_size=3)})
    return st.lists(entry, max_size=4)


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "clusters": entries("cluster"),
        "users": entries("user"),
        "contexts": entries("context"),
        "current-context": NAMES,
        "preferences": st.dictionaries(st.text(max_size=4), SCALARS, max_size=2),
        "extensions": st.lists(SCALARS, max_size=2),
    },
)


def others(document: dict[str, Any]) -> dict[str, Any]:
    """All that is not called fleet."""
    kept = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", *kubeconfigs.KINDS)}
    for plural in kubeconfigs.KINDS:
        kept[plural] = [each for each in document.get(plural) or [] if each["name"] != "fleet"]
    return kept


@settings(deadline=None, max_examples=50)
@given(DOCUMENTS)
def test_putting_our_entries_leaves_all_others_as_they_were(document: dict[str, Any]) -> None:
    changed = files.with_entries(document, "fleet", ENTRIES)
    assert others(changed) == others(document)
    for plural, singular in kubeconfigs.KINDS.items():
        ours = [each for each in changed[plural] if each["name"] == "fleet"]
        assert len(ours) == 1
        assert ENTRIES[plural].items() <= ours[0][singular].items()
    assert files.with_entries(changed, "fleet", ENTRIES) == changed


@settings(deadline=None, max_examples=50)
@given(DOCUMENTS)
def test_removing_our_entries_removes_only_ours(document: dict[str, Any]) -> None:
    # Somebody else's entries of the same name are not ours to remove.
    assert files.without_entries(document, "fleet") == document
    removed = files.without_entries(files.with_entries(document, "fleet", ENTRIES), "fleet")
    for plural in kubeconfigs.KINDS:
        assert [each for each in removed[plural] if each["name"] == "fleet"] == []
    without_current = {key: value for key, value in others(removed).items() if key != "current-context"}
    assert without_current == {key: value for key, value in others(document).items() if key != "current-context"}


@settings(deadline=None, max_examples=50)
@given(DOCUMENTS)
def test_a_written_file_reads_back_as_it_was(document: dict[str, Any]) -> None:
    changed = files.with_entries(document, "fleet", ENTRIES)
    assert yaml_codec.decode(yaml_codec.encode(changed)).value == changed


@pytest.mark.parametrize("before", [0o644, 0o640, 0o666, 0o600, 0o400])
def test_a_file_that_gets_a_key_is_for_its_owner_only_from_then_on(before: int, tmp_path: Path) -> None:
    place = tmp_path / "config"
    place.write_text("apiVersion: v1\nkind: Config\n")
    place.chmod(before)
    assert files.put(place, "fleet", ENTRIES) is True
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_file_that_was_opened_to_others_since_is_closed_again(tmp_path: Path) -> None:
    place = tmp_path / "config"
    files.put(place, "fleet", ENTRIES)
    content = place.read_bytes()
    place.chmod(0o644)
    assert files.put(place, "fleet", ENTRIES) is True
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert place.read_bytes() == content
    assert files.put(place, "fleet", ENTRIES) is False


def test_a_file_that_gets_no_key_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("apiVersion: v1\nkind: Config\n")
    real.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(real)
    aggregated = {"contexts": {"cluster": "host", "user": "host"}}
    assert files.put(link, "fleet", aggregated) is True
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert files.put(link, "fleet", aggregated) is False
    assert files.remove(link, "fleet") is True
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "real"]


def test_a_link_stays_a_link_when_its_file_gets_a_key(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("apiVersion: v1\nkind: Config\n")
    real.chmod(0o644)
    link.symlink_to(real)
    assert files.put(link, "fleet", ENTRIES) is True
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_file_stays_with_its_owner_when_root_changes_it(tmp_path: Path) -> None:
    place = tmp_path / "config"
    place.write_text("apiVersion: v1\nkind: Config\n")
    os.chown(place, 12345, 23456)
    files.put(place, "fleet", ENTRIES)
    assert (place.stat().st_uid, place.stat().st_gid) == (12345, 23456)


def test_a_disk_that_fills_up_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """The limit on the size of files stands for the disk: the write ends in the middle, with OSError."""
    place = tmp_path / "config"
    before = "apiVersion: v1\nkind: Config\n" + "# a comment of the owner\n" * 10
    place.write_text(before)
    limited = f"""
import resource, signal
from pathlib import Path
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.host import kubeconfig_files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    kubeconfig_files.put(Path({str(place)!r}), "fleet", {ENTRIES!r})
except OperatorError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=True)
    assert done.stdout == f"the kubeconfig {place} cannot be written: File too large\n"
    assert place.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    place = tmp_path / "new" / "config"
    files.put(place, "fleet", ENTRIES)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert kubeconfigs.load(kubeconfigs.Places((place,))).access("fleet").cluster["server"] == "https://127.0.0.1:1"


def test_the_current_context_goes_with_our_entries(tmp_path: Path) -> None:
    place = tmp_path / "config"
    place.write_text("current-context: fleet\n")
    files.put(place, "fleet", ENTRIES)
    assert files.remove(place, "fleet") is True
    assert kubeconfigs.document_of(place) == {
        "apiVersion": "v1", "kind": "Config", "current-context": "", "clusters": [], "users": [], "contexts": [],
    }  # fmt: skip
    assert files.remove(place, "fleet") is False


def test_files_that_are_no_kubeconfig_are_left_alone(tmp_path: Path) -> None:
    for content in ("[]", "clusters: 3", "a: [", "\x00"):
        place = tmp_path / "config"
        place.write_text(content)
        with pytest.raises(OperatorError, match="is no kubeconfig"):
            files.put(place, "fleet", ENTRIES)
        assert place.read_text() == content
        assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_several_files_are_read_as_kubectl_does(tmp_path: Path) -> None:
    first, second, missing = tmp_path / "a" / "config", tmp_path / "b", tmp_path / "missing"
    first.parent.mkdir()
    entry = {"name": "host", "cluster": {"server": "https://first.example.com", "certificate-authority": "ca.crt"}}
    first.write_text(json.dumps({"clusters": [entry]}))
    clusters = [{"name": "host", "cluster": {"server": "https://second.example.com"}}]
    contexts = [{"name": "c", "context": {"cluster": "host"}}]
    second.write_text(json.dumps({"clusters": clusters, "contexts": contexts, "current-context": "c"}))

    where = kubeconfigs.places("", {"KUBECONFIG": f"{missing}:{first}:{second}"})
    access = kubeconfigs.load(where).access("")
    assert access.cluster == {
        "server": "https://first.example.com",
        "certificate-authority": str(first.parent / "ca.crt"),
    }
    assert where.target() == first
    assert files.target(where, "c") == second
    assert kubeconfigs.places("", {"KUBECONFIG": f"{missing}:{missing}2"}).target() == Path(f"{missing}2")
    assert kubeconfigs.places("", {"HOME": "/nowhere"}).target() == Path("/nowhere/.kube/config")


def test_a_name_that_is_taken_is_refused_and_ours_is_not(tmp_path: Path) -> None:
    place = tmp_path / "config"
    place.write_text(json.dumps({"users": [{"name": "fleet", "user": {}}]}))
    with pytest.raises(OperatorError, match='has a user "fleet" that crinit did not make'):
        files.require_free(place, "fleet")
    files.put(place, "fleet", ENTRIES)
    files.require_free(place, "fleet")
