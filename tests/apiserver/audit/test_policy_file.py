"""Policy files: what they mean, and that every mistake in them is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.audit.policy import Recording, Resources, Rule
from clusterregistry.apiserver.audit.policy_file import PolicyError, load
from clusterregistry.apiserver.audit.settings import Level

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def written(directory: Path, text: str) -> Path:
    path = directory / "policy.yaml"
    path.write_text(text)
    return path


def mistakes(directory: Path, text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(written(directory, text))
    assert str(caught.value).startswith(f"{directory}/policy.yaml: ")
    return list(caught.value.mistakes)


def test_a_policy_is_read_whole(tmp_path: Path) -> None:
    text = f"""{HEAD}
metadata: {{name: any}}
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [system:probe]
  verbs: [get]
  nonResourceURLs: ["/healthz*", "*"]
- level: Request
  userGroups: [editors]
  namespaces: [""]
  resources:
  - group: clusterregistry.k8s.io
    resources: [clusters, "*/status"]
    resourceNames: [a]
  - resources: [secrets]
  omitStages: [Panic]
  omitManagedFields: false
- level: Metadata
"""
    silent, some, rest = load(written(tmp_path, text)).rules
    assert silent == Rule(
        recording=Recording(level=Level.None_, omits_managed_fields=True),
        users=frozenset({"system:probe"}),
        verbs=frozenset({"get"}),
        paths=("/healthz*", "*"),
    )
    assert some == Rule(
        recording=Recording(level=Level.Request, omitted_stages=frozenset({"RequestReceived", "Panic"})),
        groups=frozenset({"editors"}),
        namespaces=frozenset({""}),
        resources=(
            Resources(
                group="clusterregistry.k8s.io",
                resources=frozenset({"clusters", "*/status"}),
                names=frozenset({"a"}),
            ),
            Resources(group="", resources=frozenset({"secrets"})),
        ),
    )
    assert rest.recording == Recording(
        level=Level.Metadata, omitted_stages=frozenset({"RequestReceived"}), omits_managed_fields=True
    )


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = """
apiVersion: audit.k8s.io/v1beta1
kind: Policies
omitStages: [Whenever]
omitManagedFields: often
rule: []
rules:
- level: Everything
  userGroup: [a]
  users: jane
- 7
- level: Metadata
  verbs: [1]
  namespaces: [here]
  nonResourceURLs: [version, "/a*b"]
- level: Metadata
  resources: clusters
- level: Metadata
  resources: [clusters, {group: g/v1, resource: [a]}, {group: [], resources: {}, resourceNames: [a]}]
"""
    found = mistakes(tmp_path, text)
    assert [line.partition(":")[0] for line in found] == [
        "apiVersion",
        "kind",
        "rule",
        "omitManagedFields",
        "omitStages[0]",
        "rules[0].userGroup",
        "rules[0].level",
        "rules[0].users",
        "rules[1]",
        "rules[2].verbs",
        "rules[2].nonResourceURLs",
        "rules[2].nonResourceURLs[0]",
        "rules[2].nonResourceURLs[1]",
        "rules[3].resources",
        "rules[4].resources[0]",
        "rules[4].resources[1].resource",
        "rules[4].resources[1].group",
        "rules[4].resources[2].resources",
        "rules[4].resources[2].resourceNames",
    ]


@pytest.mark.parametrize("rules", ["", "rules: []", "rules: {}", "rules: null"])
def test_a_policy_without_rules_is_refused(tmp_path: Path, rules: str) -> None:
    assert mistakes(tmp_path, HEAD + rules) == ["rules: must be a list of at least one rule"]


@pytest.mark.parametrize("text", ["", "[]", "7"])
def test_what_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    (only,) = mistakes(tmp_path, text)
    assert only.startswith("must be a map")


def test_what_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    (only,) = mistakes(tmp_path, HEAD + "rules: [\n")
    assert "line" in only


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (only,) = mistakes(tmp_path, HEAD + "rules:\n- level: None\n  level: Request\n")
    assert "level" in only


def test_a_file_that_is_gone_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file"):
        load(tmp_path / "absent.yaml")
