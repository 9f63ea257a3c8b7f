"""Where credentials come from: files, kubeconfigs, variables, commands, the service account of a pod."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client.exec_credential import MAX_OUTPUT
from clusterregistry.controllers.access.exec_runner import ExecLimits
from clusterregistry.controllers.observer.observation import Reason
from tests.client.fake_clock import until
from tests.controllers.access.samples import (
    PATIENCE,
    FakeClocks,
    Plugin,
    access_rules,
    cluster,
    failure_of,
    jwt_until,
    kubeconfig,
    rule,
    token_of,
)
from tests.remote_servers import Authority

SECRET = "s3cr3t-of-the-cluster"
FILES = {"file": {"directory": "keys"}}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    return tmp_path / "keys"


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    made = Plugin(tmp_path / "plugin")
    made.prints(token=SECRET)
    return made


# Files


async def test_the_key_of_the_matched_provider_names_the_file_else_the_cluster(tmp_path: Path, keys: Path) -> None:
    access = access_rules(tmp_path, rule(FILES, provider="corp"))
    (keys / "chosen.token").write_text("by-key\n")
    (keys / "one.token").write_text("by-name")
    assert await token_of(access, cluster(config={"key": "chosen"})) == "by-key"
    assert await token_of(access, cluster(config={})) == "by-name"


async def test_without_a_provider_in_the_rule_a_cluster_cannot_choose_another_file(tmp_path: Path, keys: Path) -> None:
    access = access_rules(tmp_path, rule(FILES))
    (keys / "production.token").write_text(SECRET)
    (keys / "one.token").write_text("its-own")
    assert await token_of(access, cluster(config={"key": "production"})) == "its-own"


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("key", ["../one", "/etc/passwd", "..", ".one", "a/b", "a\0", "x" * 300])
async def test_a_key_is_no_path(tmp_path: Path, key: str) -> None:
    (tmp_path / "one.token").write_text(SECRET)
    access = access_rules(tmp_path, rule(FILES, provider="corp"))
    failure = await failure_of(access, cluster(config={"key": key}))
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert "plain file name" in failure.message


async def test_files_are_rotated_and_removed(tmp_path: Path, keys: Path) -> None:
    access = access_rules(tmp_path, rule(FILES))
    assert "neither one.token nor one.kubeconfig" in (await failure_of(access, cluster())).message
    (keys / "one.token").write_text("first")
    assert await token_of(access, cluster()) == "first"
    (keys / "one.token").write_text("second")
    assert await token_of(access, cluster()) == "second"
    (keys / "one.token").write_text("")  # half written
    assert await token_of(access, cluster()) == "second"
    (keys / "one.token").unlink()
    assert (await failure_of(access, cluster())).reason is Reason.CREDENTIAL_MISSING
    (keys / "one.kubeconfig").write_text(kubeconfig({"token": "third"}))
    assert await token_of(access, cluster()) == "third"
    (keys / "one.token").write_text("wins")
    assert await token_of(access, cluster()) == "wins"


async def test_an_expired_file(tmp_path: Path, keys: Path) -> None:
    clocks = FakeClocks()
    access = access_rules(tmp_path, rule(FILES), clocks=clocks)
    (keys / "one.token").write_text(jwt_until(clocks.now + 60))
    assert (await access.credential(cluster())).info.expires_at == int(clocks.now + 60)
    clocks.pass_seconds(61)
    failure = await failure_of(access, cluster())
    assert failure.reason is Reason.CREDENTIAL_EXPIRED
    assert "rule 1 (file): the credential ended at 20" in failure.message
    (keys / "one.token").write_text(jwt_until(clocks.now + 60, "renewed"))
    await token_of(access, cluster())


@pytest.mark.parametrize("content", [b"two words", b"\xff\xfe", b"x" * 70_000, b"line\nline", b"\n"])
async def test_what_is_no_token_is_not_shown(
    tmp_path: Path, keys: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(5)
    (keys / "one.token").write_bytes(content)
    failure = await failure_of(access_rules(tmp_path, rule(FILES)), cluster())
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert content.decode("latin1")[:30].strip() not in f"{failure.message} {caplog.text}" or not content.strip()


# Kubeconfigs


async def test_the_server_of_a_kubeconfig_is_ignored(tmp_path: Path, keys: Path) -> None:
    (keys / "one.kubeconfig").write_text(kubeconfig({"token": SECRET}, server="not even a URL", others=("other",)))
    assert await token_of(access_rules(tmp_path, rule(FILES)), cluster()) == SECRET


async def test_a_kubeconfig_with_a_client_certificate(tmp_path: Path, keys: Path) -> None:
    certificate, key = (file.read_bytes() for file in Authority(tmp_path).client("me"))
    for name, content in (("me.crt", certificate), ("me.key", key)):
        (keys / name).write_bytes(content)
    access = access_rules(tmp_path, rule(FILES))
    inline = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    for user in (inline, {"client-certificate": "me.crt", "client-key": "me.key"}):
        (keys / "one.kubeconfig").write_text(kubeconfig(user))
        found = await access.credential(cluster())
        assert (found.credential.certificate, found.credential.key) == (certificate, key)
        assert found.info.expires_at is not None
        assert "PRIVATE" not in repr(found)


async def test_files_that_a_kubeconfig_names_lie_beside_it_and_are_rotated(tmp_path: Path, keys: Path) -> None:
    (tmp_path / "outside").write_text(SECRET)
    (keys / "inside").write_text("first")
    access = access_rules(tmp_path, rule(FILES))
    for outside in ("../outside", str(tmp_path / "outside")):
        (keys / "one.kubeconfig").write_text(kubeconfig({"tokenFile": outside}))
        assert "must lie beside it" in (await failure_of(access, cluster())).message
    (keys / "one.kubeconfig").write_text(kubeconfig({"tokenFile": "inside"}))
    assert await token_of(access, cluster()) == "first"
    (keys / "inside").write_text("another")
    assert await token_of(access, cluster()) == "another"


async def test_the_exec_entry_of_a_kubeconfig_runs(tmp_path: Path, keys: Path, plugin: Plugin) -> None:
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin.program),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    (keys / "one.kubeconfig").write_text(kubeconfig({"exec": entry}, server="https://elsewhere.invalid"))
    endpoints = {"serverEndpoints": [{"serverAddress": "127.0.0.9:6443"}]}
    asked = cluster(kubernetesApiEndpoints=endpoints)
    access = access_rules(tmp_path, rule(FILES))
    assert [await token_of(access, asked) for _ in range(3)] == [SECRET] * 3
    assert plugin.count == 1
    assert "https://127.0.0.9:6443" in plugin.environment.read_text()
    assert "elsewhere" not in plugin.environment.read_text()


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({}, "has no token"),
        ({"token": SECRET, "as": "admin"}, "impersonates"),
        ({"auth-provider": {"name": "gcp"}}, "removed from Kubernetes"),
        ({"token": 5}, "must be text"),
        ({"exec": {"command": SECRET}}, "exec.apiVersion"),
    ],
)
async def test_users_that_cannot_be_used(tmp_path: Path, keys: Path, user: Any, said: str) -> None:
    (keys / "one.kubeconfig").write_text(kubeconfig(user))
    message = (await failure_of(access_rules(tmp_path, rule(FILES)), cluster())).message
    assert said in message
    assert SECRET not in message


@pytest.mark.parametrize(
    "content", [f"{SECRET}: [", f'{{"a": "{SECRET}"', f"!!int {SECRET}", "users: 5", "- a", "a: b"]
)
async def test_a_file_that_is_no_kubeconfig_is_not_shown(tmp_path: Path, keys: Path, content: str) -> None:
    (keys / "one.kubeconfig").write_text(content)
    message = (await failure_of(access_rules(tmp_path, rule(FILES)), cluster())).message
    assert "one.kubeconfig" in message
    assert SECRET not in message


# Variables, nothing, the service account


async def test_a_variable(tmp_path: Path) -> None:
    environ = {"MEMBER_TOKEN": SECRET}
    access = access_rules(tmp_path, rule({"env": {"variable": "MEMBER_TOKEN"}}), environ=environ)
    found = await access.credential(cluster())
    assert found.credential.authorization == f"Bearer {SECRET}"
    assert SECRET not in repr((found, access))
    environ["MEMBER_TOKEN"] = "another"
    assert await token_of(access, cluster()) == "another"
    del environ["MEMBER_TOKEN"]
    assert "MEMBER_TOKEN is not set" in (await failure_of(access, cluster())).message


async def test_anonymous(tmp_path: Path) -> None:
    found = await access_rules(tmp_path, rule({"none": {}})).credential(cluster())
    assert (found.credential.authorization, found.credential.certificate) == ("", b"")
    assert found.info.source == "rule 1 (none)"


async def test_the_service_account_of_this_pod(tmp_path: Path) -> None:
    access = access_rules(tmp_path, rule({"inCluster": {}}, selector="host"), service_account=tmp_path)
    own, foreign = (Authority(tmp_path, name).pem for name in ("own", "foreign"))
    host = _trusting(own)
    assert "does not run in a pod" in (await failure_of(access, host)).message
    (tmp_path / "ca.crt").write_bytes(own)
    (tmp_path / "token").write_text("projected")
    assert await token_of(access, host) == "projected"
    (tmp_path / "token").write_text("renewed")
    assert await token_of(access, host) == "renewed"
    for claimed in (foreign, own + foreign, b""):
        assert "must be that of the pod" in (await failure_of(access, _trusting(claimed))).message


def _trusting(authorities: bytes) -> dict[str, Any]:
    endpoints = {
        "serverEndpoints": [{"serverAddress": "192.0.2.1"}],
        "caBundle": base64.b64encode(authorities).decode(),
    }
    return cluster(labels={"host": ""}, kubernetesApiEndpoints=endpoints)


# Commands


async def test_each_argument_stays_one(tmp_path: Path, plugin: Plugin) -> None:
    access = access_rules(
        tmp_path, rule(plugin.use("--cluster", "{name}", "id={clusterID}", "{config.zone}", '{"a":1}'))
    )
    odd = "$(touch hacked); a b '\" | &"
    asked = cluster("c-1", clusterID="id-1", config={"zone": odd})
    assert await token_of(access, asked) == SECRET
    assert plugin.seen_arguments == ["--cluster", "c-1", "id=id-1", odd, '{"a":1}']


@pytest.mark.parametrize(
    ("argument", "config", "said"),
    [
        ("{config.zone}", {}, 'no "zone" in the config'),
        ("{config.zone}", {"zone": "--output=/etc/passwd"}, "begins with a dash"),
        ("a{config.zone}", {"zone": "x\ny"}, "not printable"),
        ("a{config.zone}", {"zone": "x" * 2000}, "longer than"),
        ("{clusterID}", {}, "no spec.clusterID"),
    ],
)
async def test_what_a_cluster_may_not_fill_in(
    tmp_path: Path, plugin: Plugin, argument: str, config: dict[str, str], said: str
) -> None:
    access = access_rules(tmp_path, rule(plugin.use(argument)))
    assert said in (await failure_of(access, cluster(config=config))).message
    assert plugin.count == 0


async def test_the_code_of_a_shell_takes_plain_values_only(tmp_path: Path, plugin: Plugin) -> None:
    code = f"{plugin.program} {{config.zone}}"
    access = access_rules(tmp_path, rule({"exec": {"command": "sh", "args": ["-ec", code], "timeout": "50s"}}))
    for value in ("a; touch hacked", "$(id)", "a b", "`id`", "a\\b", "a>b"):
        assert "shell" in (await failure_of(access, cluster(value.encode().hex(), config={"zone": value}))).message
    assert plugin.count == 0
    assert await token_of(access, cluster(config={"zone": "eu-north_1"})) == SECRET


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c"),
        ("/bin/bash", "-o", "pipefail", "-euc"),
        ("env", "sh", "-c"),
        ("env", "TOKEN_DIR=/x", "/bin/sh", "-c", "--"),
        ("timeout", "5", "bash5.2", "-c"),
        ("busybox", "sh", "-c"),
        ("su", "--shell", "/bin/bash", "--command"),
    ],
)
async def test_code_is_found_however_its_shell_is_started(tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *arguments = words
    use = {"exec": {"command": command, "args": [*arguments, "get-token {config.zone}"], "timeout": "50s"}}
    access = access_rules(tmp_path, rule(use))
    assert "shell" in (await failure_of(access, cluster(config={"zone": "$(id)"}))).message


async def test_an_option_of_another_command_takes_any_value(tmp_path: Path, plugin: Plugin) -> None:
    access = access_rules(tmp_path, rule(plugin.use("-c", "{config.zone}", "sh", "{config.zone}")))
    assert await token_of(access, cluster(config={"zone": "a b"})) == SECRET
    assert plugin.seen_arguments == ["-c", "a b", "sh", "a b"]


async def test_a_command_gets_its_variables_and_not_the_tokens_of_env_rules(tmp_path: Path, plugin: Plugin) -> None:
    access = access_rules(
        tmp_path,
        rule({"env": {"variable": "MEMBER_TOKEN"}}, provider="other"),
        rule(plugin.use(env=[{"name": "REGION", "value": "eu"}])),
        environ={"PATH": "/usr/bin:/bin", "MEMBER_TOKEN": "of-another-cluster"},
    )
    await token_of(access, cluster())
    assert '"REGION": "eu"' in plugin.environment.read_text()
    assert "of-another-cluster" not in plugin.environment.read_text()


HOSTILE = {
    "endless output": "while True: sys.stdout.write('x' * 65536)",
    "endless errors": "while True: sys.stderr.write('x' * 65536)",
    "no JSON": f"print({SECRET!r}); sys.exit(0)",
    "a failure": f"sys.stderr.write({SECRET!r}); sys.exit(3)",
    "another kind": 'print(\'{"kind": "Pod"}\'); sys.exit(0)',
    "closes its output": "os.close(1); os._exit(0)",
}


def open_pipes() -> set[str]:
    """Those of this process. A file that is closed meanwhile, such as that of the list itself, is none."""
    own = Path("/proc/self/fd")
    return {str(name) for name in own.iterdir() if os.path.realpath(name).rpartition("/")[2].startswith("pipe:")}


@pytest.mark.parametrize("before", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_commands(
    tmp_path: Path, plugin: Plugin, before: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(5)
    plugin.write(before)
    pipes = open_pipes()
    async with asyncio.timeout(PATIENCE):
        failure = await failure_of(access_rules(tmp_path, rule(plugin.use())), cluster())
    printed = capfd.readouterr()
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert SECRET not in f"{failure.message}{caplog.text}{printed.out}{printed.err}"
    assert len(failure.message) <= 256
    assert open_pipes() == pipes


def test_output_is_bounded_below_what_is_held() -> None:
    assert MAX_OUTPUT <= 1 << 20


async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path, plugin: Plugin) -> None:
    child = tmp_path / "child"
    plugin.write(
        "made = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(made.pid))\n"
        "time.sleep(600)"
    )
    access = access_rules(tmp_path, rule(plugin.use(timeout="8s")))
    assert "did not end within 8 seconds" in (await failure_of(access, cluster())).message
    await _is_gone(int(child.read_text()))


async def test_children_of_a_command_that_succeeds_end_with_it(tmp_path: Path, plugin: Plugin) -> None:
    child = tmp_path / "child"
    plugin.write(
        f"made = subprocess.Popen([{sys.executable!r}, '-S', '-c', 'import time; time.sleep(600)'], "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        f"open({str(child)!r}, 'w').write(str(made.pid))"
    )
    assert await token_of(access_rules(tmp_path, rule(plugin.use())), cluster()) == SECRET
    await _is_gone(int(child.read_text()))


async def _is_gone(pid: int) -> None:
    """Waits until a process has ended; one that nobody has waited for counts as ended."""

    def has_ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    await until(has_ended)


async def test_close_ends_commands(tmp_path: Path, plugin: Plugin) -> None:
    pid = tmp_path / "pid"
    plugin.write(f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    access = access_rules(tmp_path, rule(plugin.use()))
    waiting = asyncio.create_task(failure_of(access, cluster()))
    await until(lambda: pid.exists() and pid.read_text() != "")
    await access.close()
    assert "ended" in (await waiting).message
    await _is_gone(int(pid.read_text()))


async def test_a_missing_command(tmp_path: Path) -> None:
    access = access_rules(tmp_path, rule({"exec": {"command": "no-such-command-here"}}))
    assert "No such file" in (await failure_of(access, cluster())).message


async def test_few_commands_at_once_and_slow_ones_hold_up_nothing(tmp_path: Path) -> None:
    """Four clusters whose command hangs take the places for slow commands; the others are resolved meanwhile."""
    running, most = tmp_path / "running", tmp_path / "most"
    running.mkdir()
    most.touch()
    plugin = Plugin(
        tmp_path / "plugin",
        before=(
            f"mine = os.path.join({str(running)!r}, str(os.getpid())); open(mine, 'w').close()\n"
            f"open({str(most)!r}, 'a').write(str(len(os.listdir({str(running)!r}))) + ' ')\n"
            "if sys.argv[1].startswith('slow'): time.sleep(600)\n"
            "os.unlink(mine)"
        ),
    )
    plugin.prints(token=SECRET)
    limits = ExecLimits(prompt=2, slow=4, slow_after=0.05)
    access = access_rules(tmp_path, rule(plugin.use("{name}")), limits=limits)
    slow = [asyncio.create_task(failure_of(access, cluster(f"slow-{number}"))) for number in range(4)]
    await until(lambda: len(list(running.iterdir())) == 4)
    async with asyncio.timeout(PATIENCE):
        tokens = await asyncio.gather(*(token_of(access, cluster(f"prompt-{number}")) for number in range(12)))
    assert tokens == [SECRET] * 12
    assert not any(task.done() for task in slow)
    assert max(int(line) for line in most.read_text().split()) <= limits.processes
    await access.close()
    await asyncio.gather(*slow)


async def test_what_a_command_says_of_its_end_counts(tmp_path: Path, plugin: Plugin) -> None:
    clocks = FakeClocks()
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clocks.now + 100))
    plugin.prints(token=jwt_until(clocks.now + 1000), expirationTimestamp=end)
    access = access_rules(tmp_path, rule(plugin.use()), clocks=clocks)
    found = await access.credential(cluster())
    assert found.info.expires_at is not None
    assert abs(found.info.expires_at - clocks.now - 100) <= 1


async def test_no_secret_in_logs_or_representations(
    tmp_path: Path, keys: Path, plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(5)
    (keys / "one.token").write_text(SECRET)
    logging.getLogger("asyncio").setLevel(5)
    for use in (FILES, plugin.use()):
        access = access_rules(tmp_path, rule(use))
        found = await access.credential(cluster())
        kept = access._kept["one"]
        assert found.credential.authorization == f"Bearer {SECRET}"
        assert SECRET not in f"{found!r}{access!r}{kept!r}{kept._held!r}{vars(access)!r}{caplog.text}"
        await access.close()
