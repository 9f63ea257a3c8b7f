"""``clusterregistry standalone``: reads the options, sees to the certificates, and serves until told to stop."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence

from clusterregistry.cli import exits, help_texts, logs
from clusterregistry.cli.printing import complain, indented, say
from clusterregistry.options import CompletedOptions, OptionsError, load
from clusterregistry.pki import ensuring, naming
from clusterregistry.pki.ensuring import Ensured, Wanted

log = logging.getLogger(__name__)


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if any(argument in {"-h", "--help", "-help"} for argument in arguments):
        say(help_texts.standalone().rstrip())
        return exits.OK
    try:
        completed = load(arguments, environ)
    except OptionsError as error:
        _explain(error)
        return exits.USAGE
    logs.configure(completed.general.v)
    for warning in completed.warnings:
        log.warning(warning)
    return _serve(completed)


def _explain(error: OptionsError) -> None:
    count = len(error.problems)
    complain(
        f"clusterregistry standalone: {count} problem{'s' if count > 1 else ''} with the options:",
        *indented(str(problem) for problem in error.problems),
        "See: clusterregistry standalone --help",
    )


def _serve(completed: CompletedOptions) -> int:
    # Late, so that --help and a mistyped flag are answered at once.
    from clusterregistry.pki.errors import CertificateError  # noqa: PLC0415
    from clusterregistry.serving import running  # noqa: PLC0415

    try:
        wanted = _wanted(completed)
        occasions = running.Occasions(
            prepare=lambda: _tell(ensuring.ensure(wanted)),
            on_ready=lambda: _announce(completed, wanted),
            renew=lambda: _renew(wanted),
        )
        return running.serve(completed, occasions)
    except (running.StartupError, CertificateError) as error:
        return _failed(str(error), error.remedy)


def _wanted(completed: CompletedOptions) -> Wanted:
    serving = completed.serving
    return Wanted(
        layout=completed.layout,
        server_url=completed.server_url,
        names=naming.serving_names(serving.bind_address, serving.advertise_address),
        own_certificate=None if completed.makes_serving_certificate else completed.serving_certificate,
    )


def _announce(completed: CompletedOptions, wanted: Wanted) -> None:
    """Called when the server is ready: says so, and what to type next."""
    from clusterregistry.pki.errors import CertificateError  # noqa: PLC0415

    try:
        _tell(ensuring.refresh_kubeconfig(wanted))
    except CertificateError as error:  # no reason to stop serving
        log.warning("%s: %s", error, error.remedy)
    say(
        f"Ready: {completed.server_url}",
        f"Try:   kubectl --kubeconfig {shlex.quote(str(completed.layout.kubeconfig))} get clusters",
    )


def _renew(wanted: Wanted) -> None:
    """While serving: makes new certificates for those that end soon, and puts the new one into the kubeconfig."""
    for made in (*ensuring.ensure(wanted).made, *ensuring.refresh_kubeconfig(wanted).made):
        log.info("made %s", made)


def _tell(ensured: Ensured) -> None:
    if ensured.made:
        say("Made:", *indented(ensured.made))
    for warning in ensured.warnings:
        log.warning(warning)


def _failed(message: str, remedy: str) -> int:
    complain(f"clusterregistry standalone: {message}", f"What to do: {remedy}")
    return exits.STARTUP
