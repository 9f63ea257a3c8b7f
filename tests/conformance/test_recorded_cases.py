"""Our server answers the recorded requests as kube-apiserver did."""

import pytest

from tests.conformance.conftest import ServerFor
from tools import conformance


@pytest.mark.timeout(300)
@pytest.mark.parametrize("area", conformance.exclusions().cases())
def test_answers_as_the_reference_does(area: str, server_for: ServerFor) -> None:
    titles = conformance.exclusions().cases()[area]
    outcome = conformance.replay(server_for("replay"), titles)
    assert outcome.failed == 0, outcome.output
    assert outcome.passed == len(titles)
