"""The same answer for everybody, for trials and tests."""

from __future__ import annotations

from clusterregistry.authz.interface import ALLOW, Attributes, Decision, Verdict


class AlwaysAllow:
    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return ALLOW


class AlwaysDeny:
    """Allows nothing. As in kube-apiserver this is no veto: a mode named after it may still allow."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return Decision(Verdict.NO_OPINION, "Everything is forbidden.")
