"""``clusterregistry standalone``: the server on its own, with certificates and an administrator of its own."""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING

from clusterregistry.cli import help_texts, servers
from clusterregistry.cli.printing import say
from clusterregistry.options import CompletedOptions
from clusterregistry.pki import ensuring
from clusterregistry.pki.ensuring import Wanted

if TYPE_CHECKING:
    from clusterregistry.serving.running import Occasions

log = logging.getLogger(__name__)


def _occasions(completed: CompletedOptions) -> Occasions:
    from clusterregistry.serving.running import Occasions  # noqa: PLC0415 - late, so that --help is answered at once

    wanted = servers.wanted(completed)
    return Occasions(
        prepare=lambda: servers.tell(ensuring.ensure(wanted)),
        on_ready=lambda: _announce(completed, wanted),
        renew=lambda: _renew(wanted),
    )


def _announce(completed: CompletedOptions, wanted: Wanted) -> None:
    """Called when the server is ready: says so, and what to type next."""
    from clusterregistry.pki.errors import CertificateError  # noqa: PLC0415

    try:
        servers.tell(ensuring.refresh_kubeconfig(wanted))
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


run = servers.ServerCommand(name="standalone", aggregated=False, help=help_texts.standalone, occasions=_occasions).run
