"""Starts the real server in a directory of its own, for checks that need one, and ends it again."""

import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tools.ports import free_port
from tools.processes import Process

# The users that the recorded cases know, in the format of --token-auth-file.
TOKENS = pathlib.Path(__file__).with_name("tokens.csv").read_text()
ADMIN_TOKEN = "admintoken"  # noqa: S105 - it opens nothing but the server of one check
CONTEXT = "registry"

READY_SECONDS = 60.0


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

    ``flags`` are added to those that it needs for that. Raises ProcessError if the server does not start.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    tokens, log = directory / "tokens.csv", directory / "server.log"
    tokens.touch(mode=0o600)
    tokens.write_text(TOKENS)
    arguments = ["standalone", "--bind-address", "127.0.0.1", "--secure-port", str(port)]
    arguments += ["--data-dir", str(directory / "data"), "--token-auth-file", str(tokens)]
    arguments += ["--authorization-filtered-lists=false", *flags]  # kube-apiserver has no such lists
    process = Process([*(command or installed_command()), *arguments], log=log)
    process.start()
    try:
        server = LiveServer(
            url=f"https://127.0.0.1:{port}",
            ca_file=directory / "data" / "ca.crt",
            kubeconfig=directory / "kubeconfig",
            log=log,
            pid=process.pid,
        )
        process.wait_until(lambda: is_ready(server), seconds=READY_SECONDS)
        server.kubeconfig.write_text(json.dumps(kubeconfig(server)))
        yield server
    finally:
        process.end()


def is_ready(server: LiveServer) -> bool:
    from tools import exchanges  # noqa: PLC0415 - bench_client runs where the client's libraries are not installed

    return exchanges.is_ok(exchanges.access(server.url, ca_file=server.ca_file, token=ADMIN_TOKEN), "/readyz")


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
