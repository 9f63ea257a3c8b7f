"""What is recorded when the operator brings no policy: who changed what, and who tried to.

Every write at the level Metadata, also when it was refused. No reads, for there are hundreds of them to a write. No
reviews: they are created, but they are questions, and a server that leaves authentication to this one asks one for
each of its own requests. Nothing about other paths: health, metrics, discovery, OpenAPI, version.

``docs/guides/security/audit.md`` shows it as a file; a test compares the two.
"""

from __future__ import annotations

from clusterregistry.apiserver.audit.levels import REQUEST_RECEIVED, Level
from clusterregistry.apiserver.audit.policy import ANY, NOTHING, Policy, Recording, Resources, Rule

DEFAULT_POLICY = Policy(
    (
        Rule(recording=NOTHING, paths=(ANY,)),
        Rule(
            recording=NOTHING,
            resources=(Resources(group="authentication.k8s.io"), Resources(group="authorization.k8s.io")),
        ),
        Rule(
            recording=Recording(level=Level.Metadata, omitted_stages=frozenset({REQUEST_RECEIVED})),
            verbs=frozenset({"create", "update", "patch", "delete", "deletecollection"}),
        ),
    )
)
