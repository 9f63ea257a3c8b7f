"""The commands of the documents print what the documents show, with old and new kubectl."""

from __future__ import annotations

import platform
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs import guide_reader, markdown
from tests.docs.guide_reader import Outcome, Step, Surroundings, steps
from tests.docs.markdown import Block
from tests.docs.other_servers import OTHERS
from tools import programs
from tools.conformance import GUIDE_RELEASES

OLDEST, NEWEST = GUIDE_RELEASES[0], GUIDE_RELEASES[-1]

FOLLOWED = {
    "README.md": GUIDE_RELEASES,
    "docs/tutorial.md": (OLDEST, NEWEST),
    "docs/guides/access.md": (NEWEST,),
    "docs/guides/agents.md": (NEWEST,),
    "docs/guides/backup.md": (NEWEST,),
    "docs/guides/groups.md": (NEWEST,),
    "docs/guides/credentials.md": (NEWEST,),
    "docs/guides/kubeconfig.md": (NEWEST,),
    "docs/guides/import.md": (NEWEST,),
    "docs/guides/secret-lint.md": (OLDEST, NEWEST),
    "docs/guides/security/audit.md": (NEWEST,),
    "docs/guides/security/certificates.md": (NEWEST,),
    "docs/guides/security/filtered-lists.md": (OLDEST, NEWEST),
    "docs/guides/security/limits.md": (NEWEST,),
    "docs/guides/security/oidc.md": (NEWEST,),
    "docs/guides/security/reviews.md": (NEWEST,),
    "docs/guides/security/roles.md": (OLDEST, NEWEST),
    "docs/guides/security/webhooks.md": (NEWEST,),
    "docs/guides/shared-objects.md": (OLDEST, NEWEST),
    "docs/guides/storage.md": (NEWEST,),
    "docs/guides/upgrade.md": (OLDEST, NEWEST),
    "docs/guides/users.md": (NEWEST,),
    "docs/start.md": (NEWEST,),
}
"""The documents whose shell blocks are run, and with which releases of kubectl."""

IN_A_CLUSTER = {"docs/guides/deploy.md"}
"""Those whose reader has a cluster to deploy into: `make e2e` runs them, in tests/crinit."""

NOT_RUN = {
    "docs/guides/access.md": {"takes a name of the machine"},
    "docs/guides/agents.md": {"takes a member cluster"},
    "docs/guides/docker.md": {"takes a Docker daemon"},
    "docs/guides/security/aggregated.md": {"takes a host cluster"},
    "docs/guides/status.md": {"takes member clusters"},
    "docs/guides/storage.md": {"takes an object that cannot be read", "takes the machines of an etcd"},
    "docs/guides/systemd.md": {"takes root and systemd"},
    "docs/start.md": {"takes a wheel and a package index"},
}
"""Blocks that cannot be run here, by the reasons that the documents give for them."""

NOT_EVERYWHERE = ("curl", "jq", "openssl", "sqlite3")
"""Programs that a reader of these documents has, but a machine that runs the tests may lack."""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="the kubectl programs are for linux/amd64",
    ),
]


def steps_of(document: str) -> list[Step]:
    return [step for step in steps(markdown.blocks(markdown.page(document))) if not step.commands.not_run]


def missing_program(step: Step) -> str:
    words = re.findall(r"[\w-]+", step.commands.body)
    return next((name for name in NOT_EVERYWHERE if name in words and not shutil.which(name)), "")


def problems(document: str, release: str, home: Path) -> Iterator[str]:
    """Follows a whole document with a release of kubectl; yields where it does not do what it shows."""
    with ExitStack() as stack:
        directory = home / "cluster-registry"
        directory.mkdir()
        others = OTHERS.get(document)
        surroundings = Surroundings(
            kubectl=kubectl(release),
            directory=directory,
            installed=has_installed(document, release),
            stand_ins=stack.enter_context(others(home, directory)) if others else {},
        )
        reader = stack.enter_context(guide_reader.reader(home, surroundings))
        for step in steps_of(document):
            if missing := missing_program(step):
                warnings.warn(f"{document}:{step.commands.line} was not run: {missing} is not installed", stacklevel=1)
            elif found := guide_reader.problem(step, reader.follow(step.commands)):
                yield found


def has_installed(document: str, release: str) -> bool:
    """Where two readers follow a document, the second has no checkout, unless the document takes one."""
    takes_checkout = any("make run" in step.commands.body for step in steps_of(document))
    return release == NEWEST and len(FOLLOWED[document]) > 1 and not takes_checkout


def kubectl(release: str) -> Path:
    return programs.fetch(programs.find(f"kubectl-{release}"))


@pytest.mark.filterwarnings("default:.*was not run:UserWarning")
@pytest.mark.parametrize(
    ("document", "release"), [(document, release) for document, releases in FOLLOWED.items() for release in releases]
)
def test_a_document_does_what_it_shows(document: str, release: str, tmp_path: Path) -> None:
    found = list(problems(document, release, tmp_path))
    assert not found, "\n".join(found)


def test_every_shell_block_is_run_or_has_a_reason() -> None:
    found = {markdown.name_of(path): steps(markdown.blocks(path.read_text())) for path in markdown.documents()}
    assert {name for name, each in found.items() if each} == FOLLOWED.keys() | IN_A_CLUSTER | NOT_RUN.keys()
    reasons = {name: {step.commands.not_run for step in each} - {""} for name, each in found.items()}
    assert {name: each for name, each in reasons.items() if each and name not in IN_A_CLUSTER} == NOT_RUN


def test_agreement_of_shown_and_printed_text() -> None:
    shown = "NAME  AGE\nparis-1  3s\n...\nuid: 290b8f6e-e753-4608-9805-d75426c788cb\n"
    printed = "NAME      AGE\nparis-1   12m\nanything\nuid: 45ea7a0a-9970-4f56-8bde-02efe1c710f3\n"
    assert guide_reader.agree(shown, printed)
    assert not guide_reader.agree(shown, "NAME AGE\noslo-1 3s\nuid: 45ea7a0a-9970-4f56-8bde-02efe1c710f3\n")
    assert not guide_reader.agree("created", "created\nWarning: something else")
    assert not guide_reader.agree("replicas: 3", "replicas: 4")


def test_problems_of_a_step() -> None:
    step = Step(block("echo 3"), block("3", "text"))
    assert guide_reader.problem(step, Outcome("3\n", 0)) == ""
    assert "line 1: the document shows other text; printed:\n4" in guide_reader.problem(step, Outcome("4", 0))
    assert "line 1: 1 commands failed; printed:\n3" in guide_reader.problem(step, Outcome("3", 1))
    assert guide_reader.problem(Step(block("false", "sh fails"), None), Outcome("", 1)) == ""


def block(body: str, info: str = "sh") -> Block:
    return Block(info=info, body=body, line=1)


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(kubectl=Path("/bin/true"), directory=tmp_path / "checkout")


def test_a_command_that_fails_is_noticed_wherever_it_stands(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        assert reader.follow(block("false\necho still here\n")) == Outcome("still here\n\n", 1)


def test_a_program_that_the_document_has_not_put_on_the_path_is_not_found(
    tmp_path: Path, surroundings: Surroundings
) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        for command in ("clusterregistry version", "clusterregistry standalone", "crinit version"):
            outcome = reader.follow(block(f"{command}\n"))
            assert "command not found" in outcome.printed
            assert outcome.failures == 1


def test_one_line_finds_the_program_of_a_checkout_in_both_terminals(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        assert reader.follow(block(f"{guide_reader.FIND_PROGRAM}\n")).failures == 0
        assert reader.follow(block("clusterregistry version --short\n")).failures == 0
        assert "Ready:" in reader.follow(block("clusterregistry standalone\n")).printed


def test_an_installed_program_is_on_the_path_of_every_terminal(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, replace(surroundings, installed=True)) as reader:
        assert reader.follow(block("clusterregistry version --short && crinit --help\n")).failures == 0


def test_terminals_share_nothing_but_the_disk(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        reader.follow(block(f"{guide_reader.FIND_PROGRAM}\n"))
        reader.follow(block("WHERE=$HOME/elsewhere\nexport WHERE\n"))
        assert reader.follow(block('echo "$WHERE"\n')).printed.strip() == "~/elsewhere"
        started = reader.follow(block('clusterregistry standalone --data-dir="$WHERE"\n'))
        assert "~/elsewhere" not in started.printed


def test_a_server_that_does_not_start_is_a_failure_of_its_block(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        outcome = reader.follow(block("make run ARGS='--token-auth-file=nowhere.csv'\n"))
        assert outcome.failures == 1
        assert "nowhere.csv" in outcome.printed


def test_ctrl_c_ends_the_server_before_the_next_one(tmp_path: Path, surroundings: Surroundings) -> None:
    with guide_reader.reader(tmp_path, surroundings) as reader:
        assert "Ready:" in reader.follow(block("make run\n")).printed
        assert "Ready:" in reader.follow(block("make run\n")).printed
        lock = "python3 - <<'EOF'\nimport fcntl\nfcntl.flock(open('%s'), fcntl.LOCK_EX | fcntl.LOCK_NB)\nEOF\n"
        file = tmp_path / ".local/share/clusterregistry/registry.db.lock"
        assert reader.follow(block(lock % file, "sh stopped")).failures == 0


RUNS_THE_PROGRAM = re.compile(r"^(?:clusterregistry|crinit) ", re.MULTILINE)


def test_a_document_that_runs_the_program_first_says_how_it_is_found() -> None:
    for document in FOLLOWED.keys() - {"README.md"}:
        bodies = [step.commands.body for step in steps_of(document)]
        runs = next((number for number, body in enumerate(bodies) if RUNS_THE_PROGRAM.search(body)), None)
        assert runs is None or guide_reader.FIND_PROGRAM + "\n" in bodies[:runs], document
