"""Resolvers of what this process has at hand: files, variables, commands, its own service account, nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterregistry.client.credentials import Credential, check_token
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.exec_credential import ExecPlugin
from clusterregistry.controllers.access.configuration import EXEC_TIMEOUT, CommandUse, EnvUse, FileUse
from clusterregistry.controllers.access.credential_folder import (
    CredentialFolder,
    FileMissingError,
    FolderError,
    FolderFile,
    Version,
)
from clusterregistry.controllers.access.exec_runner import ExecRunner
from clusterregistry.controllers.access.kubeconfig_user import user_credential
from clusterregistry.controllers.access.resolver import Resolved, ResolveError, ResolveRequest
from clusterregistry.controllers.observer.endpoint import EndpointError, choose_endpoint


def bearer(token: str, *, source: str) -> Credential:
    """The credential of a token. Raises ResolveError, which does not show it."""
    try:
        return Credential(authorization=f"Bearer {check_token(token.strip(), source=source)}")
    except ConfigError as error:
        raise ResolveError(str(error)) from None


class NoneResolver:
    """Anonymous requests."""

    async def resolve(self, _: ResolveRequest) -> Resolved:
        return Resolved(credential=Credential(), is_current=lambda: True)


class EnvResolver:
    """The token in an environment variable."""

    def __init__(self, use: EnvUse, environ: Mapping[str, str]) -> None:
        self._variable, self._environ = use.variable, environ

    async def resolve(self, _: ResolveRequest) -> Resolved:
        value = self._environ.get(self._variable, "")
        if not value:
            raise ResolveError(f"the environment variable {self._variable} is not set", gone=True)
        credential = bearer(value, source=f"the environment variable {self._variable}")
        return Resolved(credential=credential, is_current=lambda: self._environ.get(self._variable, "") == value)


class FileResolver:
    """KEY.token or KEY.kubeconfig in a folder; the token wins. The file is read again when it changes."""

    def __init__(self, use: FileUse, runner: ExecRunner) -> None:
        self._folder, self._runner = CredentialFolder(use.directory), runner

    async def resolve(self, request: ResolveRequest) -> Resolved:
        key = request.key
        reading = _Reading(self._folder)
        try:
            content = reading.read(f"{key}.token")
        except FileMissingError:
            return await self._kubeconfig(f"{key}.kubeconfig", request, reading)
        except FolderError as error:
            raise ResolveError(str(error)) from None
        token = content.decode("ascii", "replace")
        return Resolved(credential=bearer(token, source=f"{key}.token"), is_current=reading.is_current)

    async def _kubeconfig(self, name: str, request: ResolveRequest, reading: _Reading) -> Resolved:
        try:
            content = reading.read(name)
        except FileMissingError:
            key = name.removesuffix(".kubeconfig")
            raise ResolveError(f"its folder has neither {key}.token nor {name}", gone=True) from None
        except FolderError as error:
            raise ResolveError(str(error)) from None
        found = await user_credential(
            content,
            self._folder.directory / name,
            spec=request.spec,
            read_file=reading.read_beside,
            allow_exec=True,
        )
        if isinstance(found, Credential):
            return Resolved(credential=found, is_current=reading.is_current)
        printed = await self._runner.run(found, limit=EXEC_TIMEOUT)
        return replace(printed, is_current=reading.is_current)


class _Reading:
    """The files that a credential was made of, with their versions; also those that were not there."""

    def __init__(self, folder: CredentialFolder) -> None:
        self._folder = folder
        self._versions: dict[str, Version] = {}

    def read(self, name: str) -> bytes:
        """Raises FolderError."""
        self._versions[name] = ()
        found: FolderFile = self._folder.read(name)
        self._versions[name] = found.version
        return found.content

    def read_beside(self, name: str) -> bytes:
        try:
            return self.read(name)
        except FolderError as error:
            raise ResolveError(str(error)) from None

    def is_current(self) -> bool:
        return all(self._folder.version(name) == version for name, version in self._versions.items())


_SHELL = re.compile(r"(ba|da|a|k|mk|pdk|z|c|tc|fi)?sh[0-9.]*|busybox|toybox")
_CODE_FOLLOWS = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")


@dataclass(slots=True)
class ExecResolver:
    """The command of a rule, its arguments filled by the cluster."""

    use: CommandUse
    runner: ExecRunner

    async def resolve(self, request: ResolveRequest) -> Resolved:
        plugin = ExecPlugin(
            api_version=self.use.api_version,
            command=self.use.command,
            args=tuple(self._arguments(request)),
            env=self.use.env,
        )
        return await self.runner.run(plugin, limit=self.use.timeout)

    def _arguments(self, request: ResolveRequest) -> Iterator[str]:
        words = (self.use.command, *self.use.args)
        for number, argument in enumerate(self.use.args, start=1):
            yield request.fill(argument, is_code=_is_code(words[:number]))


def _is_code(before: Sequence[str]) -> bool:
    """Whether the word behind these is the code of a shell, which others may start: ``env sh -c -- CODE``."""
    *others, last = before
    if last == "--" and others:
        *others, last = others
    return _CODE_FOLLOWS.fullmatch(last) is not None and any(_SHELL.fullmatch(Path(each).name) for each in others)


class InClusterResolver:
    """The service account token of this pod, for a cluster that is verified by the authority of the pod alone.

    Whatever address a cluster claims: a server with a certificate of another authority never gets the token. The
    kubelet renews the files.
    """

    def __init__(self, files: Path) -> None:
        self._folder = CredentialFolder(files)

    async def resolve(self, request: ResolveRequest) -> Resolved:
        reading = _Reading(self._folder)
        try:
            content, authorities = reading.read("token"), reading.read("ca.crt")
        except FileMissingError:
            raise ResolveError("this process has no service account: it does not run in a pod", gone=True) from None
        except FolderError as error:
            raise ResolveError(f"the service account: {error}") from None
        if not _is_verified_by(request.spec, authorities):
            raise ResolveError(
                "inCluster is for the cluster of this pod: its caBundle must be that of the pod", gone=True
            )
        token = content.decode("ascii", "replace")
        return Resolved(
            credential=bearer(token, source="the token of the service account"), is_current=reading.is_current
        )


def _is_verified_by(spec: Mapping[str, Any], authorities: bytes) -> bool:
    """Whether a cluster trusts some of these authorities and no other."""
    try:
        trusted = choose_endpoint({"spec": spec}).authorities
    except EndpointError:
        return False
    found = set(_CERTIFICATE.findall(trusted.replace(b"\r", b"")))
    return bool(found) and found <= set(_CERTIFICATE.findall(authorities.replace(b"\r", b"")))


_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
