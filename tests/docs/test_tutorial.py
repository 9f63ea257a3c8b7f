"""Readers who type what the documents show get what the documents show, with old and new kubectl."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.docs import following, markdown
from tests.docs.following import Outcome, Step
from tests.remote_servers import Authority, IssuerServer
from tests.storage.etcd_servers import EtcdCluster, Settings
from tools import programs
from tools.conformance import GUIDE_RELEASES

OLDEST, NEWEST = GUIDE_RELEASES[0], GUIDE_RELEASES[-1]

FOLLOWED = {
    "README.md": GUIDE_RELEASES,
    "docs/tutorial.md": (OLDEST, NEWEST),
    "docs/guides/access.md": (NEWEST,),
    "docs/guides/backup.md": (NEWEST,),
    "docs/guides/security/audit.md": (NEWEST,),
    "docs/guides/security/filtered-lists.md": (OLDEST, NEWEST),
    "docs/guides/security/oidc.md": (NEWEST,),
    "docs/guides/security/roles.md": (OLDEST, NEWEST),
    "docs/guides/shared-objects.md": (OLDEST, NEWEST),
    "docs/guides/security/certificates.md": (NEWEST,),
    "docs/guides/storage.md": (NEWEST,),
}
"""The documents whose shell blocks are run, and with which releases of kubectl."""

IN_A_CLUSTER = {"docs/guides/deploy.md"}
"""Those whose reader has a cluster to deploy into: `make e2e` runs them, in tests/crinit."""

WITH_ETCD = {"docs/guides/storage.md"}
"""Those whose reader has two etcds: one on this machine, and one that asks for certificates."""

WITH_ISSUER = {"docs/guides/security/oidc.md"}
"""Those whose reader has an OpenID Connect issuer, and a token of it."""

NOT_EVERYWHERE = ("curl", "jq", "openssl", "sqlite3")
"""Programs that a reader of these documents has, but a machine that runs the tests may lack."""

FollowedWith = Callable[[str, str], list[Outcome | None]]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="the kubectl programs are for linux/amd64",
    ),
]


def steps_of(document: str) -> list[Step]:
    return following.steps(markdown.blocks(markdown.page(document)))


def missing_program(step: Step) -> str:
    words = re.findall(r"[\w-]+", step.commands.body)
    return next((name for name in NOT_EVERYWHERE if name in words and not shutil.which(name)), "")


def cases() -> Iterator[object]:
    for document, releases in FOLLOWED.items():
        for release in releases:
            for number, step in enumerate(steps_of(document)):
                name = f"{document}:{step.commands.line}-kubectl-{release}"
                yield pytest.param(document, release, number, id=name)


@pytest.fixture(scope="module")
def followed_with(tmp_path_factory: pytest.TempPathFactory) -> FollowedWith:
    """Follows a whole document with a release of kubectl, once. None stands for a step that cannot be run here."""
    done: dict[tuple[str, str], list[Outcome | None]] = {}

    def outcomes(document: str, release: str) -> list[Outcome | None]:
        if (document, release) not in done:
            done[document, release] = follow(document, release, tmp_path_factory.mktemp("home"))
        return done[document, release]

    return outcomes


def follow(document: str, release: str, home: Path) -> list[Outcome | None]:
    kubectl = programs.fetch(programs.find(f"kubectl-{release}"))
    with ExitStack() as stack:
        stand_ins = stack.enter_context(etcds(home)) if document in WITH_ETCD else {}
        stand_ins |= stack.enter_context(issuer(home)) if document in WITH_ISSUER else {}
        reader = stack.enter_context(following.reader(home, kubectl=kubectl, stand_ins=stand_ins))
        return [None if missing_program(step) else reader.follow(step.commands) for step in steps_of(document)]


@contextmanager
def etcds(home: Path) -> Iterator[dict[str, str]]:
    """Servers in place of those that the text names; the certificates are where the reader is."""
    own, guarded = home / ".etcd", home / ".guarded-etcd"
    own.mkdir()
    guarded.mkdir()
    with EtcdCluster(own) as etcd, EtcdCluster(guarded, Settings(client_certificates=True)) as secured:
        files = {"etcd-ca.crt": "ca.pem", "client.crt": "client.pem", "client.key": "client-key.pem"}
        for name, made in files.items():
            shutil.copy(guarded / made, home / name)
        yield {
            "https://etcd.example.com:2379": secured.endpoints[0],
            "127.0.0.1:2379": etcd.endpoints[0].removeprefix("http://"),
        }


@contextmanager
def issuer(home: Path) -> Iterator[dict[str, str]]:
    """An issuer in place of the one that the text names; its authority and a token are where the reader is."""
    directory = home / ".issuer"
    directory.mkdir()
    authority = Authority(directory)
    shutil.copy(authority.file, home / "issuer-ca.crt")
    with IssuerServer(authority) as server:
        (home / "id-token").write_text(server.token(aud="clusterregistry", sub="jane", groups=["staff"]))
        yield {"https://login.example.com": server.url}


@pytest.mark.parametrize(("document", "release", "number"), list(cases()))
def test_a_block_does_what_the_document_shows(
    document: str, release: str, number: int, followed_with: FollowedWith
) -> None:
    step, outcome = steps_of(document)[number], followed_with(document, release)[number]
    if outcome is None:
        pytest.skip(f"{missing_program(step)} is not installed")
    assert bool(outcome.failures) == step.fails, outcome.printed
    if step.shown:
        assert following.agree(step.shown.body, outcome.printed), outcome.printed


def test_every_shell_block_is_one_that_is_run() -> None:
    with_shell = {
        markdown.name_of(path)
        for path in markdown.documents()
        if following.steps(markdown.blocks(path.read_text(encoding="utf-8")))
    }
    assert with_shell == FOLLOWED.keys() | IN_A_CLUSTER


def test_what_is_shown_counts() -> None:
    shown = "NAME  AGE\nparis-1  3s\n...\nuid: 290b8f6e-e753-4608-9805-d75426c788cb\n"
    assert following.agree(shown, "NAME      AGE\nparis-1   12m\nanything\nuid: 45ea7a0a-9970-4f56-8bde-02efe1c710f3\n")
    assert not following.agree(shown, "NAME AGE\noslo-1 3s\nuid: 45ea7a0a-9970-4f56-8bde-02efe1c710f3\n")
    assert not following.agree("created", "created\nWarning: something else")
    assert not following.agree("replicas: 3", "replicas: 4")


def test_a_command_that_fails_is_noticed_wherever_it_stands(tmp_path: Path) -> None:
    block = markdown.Block(info="sh", body="false\necho still here\n", line=1)
    with following.reader(tmp_path, kubectl=Path("/bin/true")) as reader:
        assert reader.follow(block) == Outcome("still here\n\n", 1)
