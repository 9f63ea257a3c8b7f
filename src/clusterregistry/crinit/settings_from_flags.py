"""From flags as text to ``Settings``. Every mistake is named, not only the first."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from clusterregistry.apiserver.webhooks import tls
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.crinit.flags import BY_NAME
from clusterregistry.crinit.settings import (
    LONGEST_NAME,
    EtcdFiles,
    Mode,
    ServiceType,
    Settings,
    split_arguments,
)

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII | re.IGNORECASE)
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?", re.ASCII)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", re.ASCII)
_MOST_REPLICAS = 100
_LAST_PORT = 65535
_LONGEST_LABEL = 63


class Choices:
    """Looks through flags and collects what is wrong with them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self._given.get(name, BY_NAME[name].default)

    def parsed(self, name: str, parse: Callable[[str], T], fallback: T) -> T:
        """A flag's value; a problem and the fallback when ``parse`` raises ValueError."""
        try:
            return parse(self.text(name))
        except ValueError as error:
            self.problems.append(f'--{name}="{self.text(name)}": {error}')
            return fallback

    def flag(self, name: str) -> bool:
        return self.parsed(name, _boolean, fallback=False)

    def finish(self) -> None:
        if self.problems:
            raise OptionsError([Problem("", each) for each in self.problems])


def settings(mode: Mode, name: str, given: Mapping[str, str]) -> Settings:
    """What these flags ask for. Raises OptionsError."""
    choices = Choices(given)
    chosen = _chosen(choices, mode, name)
    choices.problems += _disagreements(chosen)
    choices.finish()
    return chosen


def mistakes(mode: Mode, name: str, given: Mapping[str, str]) -> list[str]:
    """What is wrong with each flag by itself: whether they go together depends on those of former runs too."""
    choices = Choices(given)
    _chosen(choices, mode, name)
    choices.parsed("timeout", _duration, 0.0)
    for flag in ("dry-run", "keep-data"):
        choices.flag(flag)
    return choices.problems


def _chosen(choices: Choices, mode: Mode, name: str) -> Settings:
    choices.problems += name_problems(name)
    return Settings(
        mode=mode,
        name=name,
        namespace=choices.parsed("cluster-registry-namespace", _namespace, ""),
        image=choices.parsed("image", _image, ""),
        replicas=choices.parsed("replicas", _number(1, _MOST_REPLICAS), 1),
        service_type=_service_type(choices, mode),
        advertise_address=choices.parsed("api-server-advertise-address", _address, ""),
        node_port=choices.parsed("api-server-port", _number(0, _LAST_PORT), 0),
        token_auth=choices.flag("apiserver-enable-token-auth"),
        audit=choices.flag("audit-log"),
        network_policy=choices.flag("network-policy"),
        persistent=choices.flag("etcd-persistent-storage"),
        capacity=choices.parsed("etcd-pv-capacity", _quantity, ""),
        storage_class=choices.text("storage-class") or choices.text("etcd-pv-storage-class"),
        etcd_image=choices.parsed("etcd-image", _image, ""),
        etcd_servers=choices.parsed("etcd-servers", _urls, ()),
        etcd_files=_etcd_files(choices),
        argument_overrides=choices.parsed("apiserver-arg-overrides", _arguments, ()),
    )


def name_problems(name: str) -> list[str]:
    """What keeps a word from being the name of a registry."""
    if len(name) <= LONGEST_NAME and _LABEL.fullmatch(name):
        return []
    rule = f'letters a to z, digits and "-", at most {LONGEST_NAME}; first a letter, last no "-"'
    return [f'the name "{name}": must be {rule}']


def _disagreements(chosen: Settings) -> list[str]:
    """Flags that are well formed and do not go together."""
    found = []
    if chosen.mode is Mode.AGGREGATED and chosen.token_auth:
        found.append(
            "--apiserver-enable-token-auth: an aggregated registry knows the users of its host cluster; leave it out"
        )
    if chosen.node_port and chosen.service_type is not ServiceType.NODE_PORT:
        found.append("--api-server-port: needs --api-server-service-type=NodePort")
    if chosen.advertise_address and chosen.service_type is ServiceType.LOAD_BALANCER:
        found.append("--api-server-advertise-address: a LoadBalancer has its own; use NodePort or ClusterIP")
    if bool(chosen.etcd_files) and not chosen.etcd_servers:
        found.append("--etcd-cafile, --etcd-certfile, --etcd-keyfile: need --etcd-servers")
    if bool(chosen.etcd_files.certificate) != bool(chosen.etcd_files.key):
        found.append("--etcd-certfile and --etcd-keyfile must be given together")
    return found


def seconds(given: Mapping[str, str]) -> float:
    """--timeout. Raises OptionsError."""
    choices = Choices(given)
    found = choices.parsed("timeout", _duration, 0.0)
    choices.finish()
    return found


def truth(given: Mapping[str, str], name: str) -> bool:
    """A boolean flag. Raises OptionsError."""
    choices = Choices(given)
    found = choices.flag(name)
    choices.finish()
    return found


def _service_type(choices: Choices, mode: Mode) -> ServiceType:
    default = ServiceType.LOAD_BALANCER if mode is Mode.STANDALONE else ServiceType.CLUSTER_IP
    if not choices.text("api-server-service-type"):
        return default
    return choices.parsed("api-server-service-type", lambda text: _member(ServiceType, text), default)


def _etcd_files(choices: Choices) -> EtcdFiles:
    return EtcdFiles(
        authority=choices.parsed("etcd-cafile", _content, b""),
        certificate=choices.parsed("etcd-certfile", _content, b""),
        key=choices.parsed("etcd-keyfile", _content, b""),
    )


def _member(kind: type[E], text: str) -> E:
    for member in kind:
        if member.lower() == text.lower():
            return member
    raise ValueError(f"must be one of {', '.join(kind)}")


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in {"true", "1", "t"}:
        return True
    if lowered in {"false", "0", "f"}:
        return False
    raise ValueError("must be true or false")


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
            raise ValueError(f"must be a number from {least} to {most}")
        return int(text)

    return parse


def _namespace(text: str) -> str:
    if len(text) > _LONGEST_LABEL or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text, re.ASCII):
        raise ValueError('must be lower case letters, digits and "-", at most 63 of them')
    return text


def _image(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must name an image, such as registry.example.com/clusterregistry:1.0")
    return text


def _address(text: str) -> str:
    if not text or _HOST.fullmatch(text):
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("must be an IP address or a host name, without port") from None


def _quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text):
        raise ValueError("must be a size such as 10Gi")
    return text


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not text or not found:
        raise ValueError("must be a duration such as 90s, 5m or 1h30m")
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return float(hours * 3600 + minutes * 60 + rest)


def _urls(text: str) -> tuple[str, ...]:
    urls = tuple(part for part in text.split(",") if part)
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url} is not a URL such as https://etcd-1.example.com:2379")
    return urls


def _arguments(text: str) -> tuple[str, ...]:
    found = split_arguments(text)
    if wrong := [part for part in found if not part.startswith("--") or part == "--"]:
        raise ValueError(f"{wrong[0]} is no argument such as --v=1")
    return found


def _content(text: str) -> bytes:
    return tls.content(Path(text)) if text else b""
