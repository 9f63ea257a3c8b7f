"""``clusterregistry controller``: its options, and how it runs until a signal comes."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import secrets
import signal
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import uvloop

from clusterregistry import __version__
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.malloc import trim_malloc
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import ADDRESS, BOOLEAN, DURATION, FILE, INTEGER, TEXT, WORDS
from clusterregistry.cli.subcommand import Given, Subcommand
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.leader_election import LeaderElectionConfig
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.access import open_access
from clusterregistry.controllers.controller import Controller, ControllerSettings
from clusterregistry.controllers.health_server import serve_health
from clusterregistry.controllers.observer.settings import ObserverSettings
from clusterregistry.controllers.registry_config import find_config
from clusterregistry.controllers.status import StatusSettings
from clusterregistry.controllers.status_writer import WriterSettings

_log = logging.getLogger(__name__)

USER_AGENT = f"clusterregistry-controller/{__version__}"
LEASE = "clusterregistry-controller"
_HIGHEST_PORT = 65535
_SHORTEST_INTERVAL = 1.0
_MOST_ROUNDS = 4096
_BREAKER_INTERVALS, _LONGEST_BREAKER_INTERVALS = 2, 10

HELP = """\
PROGRAM controller observes the clusters of a registry and writes their status: state, conditions, nodes.

It asks each cluster every half a minute, with the credentials that the access file gives it. Start any number of
controllers: one of them leads, and another one takes over when it ends. What the states mean, and what to do about
each: docs/guides/status.md.

Usage:
  PROGRAM controller --kubeconfig FILE --access-config FILE [flags]

Examples:
  # Beside a registry that runs on this machine
  PROGRAM controller --kubeconfig ~/.local/share/clusterregistry/admin.kubeconfig --access-config access.yaml

  # In a pod of the host cluster of an aggregated registry
  PROGRAM controller --access-config /etc/clusterregistry/access/access.yaml --bind-address 0.0.0.0

  # How many clusters are in which state, and why
  curl --insecure https://127.0.0.1:8444/metrics

  An access file for credentials in a folder, NAME.token or NAME.kubeconfig:

    apiVersion: clusterregistry.k8s.io/v1alpha1
    kind: AccessConfiguration
    rules:
    - match: {}
      use: {file: {directory: /etc/clusters}}

Exit status: 0 after SIGTERM or SIGINT, 2 for mistakes in the command line, 3 if it cannot start.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions(GeneralOptions):
    """Controller."""

    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the registry.",
        default_shown="$KUBECONFIG, else the service account of the pod, else ~/.kube/config",
        example="--kubeconfig=registry.kubeconfig",
    )
    context: str = option("", kind=TEXT, help="The context of the kubeconfig.", default_shown="the current one")
    access_config: Path | None = option(
        None,
        kind=FILE,
        help="The file with the rules by which clusters get their credentials. It is read again when it changes. "
        "Required.",
        default_shown="none",
        example="--access-config=access.yaml",
    )
    bind_address: str = option(
        "127.0.0.1",
        kind=ADDRESS,
        help="Where /livez, /readyz and /metrics are served, over HTTPS, to any client.",
        example="--bind-address=0.0.0.0",
    )
    secure_port: int = option(8444, kind=INTEGER, help="The port of that server; 0 for none.")
    leader_elect: bool = option(
        True, kind=BOOLEAN, help="Observe only as the leader. When false, no other controller may run."
    )
    leader_elect_resource_name: str = option(LEASE, kind=TEXT, help="The name of the Lease of the leader.")
    leader_elect_resource_namespace: str = option(
        "kube-system", kind=TEXT, help="The namespace of the Lease of the leader."
    )
    leader_elect_lease_duration: float = option(
        15.0,
        kind=DURATION,
        help="The time after which another controller takes over from a leader that does not renew its Lease.",
    )
    leader_elect_renew_deadline: float = option(
        10.0, kind=DURATION, help="The time after which a leader that cannot renew its Lease stops."
    )
    leader_elect_retry_period: float = option(
        2.0, kind=DURATION, help="The pause between two attempts to take or renew the Lease."
    )
    interval: float = option(
        30.0,
        kind=DURATION,
        help="How often a cluster is observed, and the longest pause between two writes of its status. The registry "
        "has the same as --cluster-status-interval.",
        example="--interval=1m",
    )
    node_interval: float = option(60.0, kind=DURATION, help="How often the nodes of a cluster are listed.")
    probe_timeout: float = option(
        5.0, kind=DURATION, help="The time that a cluster has for all answers of one observation."
    )
    concurrency: int = option(64, kind=INTEGER, help="How many clusters are observed at once, apart from slow ones.")
    expiry_warning: float = option(
        14 * 86400.0,
        kind=DURATION,
        help="How long before its end a certificate or a credential counts as expiring.",
        example="--expiry-warning=720h",
    )
    client_addresses: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The addresses by which clusters see this controller, for the choice among the server addresses of a "
        "cluster by clientCIDR. Needed behind NAT.",
        default_shown="those of its own routes",
        example="--client-addresses=203.0.113.7",
    )


def load() -> Subcommand[ControllerOptions]:
    """The command, for the list of commands."""
    options = OptionSet(
        shape=ControllerOptions, program="clusterregistry", environment_prefix="CLUSTERREGISTRY_CONTROLLER_"
    )
    return Subcommand(help=HELP, options=options, run=run)


def run(given: Given[ControllerOptions]) -> int:
    """Observes until SIGTERM or SIGINT. Raises OptionsError and OperatorError."""
    options = given.options
    settings = settings_of(options)
    assert options.access_config is not None  # settings_of has refused that
    access = open_access(options.access_config)
    config = registry_config(options, given.environ)

    async def serve() -> None:
        controller = Controller(config, access, settings)
        try:
            async with serve_health(controller.paths(), address=options.bind_address, port=options.secure_port):
                _log.info("%s observes the clusters of %s", settings.identity, config.server)
                await _until_signal(controller)
        finally:
            await access.close()

    trim_malloc()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # asyncio's own uses 256 KB a connection
            runner.run(serve())
    except ConfigError as error:
        raise _unusable(error) from None
    _log.info("the controller has ended")
    return exit_status.OK


async def _until_signal(controller: Controller) -> None:
    """Runs the controller until SIGTERM or SIGINT; then it releases the Lease, so that another one takes over."""
    running = asyncio.create_task(controller.run())
    with _signals(running), contextlib.suppress(asyncio.CancelledError):
        await running


@contextlib.contextmanager
def _signals(task: asyncio.Task[None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handled = (signal.SIGTERM, signal.SIGINT)
    for number in handled:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def settings_of(options: ControllerOptions) -> ControllerSettings:
    """The settings that the options give. Raises OptionsError with every mistake."""
    problems = list(_problems(options))
    election = None
    identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
    if options.leader_elect:
        try:
            election = LeaderElectionConfig(
                name=options.leader_elect_resource_name,
                identity=identity,
                lease_duration=options.leader_elect_lease_duration,
                renew_deadline=options.leader_elect_renew_deadline,
                retry_period=options.leader_elect_retry_period,
            )
        except ValueError as error:
            problems.append(_election_problem(error))
    if problems:
        raise OptionsError(problems)
    return ControllerSettings(
        identity=identity,
        election=election,
        lease_namespace=options.leader_elect_resource_namespace,
        observer=ObserverSettings(
            interval=options.interval,
            node_interval=options.node_interval,
            deadline=options.probe_timeout,
            breaker_pause=_BREAKER_INTERVALS * options.interval,
            breaker_longest_pause=_LONGEST_BREAKER_INTERVALS * options.interval,
            concurrency=options.concurrency,
            addresses=options.client_addresses,
            user_agent=USER_AGENT,
        ),
        status=StatusSettings(
            interval=options.interval, node_interval=options.node_interval, expiry_warning=options.expiry_warning
        ),
        writer=WriterSettings(heartbeat=options.interval),
    )


def _problems(options: ControllerOptions) -> Iterator[Problem]:
    if options.access_config is None:
        yield Problem("--access-config", "is required", "--access-config=access.yaml; the help has an example")
    if not 0 <= options.secure_port <= _HIGHEST_PORT:
        yield Problem("--secure-port", f"must be between 0 and {_HIGHEST_PORT}")
    for flag, value in (
        ("--interval", options.interval),
        ("--node-interval", options.node_interval),
        ("--probe-timeout", options.probe_timeout),
    ):
        if value < _SHORTEST_INTERVAL:
            yield Problem(flag, "must be 1s or more")
    if options.probe_timeout > options.interval:
        yield Problem("--probe-timeout", "must not be longer than --interval")
    if not 1 <= options.concurrency <= _MOST_ROUNDS:
        yield Problem("--concurrency", f"must be between 1 and {_MOST_ROUNDS}")
    for address in options.client_addresses:
        if not _is_address(address):
            yield Problem("--client-addresses", f'"{address}" is no IP address')
    yield from _lease_problems(options)


def _lease_problems(options: ControllerOptions) -> Iterator[Problem]:
    if not options.leader_elect_resource_namespace:
        yield Problem("--leader-elect-resource-namespace", "must not be empty")
    if wrong := name_errors(options.leader_elect_resource_name):
        yield Problem("--leader-elect-resource-name", wrong[0])


def _election_problem(error: ValueError) -> Problem:
    """The problem in the words of the flags."""
    text = str(error)
    for name in ("lease_duration", "renew_deadline", "retry_period"):
        text = text.replace(name, f"--leader-elect-{name.replace('_', '-')}")
    return Problem("", text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def registry_config(options: ControllerOptions, environ: Mapping[str, str]) -> RestConfig:
    """The access to the registry. Raises OperatorError."""
    try:
        return find_config(environ, file=options.kubeconfig, context=options.context, user_agent=USER_AGENT)
    except ConfigError as error:
        raise _unusable(error) from None


def _unusable(error: ConfigError) -> OperatorError:
    return OperatorError(
        f"the kubeconfig of the registry cannot be used: {error}",
        remedy="name a kubeconfig of the registry by --kubeconfig; a standalone registry writes one into its data "
        "directory, admin.kubeconfig",
    )
