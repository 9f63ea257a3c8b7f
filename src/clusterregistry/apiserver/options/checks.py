"""Checks of single values that need more than the text. Each returns the problems it finds."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path

from clusterregistry.cli.options.problems import Problem

MAX_PORT = 65535
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*", re.ASCII)
_MAX_HOST_NAME = 253

MAX_CERTIFICATE_NAMES = 200
"""So many of the longest names fit into 64 KiB, the largest certificate that every client accepts."""

_SHOWN = 100
"""Characters of a wrong name that a message shows."""

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def ip_of(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_loopback(address: IPAddress) -> bool:
    """Whether only this machine can reach it. Python before 3.13 does not look into ``::ffff:127.0.0.1``."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_host_name(text: str) -> bool:
    if len(text) > _MAX_HOST_NAME or _HOST_NAME.fullmatch(text) is None:
        return False
    return not text.rpartition(".")[2].isdecimal()  # 1.2.3.444 is a mistyped address, not a name


def ip_address(flag: str, text: str) -> list[Problem]:
    if ip_of(text) is None:
        return [Problem(flag, f'"{text}" is not an IP address', "such as 127.0.0.1, 0.0.0.0 or ::1")]
    return []


def reachable_address(flag: str, text: str) -> list[Problem]:
    """An address that a client can connect to: a name, or an IP address that is not "all interfaces"."""
    address = ip_of(text)
    if address is None and not is_host_name(text):
        return [Problem(flag, f'"{text}" is neither an IP address nor a host name')]
    if address is not None and address.is_unspecified:
        return [Problem(flag, f"{text} is no address that a client could connect to")]
    return []


def certificate_name(flag: str, text: str) -> list[Problem]:
    """A name for a certificate: a host name, which may begin with ``*.``, or an IP address."""
    address = ip_of(text)
    if address is not None:
        if address.is_unspecified:
            return [Problem(flag, f"{text} is no address that a client could connect to", "name the addresses")]
        return []
    if is_host_name(text.removeprefix("*.")):
        return []
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return [Problem(flag, f'"{shown}" is neither an IP address nor a DNS name', _certificate_name_hint(text))]


def certificate_names(flag: str, names: Sequence[str]) -> list[Problem]:
    if len(names) > MAX_CERTIFICATE_NAMES:
        why = f"{len(names)} names are more than the {MAX_CERTIFICATE_NAMES} that clients accept in a certificate"
        return [Problem(flag, why, "a wildcard such as *.example.com stands for many")]
    return [problem for name in names for problem in certificate_name(flag, name)]


def _certificate_name_hint(text: str) -> str:
    if "//" in text:
        return "without https:// and what follows the name"
    if "/" in text:
        return "a network cannot be in a certificate: name the addresses"
    if is_host_name(text.rpartition(":")[0]) or ip_of(text.rpartition(":")[0].strip("[]")) is not None:
        return "without the port"
    if "*" in text:
        return "a wildcard is the whole first part, such as *.example.com"
    return "such as registry.example.com, *.example.com or 10.0.0.5"


def port(flag: str, number: int) -> list[Problem]:
    return [] if 0 < number <= MAX_PORT else [Problem(flag, f"{number} is not a port: must be from 1 to {MAX_PORT}")]


def positive(flag: str, seconds: float) -> list[Problem]:
    return [] if seconds > 0 else [Problem(flag, "must be longer than 0s")]


def readable_file(flag: str, path: Path | None) -> list[Problem]:
    if path is None:
        return []
    try:
        if path.is_dir():
            return [Problem(flag, f"{path} is a directory, not a file")]
        with path.open("rb"):
            return []
    except OSError as error:
        return [Problem(flag, f"{path}: {os.strerror(error.errno) if error.errno else error}")]


def directory_or_nothing(flag: str, path: Path) -> list[Problem]:
    """A directory, or a path at which one can still be made."""
    try:
        return [Problem(flag, f"{path} is not a directory")] if path.exists() and not path.is_dir() else []
    except PermissionError:  # no mistake in the options: the start reports the owner
        return []
    except OSError as error:
        return [Problem(flag, f"{path}: {os.strerror(error.errno) if error.errno else error}")]
