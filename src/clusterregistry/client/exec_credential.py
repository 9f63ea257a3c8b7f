"""Exec plugins: commands named by a kubeconfig that print a credential (KEP-541, client.authentication.k8s.io).

A credential is kept until the time that the plugin names, else until the server refuses it with a 401.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import orjson

from clusterregistry.apimachinery.meta import times
from clusterregistry.client.credentials import Credential, check_token
from clusterregistry.client.errors import ConfigError, ExecPluginError, printable

API_GROUP = "client.authentication.k8s.io"
API_VERSIONS = (f"{API_GROUP}/v1", f"{API_GROUP}/v1beta1")
CLUSTER_EXTENSION = f"{API_GROUP}/exec"
"""The extension of a cluster entry that is passed to the plugin as ``spec.cluster.config``."""

TIMEOUT = 60.0
"""Seconds for one run. client-go waits without limit; a plugin that hangs would stop a controller for good."""

MAX_OUTPUT = 1 << 20
_MAX_STDERR = 1 << 16
_SHOWN_STDERR = 400
_GRACE = 5.0

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """The ``exec`` of a kubeconfig user. ``cluster_info`` is None without ``provideClusterInfo``."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    interactive_mode: InteractiveMode = "Never"
    cluster_info: Mapping[str, Any] | None = field(default=None, repr=False)


def parse_plugin(entry: Mapping[str, Any], *, cluster: Mapping[str, Any], authorities: bytes) -> ExecPlugin:
    """The plugin of a kubeconfig's ``exec``. Raises ConfigError with every problem."""
    problems = _problems(entry)
    if problems:
        raise ConfigError(*problems)
    return ExecPlugin(
        api_version=entry["apiVersion"],
        command=entry["command"],
        args=tuple(entry.get("args") or ()),
        env=tuple((each["name"], each["value"]) for each in entry.get("env") or ()),
        install_hint=str(entry.get("installHint") or "").strip(),
        interactive_mode=entry.get("interactiveMode") or "IfAvailable",
        cluster_info=_cluster_info(cluster, authorities) if entry.get("provideClusterInfo") is True else None,
    )


def _problems(entry: Mapping[str, Any]) -> list[str]:
    problems: list[str] = []
    if entry.get("apiVersion") not in API_VERSIONS:
        problems.append(f"exec.apiVersion: must be {' or '.join(API_VERSIONS)}")
    elif entry["apiVersion"] == API_VERSIONS[0] and not entry.get("interactiveMode"):
        problems.append(f"exec.interactiveMode: is required with {API_VERSIONS[0]}")
    if entry.get("interactiveMode") not in (None, "", "Never", "IfAvailable", "Always"):
        problems.append("exec.interactiveMode: must be Never, IfAvailable or Always")
    if not isinstance(entry.get("command"), str) or not entry["command"]:
        problems.append("exec.command: must be a command")
    args, env = entry.get("args") or [], entry.get("env") or []
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        problems.append("exec.args: must be a list of texts")
    if not isinstance(env, list) or not all(_is_variable(each) for each in env):
        problems.append("exec.env: must be a list of mappings with name and value")
    return problems


def _is_variable(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("value"), str)


def _cluster_info(cluster: Mapping[str, Any], authorities: bytes) -> dict[str, Any]:
    """``spec.cluster``: the cluster entry with its authorities inline, and the plugin's own configuration."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    info = {name: cluster[name] for name in names if cluster.get(name)}
    if authorities:
        info["certificate-authority-data"] = base64.b64encode(authorities).decode()
    extensions = cluster.get("extensions")
    for each in extensions if isinstance(extensions, list) else []:
        if isinstance(each, dict) and each.get("name") == CLUSTER_EXTENSION:
            info["config"] = each.get("extension")
    return info


class ExecCredentialSource:
    """Runs a plugin when a credential is needed, one run at a time, and keeps what it prints."""

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        plugin: ExecPlugin,
        *,
        interactive: bool = False,
        timeout: float = TIMEOUT,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        isolated: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """``interactive``: a person may answer questions of the plugin at this process's terminal.

        ``isolated`` is for services that run plugins of many clusters: what a plugin writes to standard error may hold
        a credential, so it is neither passed on nor part of an error, and its children end with it.
        """
        self._plugin, self._timeout, self._now = plugin, timeout, now
        self._isolated, self._environ = isolated, environ
        self._interactive = interactive and plugin.interactive_mode != "Never" and sys.stdin.isatty()
        self._lock = asyncio.Lock()
        self._kept: Credential | None = None
        self._expires: datetime | None = None

    async def get(self) -> Credential:
        """The kept credential, or that of a new run. Raises ExecPluginError."""
        async with self._lock:
            if self._kept is None or (self._expires is not None and self._now() >= self._expires):
                self._kept, self._expires = await self.fetch()
            return self._kept

    def reject(self, credential: Credential) -> bool:
        if self._kept == credential:
            self._kept = None
        return True

    async def fetch(self) -> tuple[Credential, datetime | None]:
        """The credential of a new run, and when it ends, where the plugin says so. Raises ExecPluginError."""
        if self._plugin.interactive_mode == "Always" and not self._interactive:
            raise self._failure("it needs a terminal (interactiveMode: Always), and there is none")
        output = await self._output()
        try:
            return _parse_output(output, self._plugin.api_version)
        except ValueError as error:
            raise self._failure(str(error)) from None

    async def _output(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self._plugin.command,
                *self._plugin.args,
                env=self._environment(),
                stdin=None if self._interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if self._interactive else asyncio.subprocess.PIPE,
                start_new_session=not self._interactive,
            )
        except (OSError, ValueError) as error:
            raise self._failure(getattr(error, "strerror", None) or str(error)) from None
        try:
            async with asyncio.timeout(self._timeout):
                output, complaint = await asyncio.gather(
                    _read(process.stdout, MAX_OUTPUT),
                    _relay(process.stderr, _MAX_STDERR, to=None if self._isolated else sys.stderr),
                )
                status = await process.wait()
        except BaseException as error:
            await _end(process, whole_session=not self._interactive)
            if isinstance(error, TimeoutError):
                raise self._failure(f"it did not end within {self._timeout:g} seconds") from None
            if isinstance(error, _TooLongError):
                raise self._failure(f"it printed more than {MAX_OUTPUT} bytes") from None
            raise
        if self._isolated:
            await _end(process, whole_session=True)
        if status and self._isolated:
            raise self._failure(f"it ended with status {status}: run it by hand to see why")
        if status:
            said = printable(complaint[-4 * _SHOWN_STDERR :].decode("utf-8", "replace"))[-_SHOWN_STDERR:]
            raise self._failure(f"it ended with status {status}{f': {said}' if said else ''}")
        return output

    def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": self._interactive}
        if self._plugin.cluster_info is not None:
            spec["cluster"] = self._plugin.cluster_info
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return {**self._environ, **dict(self._plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _failure(self, why: str) -> ExecPluginError:
        message = f'the exec plugin "{printable(self._plugin.command, 200)}" returned no credential: {why}'
        return ExecPluginError(message, install_hint=self._plugin.install_hint)


class _TooLongError(Exception):
    pass


async def _read(stream: asyncio.StreamReader | None, limit: int) -> bytes:
    """All of a stream. Output beyond the limit is an error."""
    content = bytearray()
    while stream is not None and (piece := await stream.read(1 << 16)):
        content += piece
        if len(content) > limit:
            raise _TooLongError
    return bytes(content)


async def _relay(stream: asyncio.StreamReader | None, limit: int, *, to: TextIO | None) -> bytes:
    """Passes standard error on as it comes, as client-go does: it may ask a person to sign in. Returns all of it."""
    content = bytearray()
    while stream is not None and (piece := await stream.read(1 << 12)):
        content += piece
        if len(content) > limit:
            raise _TooLongError
        if to is None:
            continue
        with contextlib.suppress(OSError, ValueError):
            to.write(piece.decode("utf-8", "replace"))
            to.flush()
    return bytes(content)


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    """Kills a plugin with its children, which would keep the pipes open, or run on for nothing.

    A pipe that was not read to its end is paused, and never notices that the plugin is gone: it is closed here.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if whole_session:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _GRACE)
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
    await asyncio.sleep(0)


def _parse_output(output: bytes, api_version: str) -> tuple[Credential, datetime | None]:
    """Raises ValueError, with a message that shows nothing of the output: it holds secrets."""
    try:
        document = orjson.loads(output)
    except orjson.JSONDecodeError:
        raise ValueError("it does not print JSON") from None
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise ValueError("it does not print an ExecCredential")
    if document.get("apiVersion") != api_version:
        raise ValueError(f"it printed an ExecCredential of another version than {api_version}")
    status = document.get("status")
    if not isinstance(status, dict):
        raise ValueError("it printed an ExecCredential without status")  # noqa: TRY004 - one error for the output
    return _credential(status), _expiration(status)


def _credential(status: Mapping[str, Any]) -> Credential:
    token, certificate, key = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
    if not all(isinstance(each, str) for each in (token, certificate, key)):
        raise ValueError("token, clientCertificateData and clientKeyData must be texts")
    if not token and not certificate and not key:
        raise ValueError("it printed neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        raise ValueError("it printed clientCertificateData or clientKeyData without the other")
    if token:
        try:
            check_token(token, source="status.token")
        except ConfigError as error:
            raise ValueError(str(error)) from None
    return Credential(
        authorization=f"Bearer {token}" if token else "", certificate=certificate.encode(), key=key.encode()
    )


def _expiration(status: Mapping[str, Any]) -> datetime | None:
    text = status.get("expirationTimestamp")
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError("expirationTimestamp must be a time")  # noqa: TRY004 - one error for the output
    try:
        return times.parse(text)
    except ValueError:
        raise ValueError("expirationTimestamp must be a time in RFC 3339") from None
