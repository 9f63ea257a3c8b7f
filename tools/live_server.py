"""Starts the real server in a directory of its own, for checks that need one, and ends it again."""

import http.client
import json
import pathlib
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from tools.ports import free_port

# The users that the recorded cases know, in the format of --token-auth-file.
TOKENS = """\
admintoken,admin,uid-admin,"system:masters"
nobodytoken,nobody,uid-nobody
viewertoken,viewer,uid-viewer,"viewers"
"""
ADMIN_TOKEN = "admintoken"  # noqa: S105 - it opens nothing but the server of one check
CONTEXT = "registry"

READY_SECONDS = 60.0
END_SECONDS = 15.0


class ServerError(Exception):
    """The server did not start; the message has the end of its log."""


@dataclass(frozen=True)
class LiveServer:
    """A server that answers, and where its files are."""

    url: str
    ca_file: pathlib.Path
    kubeconfig: pathlib.Path
    log: pathlib.Path
    pid: int


def installed_command() -> list[str]:
    """The command as `make setup` installs it, beside the Python that runs this."""
    return [str(pathlib.Path(sys.executable).parent / "clusterregistry")]


@contextmanager
def running(
    directory: pathlib.Path, *, command: list[str] | None = None, flags: Sequence[str] = ()
) -> Iterator[LiveServer]:
    """A server that keeps everything in the directory, from when it is ready to the end of the block.

    ``flags`` are added to those that it needs for that.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    tokens, log = directory / "tokens.csv", directory / "server.log"
    tokens.touch(mode=0o600)
    tokens.write_text(TOKENS)
    arguments = ["standalone", "--bind-address", "127.0.0.1", "--secure-port", str(port)]
    arguments += ["--data-dir", str(directory / "data"), "--token-auth-file", str(tokens)]
    arguments += ["--authorization-filtered-lists=false", *flags]  # kube-apiserver has no such lists
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*(command or installed_command()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        server = LiveServer(
            url=f"https://127.0.0.1:{port}",
            ca_file=directory / "data" / "ca.crt",
            kubeconfig=directory / "kubeconfig",
            log=log,
            pid=process.pid,
        )
        wait_until_ready(server, process)
        server.kubeconfig.write_text(json.dumps(kubeconfig(server)))
        yield server
    finally:
        end(process)


def wait_until_ready(server: LiveServer, process: subprocess.Popen[bytes], *, seconds: float = READY_SECONDS) -> None:
    until = time.monotonic() + seconds
    while not is_ready(server):
        if process.poll() is not None:
            raise ServerError(f"the server ended with status {process.returncode}:\n{tail(server.log)}")
        if time.monotonic() > until:
            raise ServerError(f"the server was not ready after {seconds:g} seconds:\n{tail(server.log)}")
        time.sleep(0.05)


def is_ready(server: LiveServer) -> bool:
    try:
        trust = ssl.create_default_context(cafile=server.ca_file)
        host = server.url.removeprefix("https://")
        with closing(http.client.HTTPSConnection(host, timeout=5, context=trust)) as connection:
            connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):  # no certificate yet, or nobody listens yet
        return False


def kubeconfig(server: LiveServer) -> dict[str, object]:
    cluster = {"server": server.url, "certificate-authority": str(server.ca_file)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": "admin"}}],
        "current-context": CONTEXT,
    }


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(log: pathlib.Path, *, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
