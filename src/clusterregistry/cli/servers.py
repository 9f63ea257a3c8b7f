"""What the commands that run a server have in common: options in, problems explained, a server until told to stop."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterregistry.cli import exits, logs
from clusterregistry.cli.printing import complain, indented, say
from clusterregistry.options import CompletedOptions, OptionsError, load
from clusterregistry.pki import naming
from clusterregistry.pki.ensuring import Ensured, Wanted
from clusterregistry.pki.own_certificate import OwnCertificate

if TYPE_CHECKING:
    from clusterregistry.serving.running import Occasions

_log = logging.getLogger(__name__)
_HELP = frozenset({"-h", "--help", "-help"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """A command that runs a server. ``occasions`` says what it does besides; it may raise CertificateError."""

    name: str
    aggregated: bool
    help: Callable[[], str]
    occasions: Callable[[CompletedOptions], Occasions]

    def run(self, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        if any(argument in _HELP for argument in arguments):
            say(self.help().rstrip())
            return exits.OK
        try:
            completed = load(arguments, environ, aggregated=self.aggregated)
        except OptionsError as error:
            self._explain(error)
            return exits.USAGE
        logs.configure(completed.general.v)
        for warning in completed.warnings:
            _log.warning(warning)
        return self._serve(completed)

    def _explain(self, error: OptionsError) -> None:
        count = len(error.problems)
        complain(
            f"clusterregistry {self.name}: {count} problem{'s' if count > 1 else ''} with the options:",
            *indented(str(problem) for problem in error.problems),
            f"See: clusterregistry {self.name} --help",
        )

    def _serve(self, completed: CompletedOptions) -> int:
        gc.disable()  # until all is loaded: ``serving.running`` turns it on again
        # Late, so that --help and a mistyped flag are answered at once.
        from clusterregistry.pki.errors import CertificateError  # noqa: PLC0415
        from clusterregistry.serving import running  # noqa: PLC0415

        try:
            return running.serve(completed, self.occasions(completed))
        except (running.StartupError, CertificateError) as error:
            return self._failed(str(error), error.remedy)

    def _failed(self, message: str, remedy: str) -> int:
        complain(f"clusterregistry {self.name}: {message}", f"What to do: {remedy}")
        return exits.STARTUP


def wanted(completed: CompletedOptions) -> Wanted:
    """The certificates that a server needs. In aggregated mode clients know what to verify it by from the host."""
    serving = completed.serving
    return Wanted(
        layout=completed.layout,
        server_url=completed.server_url,
        names=naming.serving_names(serving.bind_address, serving.advertise_address, *serving.tls_san),
        further_names=naming.normal_names(*serving.tls_san),
        own=None if completed.makes_serving_certificate else _own_certificate(completed),
        administrator=completed.generate_admin,
        server_ca=completed.host is None,
    )


def _own_certificate(completed: CompletedOptions) -> OwnCertificate:
    return OwnCertificate(
        certificate=completed.serving_certificate, key=completed.serving_key, authorities=completed.server_ca_file
    )


def tell(ensured: Ensured) -> None:
    if ensured.made:
        say("Made:", *indented(ensured.made))
    for warning in ensured.warnings:
        _log.warning(warning)
