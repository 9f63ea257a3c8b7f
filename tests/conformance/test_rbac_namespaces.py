"""Our server decides by policies with rights in namespaces as kube-apiserver did."""

import json
from contextlib import closing

import pytest

from tests.conformance import rbac_namespaces
from tests.conformance.conftest import ServerFor
from tools import live_server

RECORDED = json.loads(rbac_namespaces.RECORDED.read_text())


@pytest.mark.timeout(300)
def test_decisions_and_rules_are_those_of_the_reference(server_for: ServerFor) -> None:
    served = server_for("rbac-namespaces")
    asked = rbac_namespaces.Server(served.url, ca_file=served.ca_file, token=live_server.ADMIN_TOKEN)
    differences = []
    with closing(asked) as server:
        for policy in RECORDED["policies"]:
            expected, found = policy["answers"], rbac_namespaces.answers(server, policy)
            for part in ("reviews", "rules"):
                compared = zip(policy[part], expected[part], found[part], strict=True)
                differences += [(question, due, got) for question, due, got in compared if due != got]
    assert not differences, "\n".join(map(str, differences[:20]))


def test_there_are_a_thousand_decisions_of_either_kind() -> None:
    decided = [allowed for policy in RECORDED["policies"] for allowed, _ in policy["answers"]["reviews"]]
    assert len(decided) >= 1000
    assert len(decided) / 5 < sum(decided) < len(decided) / 2
