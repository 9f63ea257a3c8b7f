"""``agent``: observes one cluster from inside, and writes its status into a registry."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.agent import identity
from clusterregistry.agent.certificate import DAYS
from clusterregistry.agent.identity import KubeconfigIdentity, cluster_of
from clusterregistry.agent.manifest import SECRET_KEY
from clusterregistry.agent.member import OwnMember
from clusterregistry.agent.program import USER_AGENT, Agent, AgentSettings
from clusterregistry.agent.renewal import FilePlace, Place, SecretPlace
from clusterregistry.api.clusterregistry.agents import LEAST_SECONDS, LONGEST_SECONDS
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import ADDRESS, DURATION, FILE, INTEGER, TEXT
from clusterregistry.cli.subcommand import Given, Subcommand
from clusterregistry.client import kubeconfig, rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest import Client
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.health_server import serve_health

_LEAST_INTERVAL = 1.0
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions(GeneralOptions):
    """The agent."""

    cluster: str = option(
        "", kind=TEXT, help="The name of the cluster in the registry.", default_shown="that of the certificate"
    )
    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the agent, from `clusterregistry join`. Its certificate renews itself there.",
        example="--kubeconfig=edge-agent/agent.kubeconfig",
    )
    kubeconfig_secret: str = option(
        "",
        kind=TEXT,
        help="The Secret of the member that --kubeconfig is mounted from, as NAMESPACE/NAME: it is changed instead of "
        "the file.",
    )
    member_kubeconfig: Path | None = option(
        None, kind=FILE, help="A kubeconfig of the member.", default_shown="the service account of the pod"
    )
    interval: float = option(
        30.0,
        kind=DURATION,
        help="Between two observations: the same as --cluster-status-interval of the registry, which takes a status "
        "for stale after three of them.",
    )
    bind_address: str = option(
        "127.0.0.1", kind=ADDRESS, help="Where /livez and /readyz are served, over HTTPS, if --secure-port is given."
    )
    secure_port: int = option(0, kind=INTEGER, help="The port of that server; 0 for none.")
    certificate_duration: float = option(
        DAYS * 86400.0, kind=DURATION, help="The validity to ask for when the certificate is renewed: 90 days at most."
    )


def _run(given: Given[AgentOptions]) -> int:
    options, kubeconfig_file = given.options, given.options.kubeconfig
    if kubeconfig_file is None:
        raise OptionsError(
            [Problem("--kubeconfig", "is required: the kubeconfig that `clusterregistry join` has made")]
        )
    _check(options)
    try:
        held = KubeconfigIdentity(kubeconfig_file)
        registry = identity.load(kubeconfig_file, user_agent=USER_AGENT)
    except ConfigError as error:
        raise OperatorError(str(error), remedy="make the kubeconfig with `clusterregistry join`") from None
    member_config, source = _member(given)
    member = OwnMember(member_config, source=source)
    settings = AgentSettings(
        cluster=_cluster(options.cluster, held),
        interval=options.interval,
        certificate_seconds=int(options.certificate_duration),
    )

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            place: Place = FilePlace(kubeconfig_file)
            if options.kubeconfig_secret:
                namespace, _, name = options.kubeconfig_secret.partition("/")
                client = await stack.enter_async_context(Client(member_config))
                place = SecretPlace(member=client, namespace=namespace, name=name, key=SECRET_KEY)
            agent = Agent(settings, registry=registry, identity=held, member=member, place=place)
            health = serve_health(agent.paths(), address=options.bind_address, port=options.secure_port)
            await stack.enter_async_context(health)
            await _until_signal(agent)

    asyncio.run(work())
    return exit_status.OK


def _check(options: AgentOptions) -> None:
    """Raises OptionsError."""
    problems = []
    if options.interval < _LEAST_INTERVAL:
        problems.append(Problem("--interval", "must be a second or more"))
    if not LEAST_SECONDS <= options.certificate_duration <= LONGEST_SECONDS:
        problems.append(Problem("--certificate-duration", "must be from 10 minutes to 90 days (2160h)"))
    namespace, _, name = options.kubeconfig_secret.partition("/")
    if options.kubeconfig_secret and not (namespace and name and "/" not in name):
        problems.append(Problem("--kubeconfig-secret", "must be NAMESPACE/NAME"))
    if not 0 <= options.secure_port <= _HIGHEST_PORT:
        problems.append(Problem("--secure-port", f"must be between 0 and {_HIGHEST_PORT}"))
    if problems:
        raise OptionsError(problems)


def _member(given: Given[AgentOptions]) -> tuple[RestConfig, str]:
    """The access to the member, and where it comes from. Raises OperatorError."""
    file = given.options.member_kubeconfig
    try:
        if file is not None:
            context = kubeconfig.load_file(file).context()
            config = rest_config.from_context(context, user_agent=USER_AGENT, read_files=True)
            return config, f"kubeconfig {file.name}"
        found = rest_config.in_cluster(given.environ, user_agent=USER_AGENT)
    except ConfigError as error:
        raise OperatorError(
            f"the member: {error}", remedy="name a kubeconfig of the member with --member-kubeconfig"
        ) from None
    if found is None:
        raise OperatorError(
            "this is no pod of a cluster, and --member-kubeconfig is not given",
            remedy="give a kubeconfig of the member with --member-kubeconfig",
        )
    return found, "service account of the pod"


def _cluster(wanted: str, held: KubeconfigIdentity) -> str:
    """Raises OperatorError if the certificate is that of another cluster, or of a person."""
    found = cluster_of(held.current().certificate)
    if not found:
        raise OperatorError(
            "the certificate in --kubeconfig is that of another user, and not that of an agent",
            remedy="make the kubeconfig with `clusterregistry join`",
        )
    if wanted not in ("", found):
        raise OperatorError(
            f"the certificate in --kubeconfig is that of the agent of {found}, not of {wanted}",
            remedy=f"leave --cluster out, or join as {wanted}",
        )
    return found


async def _until_signal(agent: Agent) -> None:
    """Runs the agent until the process is told to end."""
    work = asyncio.create_task(agent.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


AGENT: Subcommand[AgentOptions] = Subcommand(
    help="""\
Observes the cluster that it runs in or beside, writes its status into a registry, and renews its own certificate.

It only connects to others: without --secure-port nothing listens. `PROGRAM join` makes its kubeconfig.

Usage:
  PROGRAM agent --kubeconfig=FILE [--member-kubeconfig=FILE] [flags]

Examples:
  # Beside the cluster, such as in systemd
  PROGRAM agent --kubeconfig=edge-1-agent/agent.kubeconfig --member-kubeconfig=member.kubeconfig

Exit status: 0 after SIGTERM or SIGINT, 2 for mistakes in the command line, 3 if it cannot start.
""",
    options=OptionSet(shape=AgentOptions, program="clusterregistry"),
    run=_run,
)
