"""``aggregated``: the server behind a kube-apiserver, which knows the users and what they may do."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from clusterregistry.apiserver.cli import server
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.provision import CertificateRequest
from clusterregistry.apiserver.product import Product
from clusterregistry.cli.console import say

if TYPE_CHECKING:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks

_log = logging.getLogger(__name__)


def _hooks(completed: CompletedOptions, _product: Product) -> LifecycleHooks:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks  # noqa: PLC0415 - keeps --help fast

    wanted = server.wanted(completed)
    return LifecycleHooks(
        prepare=lambda: server.tell(provision.provision(wanted)),
        on_ready=lambda: say(f"Serving: {completed.server_url}, for kube-apiserver's aggregation layer"),
        renew=lambda: _renew(wanted),
    )


def _renew(wanted: CertificateRequest) -> None:
    for made in provision.provision(wanted).made:
        _log.info("made %s", made)


run = server.ServerCommand(name="aggregated", aggregated=True, hooks=_hooks).run
