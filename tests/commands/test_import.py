"""Importing kubeconfigs into a registry over TLS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from clusterregistry.cli import exit_status
from tests.commands.desks import Desk, context, kubeconfig
from tests.registry.agents.tokens import CLUSTERS
from tools import programs

TOKEN = "a-token-that-must-stay-where-it-is"
SECRETS = {"token": TOKEN, "password": "swordfish-4711", "client-key-data": "c3dvcmRmaXNoLTQ3MTE="}


def test_contexts_become_clusters(desk: Desk) -> None:
    file = desk.write(
        "config",
        kubeconfig(
            context(
                "Prod_EU",
                "https://eu.example.com:6443",
                user={"exec": {"apiVersion": "v1", "command": "aws", "args": ["eks", "get-token"]}},
                cluster={"certificate-authority-data": desk.authority},
            ),
            context("test", user=SECRETS),
            context("bare"),
        ),
    )
    outcome = desk.import_kubeconfig(file, flags=("--label=env=lab", "--label=team=a"))
    assert outcome.status == exit_status.OK, outcome.err
    assert outcome.actions() == {"prod-eu": "created", "test": "created", "bare": "created"}
    prod = desk.cluster("prod-eu")
    assert prod["metadata"]["labels"] == {"env": "lab", "team": "a"}
    assert prod["spec"] == {
        "kubernetesApiEndpoints": {
            "serverEndpoints": [{"serverAddress": "https://eu.example.com:6443"}],
            "caBundle": desk.authority,
        },
        "authInfo": {
            "providers": [{"name": "aws", "type": "exec", "config": {"command": "aws", "args": '["eks", "get-token"]'}}]
        },
    }
    assert desk.cluster("test")["spec"]["authInfo"]["providers"] == [
        {"name": "token", "type": "token", "config": {"kubeconfig": "config", "user": "u-test"}}
    ]
    assert "authInfo" not in desk.cluster("bare")["spec"]
    assert {each["manager"] for each in prod["metadata"]["managedFields"]} == {"clusterregistry-import"}


def test_no_credential_reaches_the_registry(desk: Desk) -> None:
    plugin = {
        "command": "login",
        "args": ["--client-secret", TOKEN],
        "env": [{"name": "PIN", "value": "swordfish-4711"}],
    }
    file = desk.write("config", kubeconfig(context("a", user=SECRETS), context("b", user={"exec": plugin})))
    outcome = desk.import_kubeconfig(file)
    assert outcome.status == exit_status.OK, outcome.err
    everything = json.dumps(desk.admin.get(CLUSTERS).expect(200)) + outcome.out + outcome.err
    assert not [secret for secret in SECRETS.values() if secret in everything]
    assert desk.cluster("b")["spec"]["authInfo"]["providers"][0]["config"] == {"command": "login"}
    assert len(outcome.items()["b"]["notes"]) == 2


def test_an_import_again_changes_nothing(desk: Desk) -> None:
    file = desk.write("config", kubeconfig(context("a", user=SECRETS), context("b")))
    desk.import_kubeconfig(file)
    before = desk.cluster("a")
    again = desk.import_kubeconfig(file)
    assert again.actions() == {"a": "unchanged", "b": "unchanged"}
    assert desk.cluster("a") == before


def test_what_changes_is_named_and_the_rest_stays(desk: Desk) -> None:
    desk.import_kubeconfig(desk.write("config", kubeconfig(context("a"), context("b"))))
    desk.admin.patch(f"{CLUSTERS}/a", {"metadata": {"labels": {"owner": "jane"}}}).expect(200)
    file = desk.write("config", kubeconfig(context("a", "https://new.example.com"), context("b")))
    planned = desk.import_kubeconfig(file, flags=("--dry-run",))
    assert planned.items()["a"]["fields"] == ["spec.kubernetesApiEndpoints.serverEndpoints"]
    assert planned.items()["a"]["notes"] == ["the server was https://a.example.com:6443 before"]
    assert "https://a.example.com" in json.dumps(desk.cluster("a")["spec"])
    done = desk.import_kubeconfig(file)
    assert done.actions() == planned.actions() == {"a": "changed", "b": "unchanged"}
    assert "https://new.example.com" in json.dumps(desk.cluster("a")["spec"])
    assert desk.cluster("a")["metadata"]["labels"] == {"owner": "jane"}


def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    outcome = desk.import_kubeconfig(desk.write("config", kubeconfig(context("a"))), flags=("--dry-run",))
    assert (outcome.status, outcome.actions()) == (exit_status.OK, {"a": "created"})
    assert desk.names() == []


def test_a_context_that_cannot_be_imported_does_not_stop_the_others(desk: Desk) -> None:
    document = kubeconfig(
        context("good"),
        context("no-url", "unix:///run/api.sock"),
        context("user", "https://jane:secret-word@example.com"),
        context("no-ca", cluster={"certificate-authority": "missing.crt"}),
        context("no-pem", cluster={"certificate-authority-data": "bm90aGluZw=="}),
        context("proxied", cluster={"proxy-url": "http://jane:secret-word@proxy:3128"}),
        context("___"),
        context("list", cluster={"certificate-authority-data": ["AAAA"]}),
        context("lines", cluster={"tls-server-name": "a\nb"}),
        context("\x1b[31mred", "nonsense"),
    )
    document["contexts"].append({"name": "dangling", "context": {"cluster": "nowhere"}})
    outcome = desk.import_kubeconfig(desk.write("config", document))
    assert outcome.status == exit_status.FOUND
    found = json.loads(outcome.out)["items"]
    assert {each["context"] for each in found if each["action"] == "refused"} == {
        "no-url", "user", "no-ca", "no-pem", "proxied", "___", "dangling", "list", "lines",
        "\x1b[31mred",
    }  # fmt: skip
    assert all(each["reason"] and each["remedy"] for each in found if each["action"] == "refused")
    assert "secret-word" not in outcome.out + outcome.err
    assert desk.names() == ["good"]


def test_the_owner_of_a_field_keeps_it_unless_it_is_taken_over(desk: Desk) -> None:
    endpoints = {"serverEndpoints": [{"serverAddress": "https://other.example.com"}]}
    manifest = {"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "a"}}
    desk.admin.post(CLUSTERS, {**manifest, "spec": {"kubernetesApiEndpoints": endpoints}}).expect(201)
    file = desk.write("config", kubeconfig(context("a"), context("b")))
    outcome = desk.import_kubeconfig(file)
    assert (outcome.status, outcome.actions()) == (exit_status.FOUND, {"a": "refused", "b": "created"})
    assert "--force-conflicts" in outcome.items()["a"]["remedy"]
    assert desk.import_kubeconfig(file, flags=("--force-conflicts",)).actions() == {"a": "changed", "b": "unchanged"}
    assert "https://a.example.com" in json.dumps(desk.cluster("a")["spec"])


def test_one_server_under_several_names_is_noted(desk: Desk) -> None:
    desk.import_kubeconfig(desk.write("first", kubeconfig(context("a", "https://x.example.com:443/"))))
    outcome = desk.import_kubeconfig(desk.write("second", kubeconfig(context("b", "https://X.example.com"))))
    assert outcome.items()["b"]["notes"] == ["the same server is registered under another name: a"]


def test_contexts_of_one_name(desk: Desk) -> None:
    first = desk.write("first", kubeconfig(context("a"), context("Same", "https://one.example.com")))
    second = desk.write("second", kubeconfig(context("a"), context("same", "https://two.example.com")))
    outcome = desk.import_kubeconfig(first, second)
    assert outcome.status == exit_status.FOUND
    assert outcome.items()["a"]["notes"] == [f'the same as context "a" of {second}']
    assert outcome.actions() == {"a": "created", "same": "refused"}
    assert desk.names() == ["a"]
    again = desk.import_kubeconfig(second, flags=("--context=same", "--name-prefix=Two-"))
    assert again.actions() == {"two-same": "created"}


def test_a_folder(desk: Desk) -> None:
    desk.write("configs/a.yaml", kubeconfig(context("a")))
    desk.write("configs/b", kubeconfig(context("b")))
    desk.write("configs/.hidden", kubeconfig(context("c")))
    desk.write("configs/below/c", kubeconfig(context("d")))
    (desk.directory / "configs" / "README").write_text("token: {swordfish")
    outcome = desk.import_kubeconfig(desk.directory / "configs")
    assert outcome.status == exit_status.OK
    assert outcome.actions() == {"a": "created", "b": "created"}
    assert "README" in outcome.err
    assert "swordfish" not in outcome.err


def test_a_file_that_is_no_kubeconfig_is_refused(desk: Desk) -> None:
    (desk.directory / "broken").write_text("token: {swordfish")
    outcome = desk.import_kubeconfig(desk.directory / "broken", desk.write("good", kubeconfig(context("a"))))
    assert outcome.status == exit_status.FOUND
    assert "swordfish" not in outcome.out + outcome.err
    assert desk.names() == ["a"]


@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        ((), exit_status.USAGE, "--from-kubeconfig: is required"),
        (("--from-kubeconfig={file}", "--label=a b=c"), exit_status.USAGE, "--label: a b=c"),
        (("--from-kubeconfig={file}", "--context=b"), exit_status.STARTUP, "there is no context b"),
        (("--from-kubeconfig={file}.not",), exit_status.STARTUP, "there is no file"),
        (("--from-kubeconfig={file}", "--kubeconfig={file}.not"), exit_status.STARTUP, "there is no file"),
        (("--from-kubeconfig={file}", "--kubeconfig={file}", "--registry-context=a"), exit_status.STARTUP, "registry"),
    ],
)
def test_wrong_input_writes_nothing(desk: Desk, flags: tuple[str, ...], status: int, said: str) -> None:
    file = desk.write("config", kubeconfig(context("a", "https://127.0.0.1:1")))
    outcome = desk.run("import", *(flag.format(file=file) for flag in flags))
    assert outcome.status == status
    assert said in outcome.err
    assert desk.names() == []


def test_the_table_for_people(desk: Desk) -> None:
    file = desk.write("config", kubeconfig(context("a"), context("b", "nonsense://b")))
    outcome = desk.run("import", "--from-kubeconfig", str(file))
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0] == ["NAME", "FROM", "RESULT", "DETAILS"]
    assert lines[1] == ["a", "a", "created"]
    assert lines[2][:3] == ["b", "b", "refused"]
    assert "b: what to do: correct the server" in outcome.err
    assert outcome.err.endswith("1 created, 1 refused.\n")


def test_a_name_does_not_control_the_terminal(desk: Desk) -> None:
    file = desk.write("config", kubeconfig(context("\x1b[31mred\n", "https://red.example.com")))
    outcome = desk.run("import", "--from-kubeconfig", str(file))
    assert outcome.status == exit_status.OK, outcome.err
    assert "\x1b" not in outcome.out
    assert desk.names() == ["31mred"]


def test_kubectl_reads_what_was_imported(desk: Desk) -> None:
    document = kubeconfig(
        context("a", cluster={"proxy-url": "http://proxy.example.com:3128", "tls-server-name": "api.example.com"})
    )
    outcome = desk.import_kubeconfig(desk.write("config", document))
    assert "the controller does not use it" in outcome.items()["a"]["notes"][0]
    printed = kubectl(desk, "get", "cluster", "a", "-o", "jsonpath={.metadata.annotations}")
    assert json.loads(printed) == {
        "clusterregistry.k8s.io/proxy-url": "http://proxy.example.com:3128",
        "clusterregistry.k8s.io/tls-server-name": "api.example.com",
    }


def kubectl(desk: Desk, *words: str) -> str:
    program: Path = programs.fetch(programs.find("kubectl-1.36"))
    done = subprocess.run([program, *words], env=desk.environ, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_many_clusters_at_once(desk: Desk) -> None:
    names = [f"fleet-{number:03}" for number in range(120)]
    file = desk.write("config", kubeconfig(*(context(name) for name in names)))
    assert set(desk.import_kubeconfig(file).actions().values()) == {"created"}
    assert desk.names() == names
