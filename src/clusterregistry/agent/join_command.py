"""``join``: makes the identity of an agent on a member, and what is to be applied there."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from clusterregistry import __version__
from clusterregistry.agent import identity, manifest, trust
from clusterregistry.agent.certificate import DAYS
from clusterregistry.agent.join import Joined, JoinRequest, join, read_cluster_id
from clusterregistry.api.clusterregistry.agents import LEAST_SECONDS, LONGEST_SECONDS, split_token
from clusterregistry.apimachinery import operator_error
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN, DURATION, FILE, TEXT, Kind
from clusterregistry.cli.output import OUTPUT, TABLE, Output, rendered
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.client import credentials, kubeconfig, rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig

KUBECONFIG_FILE, MANIFEST_FILE = "agent.kubeconfig", "agent.yaml"
_STANDARD_OUTPUT = "-"
_USER_AGENT = "clusterregistry-join"
_CA_HASH: Kind[str] = Kind(metavar="sha256:HEX", parse=trust.parse_hash, empty_is_default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """Joining."""

    server: str = option(
        "", kind=TEXT, help="The URL of the registry.", example="--server=https://registry.example.com:8443"
    )
    token: str = option("", kind=TEXT, help="The bootstrap token, from `clusterregistry join-token create`.")
    token_file: Path | None = option(
        None, kind=FILE, help="A file with the token: a command line can be read by every user of a machine."
    )
    ca_hash: str = option(
        "",
        kind=_CA_HASH,
        help="The hash of the public key of an authority that the registry presents. `join-token create` prints it.",
    )
    ca_file: Path | None = option(None, kind=FILE, help="The authority of the registry, in PEM, instead of its hash.")
    member_kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="A kubeconfig of the member, to read the UID of its kube-system namespace: the identity of the cluster.",
        default_shown="the service account of the pod, else $KUBECONFIG, else ~/.kube/config",
    )
    without_member: bool = option(
        False, kind=BOOLEAN, help="Do not ask the member for its identity: the Cluster gets no clusterID."
    )
    member_context: str = option("", kind=TEXT, help="The context in that kubeconfig.", default_shown="the current one")
    out: str = option(
        "",
        kind=TEXT,
        help=f"The directory for {KUBECONFIG_FILE} and {MANIFEST_FILE}; `-` prints the manifest instead, for `kubectl "
        "apply -f -`. Both hold a private key.",
        default_shown="NAME-agent",
    )
    image: str = option(
        f"clusterregistry:{__version__}",
        kind=TEXT,
        help="The image of the agent, which the member must be able to pull.",
    )
    certificate_duration: float = option(
        DAYS * 86400.0,
        kind=DURATION,
        help="The validity of the agent's certificate, which renews itself: 90 days at most.",
    )
    timeout: float = option(60.0, kind=DURATION, help="How long to wait for the certificate.")
    output: Output = option("table", kind=OUTPUT, short="o", help="For people, or `json` or `yaml` for programs.")


def _run(given: Given[JoinOptions]) -> int:
    options = given.options
    token = _token(options)
    _check(options, token)
    authorities = _authorities(options)
    member = _member(given)
    name = given.operands[0] if given.operands else ""

    async def work() -> Joined:
        cluster_id = await read_cluster_id(member) if member else ""
        request = JoinRequest(
            server=options.server.rstrip("/"),
            authorities=authorities,
            token=token,
            name=name,
            cluster_id=cluster_id,
            seconds=int(options.certificate_duration),
            patience=options.timeout,
        )
        return await join(request, say=complain)

    joined = asyncio.run(work())
    _deliver(options, joined)
    return exit_status.OK


def _token(options: JoinOptions) -> str:
    if options.token or options.token_file is None:
        return options.token
    try:
        return credentials.read_token(options.token_file)
    except ConfigError as error:
        raise OperatorError(f"--token-file: {error}", remedy="name a file with the token, and nothing else") from None


def _check(options: JoinOptions, token: str) -> None:
    """Raises OptionsError."""
    problems = []
    if not options.server.startswith("https://"):
        problems.append(Problem("--server", "must be the https URL of the registry", "https://HOST:PORT"))
    if split_token(token) is None:
        problems.append(Problem("--token", "is no bootstrap token: these have the form ID.SECRET"))
    if bool(options.ca_file) == bool(options.ca_hash):
        problems.append(Problem("--ca-hash", "give one of --ca-hash and --ca-file: the registry is always verified"))
    if options.token and options.token_file is not None:
        problems.append(Problem("--token", "cannot be combined with --token-file"))
    if options.out == _STANDARD_OUTPUT and options.output != TABLE:
        problems.append(Problem("-o", f"cannot be combined with --out={_STANDARD_OUTPUT}, which prints the manifest"))
    if not options.timeout:
        problems.append(Problem("--timeout", "must be more than 0s"))
    if not LEAST_SECONDS <= options.certificate_duration <= LONGEST_SECONDS:
        problems.append(Problem("--certificate-duration", "must be from 10 minutes to 90 days (2160h)"))
    if problems:
        raise OptionsError(problems)


def _authorities(options: JoinOptions) -> bytes:
    if options.ca_file is None:
        return trust.authority_with_hash(options.server, options.ca_hash)
    try:
        found = credentials.read_file(options.ca_file)
        credentials.tls_context(authorities=found, insecure=False)
    except ConfigError as error:
        raise OperatorError(f"--ca-file: {error}", remedy="name the file with the authority of the registry") from None
    return found


def _member(given: Given[JoinOptions]) -> RestConfig | None:
    """The access to the member; None if it is not asked."""
    options = given.options
    if options.without_member:
        return None
    try:
        inside = (
            rest_config.in_cluster(given.environ, user_agent=_USER_AGENT) if not options.member_kubeconfig else None
        )
        if inside is not None:
            return inside
        paths = kubeconfig.paths(
            given.environ, explicit=str(options.member_kubeconfig or ""), flag="--member-kubeconfig"
        )
        context = kubeconfig.load(paths).context(options.member_context)
        return rest_config.from_context(context, user_agent=_USER_AGENT, read_files=True)
    except ConfigError as error:
        raise OperatorError(
            f"the member: {error}",
            remedy="name a kubeconfig of the member with --member-kubeconfig, or join without its identity: "
            "--without-member",
        ) from None


def _deliver(options: JoinOptions, joined: Joined) -> None:
    deployed = manifest.Deployed(
        cluster=joined.name,
        kubeconfig=joined.kubeconfig,
        image=options.image,
        certificate_seconds=int(options.certificate_duration),
    )
    text = manifest.as_yaml(manifest.objects(deployed))
    if options.out == _STANDARD_OUTPUT:
        say(text.rstrip("\n"))
        return
    directory = Path(options.out or f"{joined.name}-agent")
    _make(directory)
    identity.write(directory / KUBECONFIG_FILE, joined.kubeconfig)
    identity.write(directory / MANIFEST_FILE, text.encode())
    if options.output != TABLE:
        say(rendered(_described(joined, directory), options.output))
    else:
        say(*_next_steps(joined, directory, member=options.member_kubeconfig))


def _make(directory: Path) -> None:
    """Raises OperatorError."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message, _ = operator_error.explain(directory, error, action="made")
        raise OperatorError(message, remedy="name another directory with --out") from None


def _described(joined: Joined, directory: Path) -> dict[str, object]:
    return {
        "cluster": joined.name,
        "uid": joined.uid,
        "created": joined.created,
        "kubeconfig": str(directory / KUBECONFIG_FILE),
        "manifest": str(directory / MANIFEST_FILE),
        "notes": list(joined.notes),
    }


def _next_steps(joined: Joined, directory: Path, *, member: Path | None) -> list[str]:
    of_member = f"{member or 'MEMBER-KUBECONFIG'}"
    command = f"clusterregistry agent --cluster={joined.name} --kubeconfig={directory / KUBECONFIG_FILE}"
    return [
        f"This member has joined as {joined.name}. Next, start its agent, in the member:",
        "",
        f"  kubectl --kubeconfig={of_member} apply -f {directory / MANIFEST_FILE}",
        "",
        "or beside it:",
        "",
        f"  {command} --member-kubeconfig={of_member}",
        "",
        f"Both files hold the agent's private key: delete {MANIFEST_FILE} once it is applied.",
        *(f"Note: {note}." for note in joined.notes),
    ]


JOIN: Subcommand[JoinOptions] = Subcommand(
    help="""\
Joins a registry from a member: makes the Cluster, if it is missing, and the kubeconfig and the manifest of an agent.

The registry's administrator makes the token and this command: `PROGRAM join-token create NAME`. A join that is repeated
makes another certificate, and keeps the Cluster.

Usage:
  PROGRAM join [NAME] --server=URL --token=TOKEN --ca-hash=sha256:HEX [flags]

Examples:
  # With a kubeconfig of the member; then apply edge-1-agent/agent.yaml there
  PROGRAM join --server=URL --token=TOKEN --ca-hash=HASH --member-kubeconfig=member.kubeconfig

  # Without a file in between
  PROGRAM join --server=URL --token=TOKEN --ca-hash=HASH --out=- | kubectl --kubeconfig=member.kubeconfig apply -f -
""",
    options=OptionSet(shape=JoinOptions, program="clusterregistry"),
    operands=Operands(most=1),
    run=_run,
)
