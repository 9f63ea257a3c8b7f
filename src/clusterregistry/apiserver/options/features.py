"""Options that turn single features on and off."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import ASSIGNMENTS, BOOLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """Features."""

    enable_watch: bool = option(
        True,
        kind=BOOLEAN,
        help="Whether watches are served. When false a watch is answered with 405, and clients have to poll.",
        example="--enable-watch=false",
    )
    profiling: bool = option(
        True,
        kind=BOOLEAN,
        help="Whether /debug/pprof/ is served: profiles of CPU time and memory, tasks and threads. Members of "
        "system:masters may read it, and users with a role that allows the path.",
        example="--profiling=false",
    )
    runtime_config: tuple[tuple[str, str], ...] = option(
        (),
        kind=ASSIGNMENTS,
        help="Versions and resources to serve or not: GROUP/VERSION=BOOL, GROUP/VERSION/RESOURCE=BOOL, and api/all, "
        "api/ga, api/beta or api/alpha for versions of that kind. The more exact key counts. What is not served stays "
        "stored. Can be given several times.",
        default_shown="everything is served",
        example="--runtime-config=api/alpha=false",
    )
