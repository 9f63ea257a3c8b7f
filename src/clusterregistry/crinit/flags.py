"""The command line: each flag stated once, and all mistakes told at once.

Flags are read the way Go programs do, since v0.0.3 was one: ``--flag=value``, ``--flag value``, booleans bare or with
``=false``. Those of v0.0.3 keep their names.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterregistry.cli.options.problems import nearest
from clusterregistry.crinit.settings import DEFAULT_CAPACITY, DEFAULT_ETCD_IMAGE, DEFAULT_IMAGE, DEFAULT_NAMESPACE

INIT = "init"
DELETE = "delete"
STATUS = "status"
UPGRADE = "upgrade"
COMMANDS = (INIT, DELETE, STATUS, UPGRADE)

_EVERYWHERE = frozenset(COMMANDS)
_DEPLOYING = frozenset({INIT})
_APPLYING = frozenset({INIT, UPGRADE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag. ``remembered``: a later run for the same registry need not repeat it."""

    name: str
    value: str
    help: str
    default: str = ""
    commands: frozenset[str] = _DEPLOYING
    remembered: bool = True

    @property
    def is_boolean(self) -> bool:
        return self.value == "BOOL"


FLAGS = (
    Flag(name="kubeconfig", value="FILE", commands=_EVERYWHERE, remembered=False,
         help="the kubeconfig to read and to add the registry to (default: $KUBECONFIG, else ~/.kube/config)"),
    Flag(name="host-cluster-context", value="CONTEXT", commands=_EVERYWHERE, remembered=False,
         help="the context of the cluster to deploy into (default: the current context)"),
    Flag(name="cluster-registry-namespace", value="NAMESPACE", default=DEFAULT_NAMESPACE, commands=_EVERYWHERE,
         remembered=False, help="the namespace in the host cluster"),
    Flag(name="image", value="IMAGE", default=DEFAULT_IMAGE, commands=_APPLYING,
         help="the image of the server, which the nodes must find"),
    Flag(name="replicas", value="NUMBER", default="1",
         help="servers that run at once; more than one keep their objects in etcd"),
    Flag(name="api-server-service-type", value="TYPE",
         help="LoadBalancer, NodePort or ClusterIP (default: LoadBalancer standalone, ClusterIP aggregated)"),
    Flag(name="api-server-advertise-address", value="ADDRESS",
         help="the address or name by which clients reach the service (default: found out; not for LoadBalancer)"),
    Flag(name="api-server-port", value="PORT", default="0", help="the port of a NodePort service; 0: any free one"),
    Flag(name="apiserver-enable-token-auth", value="BOOL", default="false",
         help="make a token for the administrator too; standalone only"),
    Flag(name="audit-log", value="BOOL", default="true",
         help="record who changed what: the server writes audit events to its log, see `kubectl logs`"),
    Flag(name="network-policy", value="BOOL", default="true",
         help="let only the registry's own pods reach its etcd, where the host's network knows NetworkPolicies"),
    Flag(name="apiserver-arg-overrides", value="ARGS",
         help="arguments of the server to set or replace: --arg1=value1,--arg2=value2"),
    Flag(name="etcd-persistent-storage", value="BOOL", default="true",
         help="keep the data on a persistent volume (SQLite's as well); false: they go with the pod"),
    Flag(name="etcd-pv-capacity", value="QUANTITY", default=DEFAULT_CAPACITY, help="the size of each volume"),
    Flag(name="etcd-pv-storage-class", value="CLASS", help="another name of --storage-class, that of v0.0.3"),
    Flag(name="storage-class", value="CLASS", help="the storage class of the volumes (default: the host's default)"),
    Flag(name="etcd-image", value="IMAGE", default=DEFAULT_ETCD_IMAGE,
         help="the image of etcd, where three members are deployed for --replicas"),
    Flag(name="etcd-servers", value="URL,URL", help="an etcd that is there already, in place of one of our own"),
    Flag(name="etcd-cafile", value="FILE", remembered=False, help="the authority of --etcd-servers"),
    Flag(name="etcd-certfile", value="FILE", remembered=False, help="our client certificate for --etcd-servers"),
    Flag(name="etcd-keyfile", value="FILE", remembered=False, help="the key of --etcd-certfile"),
    Flag(name="timeout", value="DURATION", default="5m", commands=_APPLYING, remembered=False,
         help="how long to wait for each thing that takes its time"),
    Flag(name="dry-run", value="BOOL", default="false", commands=frozenset({INIT, UPGRADE, DELETE}), remembered=False,
         help="change nothing; tell what would be done"),
    Flag(name="output", value="yaml", commands=frozenset({INIT, UPGRADE}), remembered=False,
         help="(or -o) with --dry-run: print what would be applied, as manifests"),
    Flag(name="keep-data", value="BOOL", default="false", commands=frozenset({DELETE}), remembered=False,
         help="leave volumes, certificates and credentials, so that a later init finds them again"),
)  # fmt: skip

BY_NAME = {flag.name: flag for flag in FLAGS}
_INDENT = " " * 6
_SHORT = {"o": "output"}
_KUBECTL = {
    "context": "host-cluster-context",
    "cluster": "host-cluster-context",
    "namespace": "cluster-registry-namespace",
    "n": "cluster-registry-namespace",
}
"""What kubectl and helm call a flag of ours: a hint, not another name."""
_WORDS = 3
"""Mode, command and name: what follows an unknown flag behind these is its value."""
REMEMBERED = frozenset(flag.name for flag in FLAGS if flag.remembered)


@dataclass(slots=True)
class Reading:
    """What a command line gave: positional words, flags as text, and what is wrong."""

    words: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read(arguments: Sequence[str]) -> Reading:
    """Takes a command line apart. Never raises."""
    reading = Reading()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument.startswith("-") and argument != "-":
            _read_flag(argument, rest, reading)
        else:
            reading.words.append(argument)
    return reading


def _read_flag(argument: str, rest: list[str], reading: Reading) -> None:
    name, equals, text = argument.lstrip("-").partition("=")
    flag = BY_NAME.get(_SHORT.get(name, name))
    if flag is None:
        if not equals and len(reading.words) >= _WORDS and rest and not rest[0].startswith("-"):
            rest.pop(0)  # one complaint about a flag is enough
        near = _KUBECTL.get(name) or nearest(name, BY_NAME)
        hint = f"; did you mean --{near}?" if near else ""
        reading.problems.append(f"unknown flag {argument.partition('=')[0]}{hint}")
        return
    if equals:
        reading.given[flag.name] = text
    elif flag.is_boolean:
        reading.given[flag.name] = "true"
    elif rest and _may_be_value(flag, rest[0]):
        reading.given[flag.name] = rest.pop(0)
    else:
        reading.problems.append(f"--{flag.name} needs a value: --{flag.name}={flag.value}")


def _may_be_value(flag: Flag, text: str) -> bool:
    """What begins with dashes is the next flag after a forgotten value, but for the flag that takes such."""
    return flag.name == "apiserver-arg-overrides" or not text.startswith("--")


def misplaced(reading: Reading, command: str) -> list[str]:
    """Flags that exist, but not for this command."""
    return [
        f"--{name} is not for {command}, only for {', '.join(sorted(BY_NAME[name].commands))}"
        for name in reading.given
        if command not in BY_NAME[name].commands
    ]


def remembered(given: Mapping[str, str]) -> dict[str, str]:
    """What a later run for the same registry need not repeat."""
    return {name: text for name, text in given.items() if name in REMEMBERED}


def help_lines(listed: Sequence[Flag]) -> list[str]:
    """Flags for people."""
    lines = []
    for flag in listed:
        default = f" (default: {flag.default})" if flag.default else ""
        lines += [
            f"  --{flag.name}={flag.value}",
            *textwrap.wrap(f"{flag.help}{default}", 110, initial_indent=_INDENT, subsequent_indent=_INDENT),
        ]
    return lines
