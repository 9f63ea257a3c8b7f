"""Real kubectl releases print with our server what they printed with kube-apiserver."""

import platform

import pytest

from tests.conformance.conftest import ServerFor
from tools import conformance

AREAS = sorted({title.partition("/")[0] for title in conformance.exclusions().transcripts()})

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="the kubectl programs are for linux/amd64",
    ),
]


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("release", conformance.QUICK_RELEASES)
def test_kubectl_prints_what_it_prints_with_the_reference(release: str, area: str, server_for: ServerFor) -> None:
    chosen = conformance.exclusions().transcripts()
    transcripts = [path for title, path in chosen.items() if title.startswith(f"{area}/")]
    outcome = conformance.run_kubectl(server_for(f"kubectl-{release}"), release=release, transcripts=transcripts)
    assert outcome.failed == 0, outcome.output
    assert outcome.passed + outcome.skipped == len(transcripts)


@pytest.mark.parametrize("release", conformance.GUIDE_RELEASES)
def test_the_commands_of_the_user_guide_work(release: str, server_for: ServerFor) -> None:
    outcome = conformance.run_kubectl(server_for("guide"), release=release, transcripts=[conformance.GUIDE])
    assert outcome.failed == 0, outcome.output
    assert outcome.passed == 1
