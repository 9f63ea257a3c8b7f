"""--runtime-config: what is served, by keys from weak to strong."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.options import OptionsError
from clusterregistry.apiserver.options.runtime_config import is_served, problems, served, unknown
from clusterregistry.apiserver.registry.native_resources import native_resources
from clusterregistry.cli.options.value_types import ASSIGNMENTS
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.main import main
from tests.product import load

GROUP = "clusterregistry.k8s.io"
CLUSTERS = cluster_resource("off")


def versions(text: str) -> list[str]:
    (resource,) = served([CLUSTERS], ASSIGNMENTS.parse(text))
    assert {each.name for each in resource.known_versions} == {"v1beta1", "v1alpha1"}
    assert resource.stored_as.name == "v1alpha1"
    return [each.name for each in resource.versions]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ["v1beta1", "v1alpha1"]),
        (f"{GROUP}/v1beta1=false", ["v1alpha1"]),
        (f"{GROUP}/v1alpha1=false", ["v1beta1"]),
        ("api/beta=false", ["v1alpha1"]),
        ("api/alpha=0", ["v1beta1"]),
        ("api/ga=false", ["v1beta1", "v1alpha1"]),
        (f"api/all=false,{GROUP}/v1beta1=true", ["v1beta1"]),
        (f"{GROUP}/v1beta1=true,api/all=false", ["v1beta1"]),
        ("api/all=false,api/beta=true", ["v1beta1"]),
        (f"{GROUP}/v1beta1=false,{GROUP}/v1beta1/clusters=true", ["v1beta1", "v1alpha1"]),
        (f"{GROUP}/v1beta1/clusters=false", ["v1alpha1"]),
        (f"{GROUP}/v1beta1/clustersets=false", ["v1beta1", "v1alpha1"]),
        ("api/alpha=false,api/beta=false", []),
        (f"{GROUP}/v1beta1=false,{GROUP}/v1beta1=true", ["v1beta1", "v1alpha1"]),
        ("example.com/v1=false", ["v1beta1", "v1alpha1"]),
    ],
)
def test_the_more_exact_key_counts(text: str, left: list[str]) -> None:
    assert versions(text) == left


def test_nothing_is_copied_where_nothing_is_switched_off() -> None:
    resources = native_resources(event_retention=None)
    assert served(resources, ()) is resources
    assert [each is other for each, other in zip(served(resources, (("api/beta", "false"),)), resources, strict=True)]


def test_the_core_group_has_an_empty_name() -> None:
    for key in ("v1=false", "/v1=false"):
        given = ASSIGNMENTS.parse(key)
        assert problems(given) == []
        assert not is_served(given, group="", version="v1", plural="namespaces")
        assert is_served(given, group="rbac.authorization.k8s.io", version="v1", plural="roles")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api/all=false", "--runtime-config: with api/all=false alone nothing would be served"),
        (f"{GROUP}/v1beta1=maybe", f'--runtime-config: {GROUP}/v1beta1: "maybe" is not a boolean'),
        ("a/b/c/d=true", '--runtime-config: "a/b/c/d" is not a key'),
        (f"{GROUP}/=true", "is not a key"),
        (f"{GROUP}/v1beta1/=true", "is not a key"),
        (f"{GROUP}/v1beta1/Clusters=true", "a resource is a plural in lower case"),
        ("api/all", '"api/all" is no assignment'),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(OptionsError, match=message.replace("(", r"\(")):
        load([f"--runtime-config={text}"], {})


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        load(["--runtime-config=a/b/c/d=true,api/beta=maybe", "--runtime-config=x/Y/Z=true", "--secure-port=0"], {})
    assert len(caught.value.problems) == 4


def test_groups_and_versions_must_be_known_and_resources_need_not() -> None:
    definitions = (CLUSTERS, *native_resources(event_retention=None))
    text = f"clusteregistry.k8s.io/v1=true,{GROUP}/v1=true,{GROUP}/v1beta1/clustersets=false,v1/pods=false"
    found = [str(each) for each in unknown(ASSIGNMENTS.parse(text), definitions)]
    assert found == [
        '--runtime-config: unknown API group "clusteregistry.k8s.io" (did you mean clusterregistry.k8s.io?)',
        '--runtime-config: "clusterregistry.k8s.io" has no version "v1" (it has v1alpha1, v1beta1)',
        '--runtime-config: unknown API group "v1"',
    ]


@pytest.mark.parametrize("command", ["standalone", "aggregated"])
def test_a_server_does_not_start_with_an_unknown_group(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    flags = ["--runtime-config=example.com/v1=true,rbac.authorization.k8s.io/v2=false", f"--data-dir={tmp_path}"]
    if command == "aggregated":
        flags.append("--kubeconfig=/dev/null")
    assert main([command, *flags], {}) == 2
    said = capsys.readouterr().err
    assert 'unknown API group "example.com"' in said
    assert '"rbac.authorization.k8s.io" has no version "v2"' in said
