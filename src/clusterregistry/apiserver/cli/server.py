"""The frame of the commands that run a server: reads the options, reports mistakes, and serves until a signal."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.cli import help_text
from clusterregistry.apiserver.options import CompletedOptions, OptionsError, Problem
from clusterregistry.apiserver.options.completion import load_with_sources
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.own_certificate import OwnCertificate
from clusterregistry.apiserver.pki.provision import CertificateRequest, ProvisionResult
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import exit_status, logs, program
from clusterregistry.cli.console import indented, say
from clusterregistry.cli.options.value_types import BOOLEAN

if TYPE_CHECKING:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks

_log = logging.getLogger(__name__)
_PRINT_CONFIG = "--print-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """A command that runs a server. ``hooks`` makes what it does besides serving; it may raise OperatorError."""

    name: str
    aggregated: bool
    hooks: Callable[[CompletedOptions, Product], LifecycleHooks]

    def run(self, product: Product, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        if length := program.asked_for(arguments):
            say(help_text.server_command(self.name, product, length).rstrip())
            return exit_status.OK
        try:
            only_print, arguments = _print_config(arguments)
            resolved, completed = load_with_sources(
                arguments, environ, options=product.options, aggregated=self.aggregated
            )
            _check_runtime_config(completed, product)
        except OptionsError as error:
            return program.report_usage(f"{product.name} {self.name}", error, subject="options")
        if only_print:
            from clusterregistry.apiserver.options import effective_config  # noqa: PLC0415 - only for this flag

            known, version = product.options, product.version
            text = effective_config.render(resolved, completed, known, command=self.name, version=version)
            say(text.rstrip())
            return exit_status.OK
        logs.configure(completed.general, product.name)
        for warning in completed.warnings:
            _log.warning(warning)
        return self._serve(completed, product)

    def _serve(self, completed: CompletedOptions, product: Product) -> int:
        gc.disable()  # until all is loaded: ``lifecycle`` turns it on again
        from clusterregistry.apiserver import lifecycle  # noqa: PLC0415 - keeps --help and a mistyped flag fast

        try:
            return lifecycle.serve(completed, product, self.hooks(completed, product))
        except OperatorError as error:
            return program.report_failure(f"{product.name} {self.name}", error)


def _check_runtime_config(completed: CompletedOptions, product: Product) -> None:
    """Raises OptionsError for groups and versions that the server does not have."""
    if not (given := completed.features.runtime_config):
        return
    # Late: only this option needs to know the kinds before the server starts.
    from clusterregistry.apiserver import auth  # noqa: PLC0415
    from clusterregistry.apiserver.options import runtime_config  # noqa: PLC0415
    from clusterregistry.apiserver.registry.native_resources import native_resources  # noqa: PLC0415

    resources = (*product.resources(completed), *native_resources(event_retention=None))
    if problems := runtime_config.unknown(given, (*resources, *auth.REVIEWS)):
        raise OptionsError(problems)


def _print_config(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Returns whether to print the configuration instead of serving, and the other arguments. Raises OptionsError."""
    texts = [argument.partition("=") for argument in arguments]
    try:
        found = [BOOLEAN.parse(value if equals else "true") for name, equals, value in texts if name == _PRINT_CONFIG]
    except ValueError as error:
        raise OptionsError([Problem(_PRINT_CONFIG, str(error))]) from None
    return found[-1:] == [True], [
        each for each, (name, _, _) in zip(arguments, texts, strict=True) if name != _PRINT_CONFIG
    ]


def certificate_request(completed: CompletedOptions) -> CertificateRequest:
    """The certificates that a server needs. In aggregated mode the host cluster knows what verifies the server."""
    serving, own = completed.serving, None
    if not completed.makes_serving_certificate:
        own = OwnCertificate(
            certificate=completed.serving_certificate, key=completed.serving_key, authorities=completed.server_ca_file
        )
    return CertificateRequest(
        program=completed.program,
        layout=completed.layout,
        server_url=completed.server_url,
        names=provision.serving_names(serving.bind_address, serving.advertise_address, *serving.tls_san),
        further_names=provision.normal_names(*serving.tls_san),
        own=own,
        administrator=completed.generate_admin,
        server_ca=completed.host is None,
    )


def print_provisioned(result: ProvisionResult) -> None:
    """Prints the files that were made at the start, and logs the warnings."""
    if result.made:
        say("Made:", *indented(result.made))
    for warning in result.warnings:
        _log.warning(warning)
