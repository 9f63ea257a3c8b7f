"""``clusterregistry aggregated``: the server behind a kube-apiserver, which knows the users and what they may do."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from clusterregistry.cli import help_texts, servers
from clusterregistry.cli.printing import say
from clusterregistry.options import CompletedOptions
from clusterregistry.pki import ensuring
from clusterregistry.pki.ensuring import Wanted

if TYPE_CHECKING:
    from clusterregistry.serving.running import Occasions

_log = logging.getLogger(__name__)


def _occasions(completed: CompletedOptions) -> Occasions:
    from clusterregistry.serving.running import Occasions  # noqa: PLC0415 - late, so that --help is answered at once

    wanted = servers.wanted(completed)
    return Occasions(
        prepare=lambda: servers.tell(ensuring.ensure(wanted)),
        on_ready=lambda: say(f"Serving: {completed.server_url}, for kube-apiserver's aggregation layer"),
        renew=lambda: _renew(wanted),
    )


def _renew(wanted: Wanted) -> None:
    for made in ensuring.ensure(wanted).made:
        _log.info("made %s", made)


run = servers.ServerCommand(name="aggregated", aggregated=True, help=help_texts.aggregated, occasions=_occasions).run
