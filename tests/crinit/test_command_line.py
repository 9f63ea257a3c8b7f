"""The command line of crinit: v0.0.3's flags, and all mistakes at once."""

from __future__ import annotations

import pytest
import yaml

from clusterregistry.crinit import flags
from clusterregistry.crinit.main import main
from clusterregistry.crinit.settings import split_arguments

V003 = (
    "kubeconfig host-cluster-context cluster-registry-namespace image etcd-image etcd-pv-capacity "
    "etcd-pv-storage-class etcd-persistent-storage dry-run apiserver-arg-overrides api-server-service-type "
    "api-server-advertise-address api-server-port apiserver-enable-token-auth"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments, {"HOME": "/nowhere"})
    said = capsys.readouterr()
    return status, said.out, said.err


def test_every_flag_of_v003_is_there() -> None:
    assert set(V003.split()) <= flags.BY_NAME.keys()


def test_help_names_every_flag_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "standalone", "init", "--help")
    assert status == 0
    for flag in flags.FLAGS:
        assert (f"--{flag.name}=" in out) == ("init" in flag.commands)


def test_all_mistakes_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(
        capsys, "standalone", "init", "Fleet", "--replicas=0", "--api-server-service-type=Ingress",
        "--etcd-pv-capacity=big", "--timeout=soon", "--api-server-port=70000", "--etcd-servers=etcd",
    )  # fmt: skip
    assert status == 2
    for part in (
        "the name",
        "--replicas",
        "--api-server-service-type",
        "--etcd-pv-capacity",
        "--api-server-port",
        "--etcd-servers",
        "--timeout",
    ):
        assert part in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--dry-run"], "standalone or aggregated?"),
        (["both", "init", "fleet"], '"both" is neither standalone nor aggregated'),
        (["standalone", "create", "fleet"], "which command: init, delete, status, upgrade?"),
        (["standalone", "init"], "the name of the registry is missing"),
        (["standalone", "init", "fleet", "more"], 'unexpected argument "more"'),
        (["standalone", "init", "fleet", "--imagge=x"], "unknown flag --imagge; did you mean --image?"),
        (["standalone", "init", "fleet", "--image"], "--image needs a value: --image=IMAGE"),
        (["standalone", "upgrade", "fleet"], "upgrade needs --image=IMAGE"),
        (["standalone", "delete", "fleet", "--image=x"], "--image is not for delete, only for init, upgrade"),
        (["standalone", "init", "fleet", "-o", "json", "--dry-run"], '--output="json": must be yaml'),
        (["standalone", "init", "fleet", "-o", "yaml"], "--output needs --dry-run"),
        (["standalone", "init", "fleet", "--dry-run=maybe"], "must be true or false"),
        (["standalone", "init", "fleet", "--dry-run", "--api-server-port=30000"], "needs --api-server-service-type="),
        (["aggregated", "init", "fleet", "--dry-run", "--apiserver-enable-token-auth"], "the users of its host"),
        (["standalone", "init", "fleet", "--dry-run", "--etcd-cafile=/nowhere/ca"], "No such file"),
        (["standalone", "init", "fleet", "--dry-run", "--apiserver-arg-overrides=v=1"], "v=1 is no argument"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


def test_nothing_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys)
    assert status == 2
    assert "crinit standalone init my-registry --host-cluster-context=my-cluster" in err


def test_a_dry_run_prints_manifests_for_gitops(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "aggregated", "init", "fleet", "--dry-run", "-o", "yaml", "--replicas", "2")
    assert status == 0
    kinds = [document["kind"] for document in yaml.safe_load_all(out)]
    assert kinds[0] == "Namespace"
    assert {"Deployment", "StatefulSet", "APIService", "PodDisruptionBudget"} <= set(kinds)
    assert "private keys" in err


def test_a_dry_run_without_output_lists_what_would_be_applied(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "init", "standalone", "fleet", "--dry-run")
    assert status == 0
    assert "would apply Deployment clusterregistry/fleet" in out


def test_a_comma_parts_arguments_only_in_front_of_dashes() -> None:
    assert split_arguments("--a=1,2,--b,--c=x,y") == ("--a=1,2", "--b", "--c=x,y")
    assert split_arguments("") == ()


def test_only_what_describes_the_registry_is_remembered() -> None:
    assert flags.remembered({"image": "x", "dry-run": "true", "kubeconfig": "y"}) == {"image": "x"}
