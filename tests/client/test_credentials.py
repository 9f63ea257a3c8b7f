"""Credentials as servers see them: tokens, files that change, certificates, and exec plugins that are real programs."""

from __future__ import annotations

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client import errors, rest_config
from clusterregistry.client.exec_credential import (
    API_VERSIONS,
    MAX_OUTPUT,
    ExecCredentialSource,
    ExecPlugin,
    parse_plugin,
)
from clusterregistry.client.rest import Call, Client
from clusterregistry.client.rest_config import Pem
from tests.client.hostile_servers import HostileServer, Received, Writer, response, status
from tests.remote_servers import Authority

V1, V1BETA1 = API_VERSIONS
GET = Call("GET", "/it")


class Plugin:
    """A program that counts its runs and prints the content of a file."""

    def __init__(self, directory: Path, *, before: str = "") -> None:
        self.runs, self.output, self.seen = directory / "runs", directory / "output", directory / "seen"
        self.runs.write_text("")
        self.program = directory / "plugin"
        self.program.write_text(
            f"#!{sys.executable}\n"
            "import os, sys, time\n"
            f"open({str(self.runs)!r}, 'a').write('x')\n"
            f"open({str(self.seen)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'])\n"
            f"{before}\n"
            f"sys.stdout.write(open({str(self.output)!r}).read())\n"
        )
        self.program.chmod(0o755)

    def prints(self, version: str = V1, **document_status: Any) -> None:
        self.output.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": document_status}))

    @property
    def count(self) -> int:
        return len(self.runs.read_text())

    def named(self, **changes: Any) -> ExecPlugin:
        return ExecPlugin(**{"api_version": V1, "command": str(self.program), **changes})


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


async def test_a_token_is_sent_as_a_bearer_token(server: HostileServer) -> None:
    async with Client(server.config(token="secret")) as client:
        await client.call(GET)
    assert server.received[0].header("authorization") == "Bearer secret"


async def test_a_name_and_a_password_are_sent_as_basic_credentials(server: HostileServer) -> None:
    async with Client(server.config(username="jane", password="p:w")) as client:
        await client.call(GET)
    assert server.received[0].header("authorization") == f"Basic {base64.b64encode(b'jane:p:w').decode()}"


async def test_a_token_file_is_read_again_when_it_changes(server: HostileServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    async with Client(server.config(token_file=file, token="ignored")) as client:
        await client.call(GET)
        file.write_text("another\n")
        await client.call(GET)
        file.write_text("")  # half written
        await client.call(GET)
        file.unlink()
        await client.call(GET)
    sent = [received.header("authorization") for received in server.received]
    assert sent == ["Bearer one", "Bearer another", "Bearer another", "Bearer another"]


async def test_a_token_file_that_is_not_there_is_an_error_of_the_configuration(
    server: HostileServer, tmp_path: Path
) -> None:
    async with Client(server.config(token_file=tmp_path / "none")) as client:
        with pytest.raises(errors.ConfigError, match="none"):
            await client.call(GET)
    assert server.received == []


async def test_a_client_certificate_is_presented_and_read_again_when_it_changes(tmp_path: Path) -> None:
    server = HostileServer(tmp_path / "server")
    server.require_client_certificate()
    seen: list[str] = []

    async def note(received: Received, writer: Writer) -> None:
        seen.append(str(writer.get_extra_info("peercert")["subject"]))
        await server._answer(received, writer)

    server.handler = note
    certificate, key = server.authority.client("jane")
    config = server.config(client_certificate=Pem(file=certificate), client_key=Pem(file=key))
    async with server, Client(config) as client:
        await client.call(GET)
        server.authority.client("john")  # into the same files
        await client.call(GET)
    assert ["jane" in seen[0], "john" in seen[1], server.connections] == [True, True, 2]


async def test_authorities_in_a_file_are_read_again_when_they_change(server: HostileServer, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(Authority(tmp_path).pem)
    async with Client(server.config(certificate_authority=Pem(file=file))) as client:
        with pytest.raises(errors.UntrustedCertificateError):
            await client.call(GET)
        file.write_bytes(server.authority.pem)
        await client.call(GET)


@pytest.mark.parametrize(
    "changes",
    [
        {"certificate_authority": Pem(data=b"no PEM")},
        {"client_certificate": Pem(data=b"no PEM"), "client_key": Pem(data=b"no PEM")},
        {"client_certificate": Pem(data=b"without key")},
    ],
)
async def test_certificates_that_cannot_be_used_are_an_error_of_the_configuration(
    server: HostileServer, changes: dict[str, Any]
) -> None:
    async with Client(server.config(**changes)) as client:
        with pytest.raises(errors.ConfigError):
            await client.call(GET)


async def test_the_token_of_a_plugin_is_kept_between_calls(server: HostileServer, plugin: Plugin) -> None:
    plugin.prints(token="secret")
    async with Client(server.config(exec_plugin=plugin.named())) as client:
        for _ in range(3):
            await client.call(GET)
    assert {received.header("authorization") for received in server.received} == {"Bearer secret"}
    assert plugin.count == 1


async def test_the_certificate_of_a_plugin_is_presented(tmp_path: Path, plugin: Plugin) -> None:
    server = HostileServer(tmp_path / "server")
    server.require_client_certificate()
    certificate, key = server.authority.client("jane")
    plugin.prints(clientCertificateData=certificate.read_text(), clientKeyData=key.read_text())
    async with server, Client(server.config(exec_plugin=plugin.named())) as client:
        await client.call(GET)


async def test_a_credential_is_renewed_when_its_time_is_over(plugin: Plugin) -> None:
    clock = Clock()
    expires = (clock.time + timedelta(minutes=5)).isoformat().replace("+00:00", "Z")
    plugin.prints(token="one", expirationTimestamp=expires)
    source = ExecCredentialSource(plugin.named(), now=clock)
    assert (await source.get()).authorization == "Bearer one"
    clock.time += timedelta(minutes=4)
    await source.get()
    assert plugin.count == 1
    clock.time += timedelta(minutes=1)
    plugin.prints(token="two")
    assert (await source.get()).authorization == "Bearer two"
    assert plugin.count == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_401_makes_the_plugin_run_again_once(server: HostileServer, plugin: Plugin, method: str) -> None:
    plugin.prints(token="good")
    server.answers = [status(401, "Unauthorized"), response()]
    async with Client(server.config(exec_plugin=plugin.named())) as client:
        await client.call(Call(method, "/it", body={} if method == "POST" else None))
        assert (plugin.count, len(server.received)) == (2, 2)
        server.answers = [status(401, "Unauthorized"), status(401, "Unauthorized")]
        with pytest.raises(errors.UnauthorizedError):
            await client.call(GET)
    assert (plugin.count, len(server.received)) == (3, 4)


async def test_a_401_for_a_fixed_token_is_final(server: HostileServer) -> None:
    server.answers = [status(401, "Unauthorized")]
    async with Client(server.config(token="bad")) as client:
        with pytest.raises(errors.UnauthorizedError):
            await client.call(GET)
    assert len(server.received) == 1


async def test_calls_at_the_same_time_share_one_run(server: HostileServer, tmp_path: Path) -> None:
    import asyncio  # noqa: PLC0415

    plugin = Plugin(tmp_path, before="time.sleep(0.2)")
    plugin.prints(token="secret")
    async with Client(server.config(exec_plugin=plugin.named())) as client:
        await asyncio.gather(*(client.call(GET) for _ in range(5)))
    assert plugin.count == 1


async def test_a_plugin_gets_the_cluster_with_provide_cluster_info(plugin: Plugin) -> None:
    entry = {"apiVersion": V1BETA1, "command": str(plugin.program), "provideClusterInfo": True}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"server": "https://c", "tls-server-name": "n", "extensions": [extension]}
    plugin.prints(V1BETA1, token="t")
    await ExecCredentialSource(parse_plugin(entry, cluster=cluster, authorities=b"PEM")).get()
    assert json.loads(plugin.seen.read_text()) == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://c",
                "tls-server-name": "n",
                "certificate-authority-data": base64.b64encode(b"PEM").decode(),
                "config": {"audience": "x"},
            },
        },
    }


async def test_a_plugin_gets_its_arguments_and_variables() -> None:
    script = "import json, os, sys; print(json.dumps({'apiVersion': sys.argv[1], 'kind': 'ExecCredential', "
    script += "'status': {'token': os.environ['TOKEN']}}))"
    plugin = ExecPlugin(
        api_version=V1, command=sys.executable, args=("-c", script, V1), env=(("TOKEN", "from-the-environment"),)
    )
    assert (await ExecCredentialSource(plugin).get()).authorization == "Bearer from-the-environment"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("no JSON", "does not print JSON"),
        ("[]", "does not print an ExecCredential"),
        ('{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1"}', "another version"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "without status"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{}}}}', "neither a token nor"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"token": "a\\nb"}}}}', "no token has"),
        (
            f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"clientKeyData": "k"}}}}',
            "without the other",
        ),
        (
            json.dumps(
                {"kind": "ExecCredential", "apiVersion": V1, "status": {"token": "t", "expirationTimestamp": "x"}}
            ),
            "RFC 3339",
        ),
        ("x" * (MAX_OUTPUT + 1), "more than"),
    ],
)
async def test_output_that_cannot_be_used_is_refused_with_the_hint(plugin: Plugin, output: str, message: str) -> None:
    plugin.output.write_text(output)
    with pytest.raises(errors.ExecPluginError, match=message) as raised:
        await ExecCredentialSource(plugin.named(install_hint="brew install plugin")).get()
    assert "brew install plugin" in str(raised.value)


async def test_a_plugin_that_is_not_there_or_fails_or_hangs_is_named(tmp_path: Path) -> None:
    absent = ExecPlugin(api_version=V1, command=str(tmp_path / "absent"), install_hint="get it at example.com")
    with pytest.raises(errors.ExecPluginError, match=r"absent.*No such file(?s:.*)example\.com"):
        await ExecCredentialSource(absent).get()
    failing = Plugin(tmp_path, before="sys.exit('please sign in')")
    with pytest.raises(errors.ExecPluginError, match="status 1: please sign in"):
        await ExecCredentialSource(failing.named()).get()
    hanging = Plugin(tmp_path, before="time.sleep(60)")
    with pytest.raises(errors.ExecPluginError, match=r"within 0\.5 seconds"):
        await ExecCredentialSource(hanging.named(), timeout=0.5).get()


async def test_a_plugin_that_needs_a_terminal_is_not_run_without_one(plugin: Plugin) -> None:
    with pytest.raises(errors.ExecPluginError, match="terminal"):
        await ExecCredentialSource(plugin.named(interactive_mode="Always")).get()
    assert plugin.count == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "apiVersion"),
        ({"interactiveMode": None}, "interactiveMode: is required"),
        ({"interactiveMode": "Maybe"}, "interactiveMode: must be"),
        ({"command": ""}, "command"),
        ({"args": "text"}, "args"),
        ({"env": [{"name": "A"}]}, "env"),
    ],
)
def test_an_entry_that_names_no_usable_plugin_is_refused(changes: dict[str, Any], problem: str) -> None:
    entry = {"apiVersion": V1, "command": "c", "interactiveMode": "Never", **changes}
    with pytest.raises(errors.ConfigError, match=problem):
        parse_plugin(entry, cluster={}, authorities=b"")


def test_secrets_are_in_no_representation() -> None:
    config = rest_config.RestConfig(
        server="https://c",
        user_agent="a",
        token="secret",
        password="secret",
        proxy_url="http://u:secret@p:1",
        client_key=Pem(data=b"secret"),
        exec_plugin=ExecPlugin(api_version=V1, command="c", env=(("A", "secret"),)),
    )
    assert "secret" not in repr(config)


async def test_the_time_of_a_plugin_does_not_count_for_the_request(server: HostileServer, tmp_path: Path) -> None:
    slow = Plugin(tmp_path, before="time.sleep(1.0)")
    slow.prints(token="late")
    async with Client(server.config(exec_plugin=slow.named(), timeout=0.5)) as client:
        await client.call(GET)
    assert slow.count == 1


async def test_what_a_plugin_says_is_shown_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = Plugin(tmp_path, before="sys.stderr.write('open the page and enter ABC\\n')")
    plugin.prints(token="t")
    await ExecCredentialSource(plugin.named(), interactive=False).get()
    assert "open the page and enter ABC" in capsys.readouterr().err


async def test_an_authority_that_is_half_written_leaves_the_former_one_in_use(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(server.authority.pem)
    async with Client(server.config(certificate_authority=Pem(file=file))) as client:
        await client.call(GET)
        file.write_bytes(server.authority.pem[:200])
        await client.call(GET)
        await client.call(GET)
        file.write_bytes(server.authority.pem)
        await client.call(GET)
    assert caplog.text.count("the former certificates stay in use") == 1
