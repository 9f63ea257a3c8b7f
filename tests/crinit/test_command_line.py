"""The command line of crinit: v0.0.3's flags, and all mistakes at once."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clusterregistry import __version__
from clusterregistry.cli.options.sources import read_flags
from clusterregistry.crinit import options, settings_from_flags
from clusterregistry.crinit.main import main
from clusterregistry.crinit.settings import Mode, split_arguments
from clusterregistry.registry.main import main as server_main
from tools.ports import free_port

V003 = (
    "kubeconfig host-cluster-context cluster-registry-namespace image etcd-image etcd-pv-capacity "
    "etcd-pv-storage-class etcd-persistent-storage dry-run apiserver-arg-overrides api-server-service-type "
    "api-server-advertise-address api-server-port apiserver-enable-token-auth"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments, {"HOME": "/nowhere"})
    said = capsys.readouterr()
    return status, said.out, said.err


def test_every_flag_of_v003_exists() -> None:
    assert set(V003.split()) <= options.OPTIONS.by_flag.keys()


def listed(out: str) -> set[str]:
    return set(re.findall(r"^  (?:-o, )?--([a-z-]+)\[?=", out, re.MULTILINE))


def taken_by(command: str) -> set[str]:
    return {each.flag for each in options.options_for(command)}


@pytest.mark.parametrize("command", options.COMMANDS)
def test_help_names_every_flag_of_a_command_on_demand(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "standalone", command, "--help=all")
    assert status == 0
    assert listed(out) == taken_by(command)
    assert "--help=all" not in out


def test_help_is_short_at_first(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "aggregated", "init", "--help")
    assert status == 0
    assert {"image", "host-cluster-context", "dry-run"} <= listed(out)
    assert len(listed(out)) <= 10
    assert len(out.splitlines()) <= 50
    assert out.endswith(f"All {len(taken_by('init'))} flags: crinit aggregated init --help=all\n")
    for command in ("status", "upgrade", "delete"):
        out = run(capsys, "standalone", command, "--help")[1]
        assert listed(out) == taken_by(command)


def test_help_shows_commands_that_crinit_knows(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [run(capsys, mode, command, "--help")[1] for mode in Mode for command in options.COMMANDS]
    lines = [line.strip() for text in (run(capsys, "--help")[1], *texts) for line in text.splitlines()]
    examples = [shlex.split(line)[1:] for line in lines if line.startswith("crinit ") and " my-registry" in line]
    assert len(examples) > 10
    for mode, command, name, *rest in examples:
        reading = read_flags(options.OPTIONS, rest)
        given = {each.flag: each.text for each in reading.given}
        assert reading.problems == []
        assert options.misplaced(given, command) == []
        settings_from_flags.settings(Mode(mode), name, given)
    assert "system:masters" not in "".join(texts)


def test_a_step_that_runs_is_shown_at_a_terminal_and_its_end_takes_its_place(tmp_path: Path) -> None:
    """A real terminal; nothing listens where the kubeconfig leads."""
    kubeconfig = tmp_path / "config"
    entries = {"clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}]}
    contexts = [{"name": "c", "context": {"cluster": "c"}}]
    kubeconfig.write_text(yaml.safe_dump({**entries, "contexts": contexts, "current-context": "c"}))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "clusterregistry.crinit", "standalone", "init", "fleet", "--timeout=0s"]
    try:
        done = subprocess.run(
            [*command, f"--kubeconfig={kubeconfig}"], stdout=theirs, stderr=subprocess.PIPE, check=False
        )
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 3
    assert re.fullmatch(r"Host cluster (\S+) \.\.\.\rHost cluster \1: failed \(\S+s\)\s*", shown), shown


@pytest.mark.parametrize("short", [["--short"], ["--short=true"]])
def test_the_version_is_printed_as_by_the_server(capsys: pytest.CaptureFixture[str], short: list[str]) -> None:
    for spelling in ("version", "--version"):
        assert run(capsys, spelling, *short) == (0, f"v{__version__}\n", "")
        status, said, _ = run(capsys, spelling)
        assert status == 0
        assert server_main(["version"], {}) == 0
        assert said == capsys.readouterr().out.replace("clusterregistry", "crinit")


def test_version_has_help_and_names_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert "crinit version [--short]" in run(capsys, "version", "--help")[1]
    status, _, err = run(capsys, "version", "--long")
    assert (status, '"--long"' in err) == (2, True)


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
        (["standalone", "init", "fleet", "--imagge=x"], "unknown option --imagge (did you mean --image?)"),
        (["standalone", "init", "fleet", "--context", "x"], "--context (did you mean --host-cluster-context?)"),
        (["standalone", "init", "fleet", "-n", "x"], "unknown option -n (did you mean --cluster-registry-namespace?)"),
        (["standalone", "init", "fleet", "--image"], "--image: needs a value (--image=IMAGE)"),
        (["standalone", "upgrade", "fleet"], "upgrade needs --image=IMAGE"),
        (["standalone", "delete", "fleet", "--image=x"], "--image is not for delete, only for init, upgrade"),
        (["standalone", "init", "fleet", "-o", "json", "--dry-run"], '-o: "json" is not one of yaml'),
        (["standalone", "init", "fleet", "-o", "yaml"], "--output needs --dry-run"),
        (["standalone", "init", "fleet", "--dry-run=maybe"], "write true or false"),
        (["standalone", "init", "fleet", "--dry-run", "--api-server-port=30000"], "needs --api-server-service-type="),
        (["aggregated", "init", "fleet", "--dry-run", "--apiserver-enable-token-auth"], "the users of its host"),
        (["standalone", "init", "fleet", "--dry-run", "--etcd-cafile=/nowhere/ca"], "No such file"),
        (["standalone", "init", "fleet", "--dry-run", "--apiserver-arg-overrides=v=1"], "v=1 is no argument"),
        (["standalone", "init", "fleet", "--cluster-registry-namespace=A"], '"A" is not a namespace'),
        (["standalone", "init", "fleet", "--image="], '"" is not an image such as'),
        (["standalone", "init", "fleet", "--api-server-advertise-address=a:1"], "is not an IP address or a host name"),
        (["standalone", "init", "fleet", "--dry-run", "--api-server-advertise-address=1.2.3.4"], "LoadBalancer has"),
        (["standalone", "init", "fleet", "--dry-run", f"--etcd-cafile={__file__}"], "need --etcd-servers"),
        (["standalone", "init", "fleet", "--dry-run", "--etcd-servers=http://e:1", f"--etcd-certfile={__file__}"],
         "--etcd-certfile and --etcd-keyfile must be given together"),
        (["standalone", "init", "fleet", "--dry-run", "--controller-replicas=1"], "needs --with-controller"),
        (["standalone", "init", "fleet", "--dry-run", f"--access-config={__file__}"], "needs --with-controller"),
        (["standalone", "init", "fleet", "--with-controller", "--access-config=/nowhere/access"], "No such file"),
        (["standalone", "init", "fleet", "--with-controller", "--controller-replicas=0"], "number from 1 to 100"),
    ],
)  # fmt: skip
def test_every_mistake_is_reported(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5m", 90), ("100ms", 0.1), ("1h30m", 5400), ("90", 90), ("90s", 90), ("0s", 0)]
)
def test_durations_are_those_of_the_server(text: str, seconds: float) -> None:
    resolved = options.resolve_given({"timeout": text})
    assert resolved.problems == ()
    assert resolved.options.run.timeout == seconds


@pytest.mark.parametrize("flag", ["--context", "--nonsense", "-n"])
def test_a_wrong_flag_and_its_value_are_one_mistake(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1 problem with the command line:" in run(capsys, "standalone", "init", "fleet", flag, "x")[2]


def test_a_wrong_flag_takes_no_word_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "--nonsense", "standalone", "--more", "init", "--most", "fleet")
    assert "3 problems with the command line:" in err


def test_an_empty_command_line_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert options.remembered({"image": "x", "dry-run": "true", "kubeconfig": "y"}) == {"image": "x"}
