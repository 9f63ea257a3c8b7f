"""``clusterregistry access check [NAME]``: tries the access to clusters by an ``access.yaml``."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

import orjson

from clusterregistry import __version__
from clusterregistry.api.clusterregistry.agents import has_agent
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.duration import human_duration
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import DURATION, FILE, INTEGER, TEXT, WORDS, choice
from clusterregistry.cli.progress import Progress, counted
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.cli.table import table_lines
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.access import clusters
from clusterregistry.controllers.access.check import Checked, check_clusters
from clusterregistry.controllers.access.rules import open_access
from clusterregistry.controllers.observer.settings import ObserverSettings
from clusterregistry.controllers.registry_config import find_config

PROGRAM = "clusterregistry"
USER_AGENT = f"clusterregistry-access-check/{__version__}"
_MAX_CONCURRENCY = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(GeneralOptions):
    """Check."""

    access_config: Path | None = option(
        None,
        kind=FILE,
        help="The access.yaml to try: which credential is for which cluster.",
        example="--access-config=/etc/clusterregistry/access.yaml",
    )
    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the registry.",
        default_shown="$KUBECONFIG, else the service account of the pod, else ~/.kube/config",
    )
    context: str = option("", kind=TEXT, help="The context in the kubeconfig.", default_shown="the current context")
    cluster_file: Path | None = option(
        None,
        kind=FILE,
        help="A YAML file with the clusters, instead of those of a registry.",
        example="--cluster-file=clusters.yaml",
    )
    host_kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the host cluster, for the resolvers `secret` and `tokenRequest`.",
        default_shown="the service account of this pod",
    )
    selector: str = option(
        "", kind=TEXT, short="l", help="Which clusters to try, by their labels.", example="--selector=env=prod"
    )
    output: Literal["table", "json", "yaml"] = option(
        "table",
        kind=choice("table", "json", "yaml"),
        short="o",
        help="How the result is printed: a table for people, `json` or `yaml` for programs.",
        example="-o json",
    )
    concurrency: int = option(16, kind=INTEGER, help="How many clusters are tried at once, up to 256.")
    timeout: float = option(5.0, kind=DURATION, help="How long all requests to one cluster may take.")
    client_addresses: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The addresses by which clusters see the controller, to choose an endpoint by its clientCIDR.",
        default_shown="those of the routes of this machine",
    )


HELP = """\
Tries the access to clusters by an access.yaml.

For one cluster, or for all: which rule matches, where its credential comes from and when it ends, and whether the
cluster accepts it. Each cluster is asked once, as the controller asks it. Clusters with an agent, which the controller
leaves to it, are tried only by NAME. Credentials are never shown.

Usage:
  PROGRAM access check [NAME] --access-config FILE [flags]

Exit status: 0 all clusters are fine, 1 some are not, 2 for mistakes in the command line, 3 if nothing could be tried.
"""


def load() -> Subcommand[CheckOptions]:
    return Subcommand(
        help=HELP,
        options=OptionSet(shape=CheckOptions, program=PROGRAM),
        operands=Operands(most=1),
        run=run,
    )


def run(given: Given[CheckOptions]) -> int:
    """Raises OptionsError and OperatorError."""
    options = given.options
    _validate(given)
    assert options.access_config is not None
    name = given.operands[0] if given.operands else ""
    found, left = asyncio.run(_check(options, options.access_config, name=name, environ=given.environ))
    _print(found, options.output)
    wrong = sum(not each.is_fine for each in found)
    if options.output == "table":
        complain(_summary(len(found), wrong, left))
    return exit_status.FOUND if wrong else exit_status.OK


def _validate(given: Given[CheckOptions]) -> None:
    options, problems = given.options, []
    if options.access_config is None:
        problems.append(Problem("--access-config", "is required: the access.yaml to try"))
    if given.operands and options.selector:
        problems.append(Problem("--selector", "cannot be combined with a NAME"))
    if options.cluster_file is not None and (options.kubeconfig is not None or options.context):
        problems.append(Problem("--cluster-file", "cannot be combined with --kubeconfig or --context"))
    if not 1 <= options.concurrency <= _MAX_CONCURRENCY:
        problems.append(Problem("--concurrency", f"must be between 1 and {_MAX_CONCURRENCY}"))
    problems += [
        Problem("--client-addresses", f'"{each}" is no IP address')
        for each in options.client_addresses
        if not _is_ip(each)
    ]
    if not options.timeout:
        problems.append(Problem("--timeout", "must be more than 0s"))
    try:
        parse_label_selector(options.selector)
    except SelectorError as error:
        problems.append(Problem("--selector", str(error)))
    if problems:
        raise OptionsError(problems)


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


async def _check(
    options: CheckOptions, access_config: Path, *, name: str, environ: Mapping[str, str]
) -> tuple[list[Checked], int]:
    """The findings, and how many clusters were not tried: unless they are named, those with an agent are left to it."""
    access = open_access(access_config, host=_host(options, environ))
    try:
        known = await _clusters(options, name=name, environ=environ)
        chosen = [each for each in known if name or not has_agent(each)]
        settings = ObserverSettings(deadline=options.timeout, addresses=options.client_addresses, user_agent=USER_AGENT)
        found = await check_clusters(
            chosen,
            access,
            settings=settings,
            concurrency=options.concurrency,
            progress=Progress("tried", "clusters"),
        )
        return found, len(known) - len(chosen)
    finally:
        await access.close()


def _host(options: CheckOptions, environ: Mapping[str, str]) -> RestConfig | None:
    if options.host_kubeconfig is None:
        return None
    return _config(environ, options.host_kubeconfig, flag="--host-kubeconfig")


def _config(environ: Mapping[str, str], file: Path | None, *, flag: str, context: str = "") -> RestConfig:
    """Raises OperatorError."""
    try:
        return find_config(environ, file=file, context=context, user_agent=USER_AGENT, flag=flag)
    except ConfigError as error:
        remedy = f"name another kubeconfig with {flag}, or another context with --context"
        raise OperatorError(
            str(error), remedy=remedy if flag == "--kubeconfig" else f"name another with {flag}"
        ) from None


async def _clusters(options: CheckOptions, *, name: str, environ: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    if options.cluster_file is not None:
        return clusters.from_file(options.cluster_file, name=name, selector=parse_label_selector(options.selector))
    config = _config(environ, options.kubeconfig, context=options.context, flag="--kubeconfig")
    return await clusters.from_registry(config, name=name, selector=options.selector)


# Output


def _print(found: Sequence[Checked], output: str) -> None:
    if output == "json":
        say(orjson.dumps(_document(found), option=orjson.OPT_INDENT_2).decode())
    elif output == "yaml":
        say(yaml_codec.encode(_document(found)).decode().rstrip())
    elif found:
        say(*table(found, now=time.time()))


def _summary(count: int, wrong: int, left: int) -> str:
    rest = f" {counted(left, 'cluster')} not tried: observed by an agent." if left else ""
    if not count:
        return f"There is no cluster to try.{rest}"
    return f"{counted(count, 'cluster')} tried, {wrong or 'none'} with a problem.{rest}"


_HEADINGS = ("NAME", "RULE", "EXPIRES", "TLS", "CREDENTIAL", "VERSION", "RESULT")


def table(found: Sequence[Checked], *, now: float) -> list[str]:
    """The lines of the table."""
    return table_lines(_HEADINGS, (_row(each, now) for each in found))


def _row(found: Checked, now: float) -> tuple[str, ...]:
    credential = {True: "accepted", False: "refused", None: "-"}[found.is_credential_accepted]
    tls = {True: "verified", False: "failed", None: "-"}[found.is_tls_verified]
    return found.name, found.rule or "none", _expires(found, now), tls, credential, found.version or "-", _result(found)


def _expires(found: Checked, now: float) -> str:
    if found.expires_at is None:
        return "-"
    left = int(found.expires_at - now)
    return f"in {human_duration(left)}" if left >= 0 else f"{human_duration(-left)} ago"


def _result(found: Checked) -> str:
    if found.missing_rights:
        return f"Forbidden: the credential must be allowed to {', '.join(found.missing_rights)}"
    return f"{found.failure.reason}: {found.failure.message}" if found.failure is not None else "OK"


def _document(found: Sequence[Checked]) -> dict[str, Any]:
    return {"items": [_entry(each) for each in found]}


def _entry(found: Checked) -> dict[str, Any]:
    end = found.expires_at
    failure = found.failure
    return {
        "name": found.name,
        "ok": found.is_fine,
        "rule": found.rule or None,
        "expires": times.render(datetime.fromtimestamp(end, UTC)) if end is not None else None,
        "endpoint": found.endpoint or None,
        "reachable": found.is_reachable,
        "tlsVerified": found.is_tls_verified,
        "credentialAccepted": found.is_credential_accepted,
        "version": found.version or None,
        "missingRights": list(found.missing_rights),
        "reason": failure.reason.value if failure is not None else None,
        "message": failure.message if failure is not None else None,
    }
