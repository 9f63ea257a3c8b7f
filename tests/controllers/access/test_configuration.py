"""``access.yaml``: what it may say, and how its mistakes are named."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.controllers.access.configuration import (
    MAX_BYTES,
    MAX_RULES,
    AccessFileError,
    CommandUse,
    EnvUse,
    FileUse,
    InClusterUse,
    NoneUse,
    Rule,
    SecretUse,
    TokenRequestUse,
    Use,
    load,
    parse,
)
from clusterregistry.controllers.access.subject import subject_of
from tests.controllers.access.samples import cluster, document, rule

FILE = Path("/etc/access.yaml")
RESOLVERS = ("file", "env", "exec", "secret", "tokenRequest", "inCluster", "none")

CONTRACT = """\
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: AccessConfiguration
rules:                                    # the first rule that matches a cluster counts
- match: {provider: corp-files}           # the name of an authInfo provider type
  use: {file: {directory: /etc/clusters}} # DIRECTORY/KEY.token or KEY.kubeconfig
- match: {selector: "env=dev"}
  use: {env: {variable: MEMBER_TOKEN}}
- match: {}
  use: {exec: {command: get-token, args: ["--cluster", "{name}"], timeout: 10s}}
"""


def parsed(*rules: Any) -> tuple[Rule, ...]:
    return parse(yaml.safe_dump(document(*rules)).encode(), FILE)


def used(use: Any) -> Use:
    (only,) = parsed(rule(use, provider="corp"))
    return only.use


def mistakes(text: str) -> list[str]:
    with pytest.raises(AccessFileError) as caught:
        parse(text.encode(), FILE)
    return [str(each) for each in caught.value.problems]


def refused(*rules: Any) -> str:
    return "\n".join(mistakes(yaml.safe_dump(document(*rules))))


def test_the_example_of_the_contract() -> None:
    files, variable, command = parse(CONTRACT.encode(), FILE)
    assert files.use == FileUse(directory=Path("/etc/clusters"))
    assert variable.use == EnvUse(variable="MEMBER_TOKEN")
    assert command.use == CommandUse(command="get-token", args=("--cluster", "{name}"), timeout=10.0)
    assert [each.source for each in (files, variable, command)] == ["rule 1 (file)", "rule 2 (env)", "rule 3 (exec)"]


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ({"file": {"directory": "keys"}}, FileUse(directory=Path("/etc/keys"))),
        ({"none": {}}, NoneUse()),
        ({"inCluster": {}}, InClusterUse()),
        ({"exec": {"command": "bin/get"}}, CommandUse(command="/etc/bin/get")),
        (
            {"exec": {"command": "get", "env": [{"name": "A", "value": "b"}]}},
            CommandUse(command="get", env=(("A", "b"),)),
        ),
        ({"exec": {"command": "get", "args": ['{"a": 1}']}}, CommandUse(command="get", args=('{"a": 1}',))),
        ({"secret": {"namespace": "ns"}}, SecretUse(namespace="ns")),
        (
            {"secret": {"namespace": "ns", "name": "all", "key": "{name}.token"}},
            SecretUse(namespace="ns", name="all", key="{name}.token"),
        ),
        (
            {"tokenRequest": {"namespace": "ns", "serviceAccount": "{name}", "audience": "https://{name}"}},
            TokenRequestUse(namespace="ns", service_account="{name}", audience="https://{name}"),
        ),
    ],
)
def test_each_resolver(use: Any, found: Use) -> None:
    assert used(use) == found


def test_providers_are_matched_by_their_type_in_both_versions() -> None:
    (only,) = parsed(rule({"none": {}}, provider="corp"))
    old = {"metadata": {"name": "a"}, "spec": {"authInfo": {"providers": [{"name": "x", "type": {"name": "corp"}}]}}}
    assert only.matches(subject_of(cluster(config={})))
    assert only.matches(subject_of(old))
    assert not only.matches(subject_of(cluster()))


@pytest.mark.parametrize(
    "selector",
    [
        "env in (dev,test),!old",
        {"matchLabels": {"env": "dev"}},
        {"matchExpressions": [{"key": "env", "operator": "Exists"}]},
    ],
)
def test_selectors_are_texts_or_objects(selector: Any) -> None:
    (only,) = parsed(rule({"none": {}}, selector=selector))
    assert only.matches(subject_of(cluster(labels={"env": "dev"})))
    assert not only.matches(subject_of(cluster(labels={"other": "dev"})))


def test_every_mistake_is_named_with_its_line_and_a_hint() -> None:
    text = """\
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: AccessConfig
rules:
- match: {provyder: corp-files}
  use: {file: {dir: keys}}
- mach: {}
  use: {env: {variable: "1"}, none: {}}
- match: {selector: "env in"}
  use:
    exec:
      command: "get {name}"
      args: ["{nme}", 3]
      timeout: 5h
"""
    assert mistakes(text) == [
        "/etc/access.yaml:2: kind: must be AccessConfiguration",
        "/etc/access.yaml:4: rules[0].match.provyder: is not known (did you mean provider?)",
        "/etc/access.yaml:5: rules[0].use.file.dir: is not known (did you mean directory?)",
        "/etc/access.yaml:5: rules[0].use.file.directory: is required",
        "/etc/access.yaml:6: rules[1].mach: is not known (did you mean match?)",
        "/etc/access.yaml:6: rules[1].match: must be a mapping with provider or selector (write {} for every cluster)",
        f"/etc/access.yaml:7: rules[1].use: has 2 keys, must have exactly one of {', '.join(RESOLVERS)}",
        "/etc/access.yaml:7: rules[1].use.env.variable: must be the name of an environment variable",
        "/etc/access.yaml:8: rules[2].match.selector: unable to parse requirement: found '' expected: '('",
        "/etc/access.yaml:11: rules[2].use.exec.command: has no placeholders: only args do",
        "/etc/access.yaml:12: rules[2].use.exec.args[0]: {nme} is no placeholder (did you mean {name}?)",
        "/etc/access.yaml:12: rules[2].use.exec.args[1]: must be a text of at most 4096 characters (put it in quotes)",
        "/etc/access.yaml:13: rules[2].use.exec.timeout: must be a duration up to 60s, such as 10s",
    ]


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ({}, "must be a mapping with one of"),
        ({"fil": {}}, "did you mean file?"),
        ({"none": {"a": 1}}, "it has no keys"),
        ({"env": None}, "must be a mapping"),
        ({"env": {"variable": "A=B"}}, "must be the name of an environment variable"),
        ({"exec": {"command": "get", "env": {"A": "b"}}}, "{name, value}"),
        ({"exec": {"command": "get", "args": "x"}}, "must be a list"),
        ({"exec": {"command": "get", "timeout": 0}}, "such as 10s"),
        ({"exec": {"command": "get", "apiVersion": "v9"}}, "client.authentication.k8s.io/v1"),
        ({"secret": {"namespace": "{name}"}}, "without placeholders"),
        ({"secret": {"namespace": "ns", "key": "a/b"}}, "must be a key of a Secret"),
        ({"tokenRequest": {"namespace": "ns", "serviceAccount": "a"}}, "audience: is required"),
        (
            {"tokenRequest": {"namespace": "ns", "serviceAccount": "a", "audience": "b", "expirationSeconds": 5}},
            "between 600 and 86400",
        ),
    ],
)
def test_what_a_resolver_refuses(use: Any, said: str) -> None:
    assert said in refused(rule(use, provider="corp"))


def test_the_token_of_this_pod_is_not_for_every_cluster() -> None:
    assert "every cluster" in refused(rule({"inCluster": {}}))
    parsed(rule({"inCluster": {}}, selector="host=true"))


@pytest.mark.parametrize("selector", ["", " ", {}, {"matchLabels": {}}, {"matchLabels": {"a": 1}}, 5, {"match": 1}])
def test_a_selector_that_selects_nothing_in_particular_is_a_mistake(selector: Any) -> None:
    assert "rules[0].match.selector" in refused(rule({"none": {}}, selector=selector))


def test_the_file_is_bounded() -> None:
    assert "the limit is 1000" in refused(*[rule({"none": {}})] * (MAX_RULES + 1))
    assert len(parsed(*[rule({"none": {}})] * MAX_RULES)) == MAX_RULES
    assert "larger than" in "\n".join(mistakes("#" * (MAX_BYTES + 1)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: [",
        "{" * 100_000,
        "- " * 200_000,
        "\t",
        "\0",
        "a: &a [*a]",
        "&a [" + "x," * 1000 + "]",
        "rules: 1\nrules: 2\n",
        "".join(f"key{number}: 1\n" for number in range(50_000)),
        "a: &a [1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n",
    ],
)
def test_hostile_files_are_mistakes(text: str) -> None:
    assert mistakes(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["match", "use", "provider", "selector", "file", "env", "exec", "directory", "command", "args", "secret", "none"]
NEAR = st.recursive(VALUES, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=3), max_leaves=12)


@settings(deadline=None)
@given(st.lists(NEAR, max_size=3))
def test_whatever_a_rule_is_it_is_read_or_refused(rules: list[Any]) -> None:
    with contextlib.suppress(AccessFileError):
        assert len(parsed(*rules)) == len(rules)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(AccessFileError, match="cannot be read"):
            load(path)
