"""What ``/debug/pprof/`` shows, and to whom."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clusterregistry.apiserver.profile_encoding import Place, Profile
from tests.apiserver.api.clients import NOBODY, Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.discovery.test_openapi_v2 import fields, under, varint
from tests.apiserver.server.programs import Program
from tools.processes import wait_for

PAGES = ("cmdline", "heap", "profile", "tasks", "threads")


def packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


class Decoded:
    """A profile, read with a decoder of its own, so that a wrong number of a field shows."""

    def __init__(self, compressed: bytes) -> None:
        data = gzip.decompress(compressed)
        self.strings: list[str] = [text.decode() for text in under(data, 6)]
        self.kinds = [(self._text(each, 1), self._text(each, 2)) for each in under(data, 1)]
        functions = {dict(fields(each))[1]: dict(fields(each)) for each in under(data, 5)}
        self.functions = {key: (self.strings[one[2]], self.strings[one.get(4, 0)]) for key, one in functions.items()}
        locations = {dict(fields(each))[1]: dict(fields(under(each, 4)[0])) for each in under(data, 4)}
        self.places = {key: (*self.functions[one[1]], one.get(2, 0)) for key, one in locations.items()}
        self.samples = [
            ([self.places[key] for key in packed(under(each, 1)[0])], list(packed(under(each, 2)[0])))
            for each in under(data, 2)
        ]
        self.numbers: dict[int, Any] = dict(fields(data))

    def _text(self, message: bytes, number: int) -> str:
        index: int = under(message, number)[0]
        return self.strings[index]


@pytest.fixture
def server(program: Program) -> Iterator[Client]:
    with program.client() as client:
        yield client


def test_a_profile_has_its_stacks_and_values() -> None:
    outer, inner = Place("m.outer", "m.py", 3), Place("m.inner", "m.py", 7)
    samples = {(inner, outer): [1, 20], (outer,): [2, 30], (Place("m.outer", "m.py", 4),): [1, 1]}
    kinds = [("samples", "count"), ("cpu", "nanoseconds")]
    found = Decoded(Profile(kinds=kinds, samples=samples, time=5, duration=6, period=7).encoded())
    assert found.strings[0] == ""
    assert found.kinds == kinds
    assert found.samples == [([tuple(place) for place in stack], values) for stack, values in samples.items()]
    assert len(found.functions) == 2
    assert (found.numbers[9], found.numbers[10], found.numbers[12]) == (5, 6, 7)


@pytest.mark.parametrize("path", ["/debug/pprof", "/debug/pprof/"])
def test_the_pages_are_listed(local: InProcessClient, path: str) -> None:
    listed = local.get(path).body.decode().splitlines()
    assert [line.split()[0] for line in listed] == [f"/debug/pprof/{page}" for page in PAGES]


def test_tasks_and_threads_are_shown_with_their_stacks(local: InProcessClient) -> None:
    tasks = local.get("/debug/pprof/tasks").body.decode()
    assert "keep_compacting" in tasks
    assert "sqlite-writer:\n" in local.get("/debug/pprof/threads").body.decode()


def test_the_command_line_is_that_of_the_program(server: Client, program: Program) -> None:
    arguments = server.get("/debug/pprof/cmdline").body.decode().split("\0")
    assert arguments[-1] == str(program.directory / "tokens.csv")


def test_the_objects_in_memory_are_counted_by_type(local: InProcessClient) -> None:
    answer = local.get("/debug/pprof/heap")
    assert answer.header("Content-Type") == "application/octet-stream"
    found = Decoded(answer.body)
    assert found.kinds == [("objects", "count"), ("space", "bytes")]
    by_type = {stack[0][0]: values for stack, values in found.samples}
    assert by_type["builtins.dict"][0] > 10
    assert " builtins.dict\n" in local.get("/debug/pprof/heap", debug="1").body.decode()


def test_cpu_time_is_shown_by_function(server: Client, program: Program) -> None:
    profiles: list[bytes] = []

    def profile() -> None:
        with program.client() as other:
            profiles.append(other.get("/debug/pprof/profile", seconds="1").body)

    thread = threading.Thread(target=profile)
    thread.start()
    while thread.is_alive():
        server.get(CLUSTERS).expect(200)
    found = Decoded(profiles[0])
    assert found.kinds == [("samples", "count"), ("cpu", "nanoseconds")]
    functions = {place[0] for stack, _ in found.samples for place in stack}
    assert any(name.startswith("clusterregistry.apiserver.http.") for name in functions)
    assert sum(values[1] for _, values in found.samples) < 60e9
    assert server.get("/readyz").status == 200


def test_one_profile_is_made_at_a_time(server: Client, program: Program) -> None:
    first = threading.Thread(target=_read, args=(program, "/debug/pprof/profile?seconds=2"))
    first.start()
    wait_for(lambda: b"_cpu_profile" in server.get("/debug/pprof/tasks").body)
    refused = server.get("/debug/pprof/profile", seconds="1")
    assert (refused.status, refused.body) == (409, b"Could not enable cpu profiling: profiling already in use\n")
    first.join()
    assert server.get("/debug/pprof/profile", seconds="0.01").status == 200


def _read(program: Program, target: str) -> None:
    with program.client() as client:
        assert client.get(target).status == 200


@pytest.mark.parametrize("seconds", ["61", "1e9", "inf"])
def test_no_profile_lasts_longer_than_a_minute(server: Client, seconds: str) -> None:
    answer = server.get("/debug/pprof/profile", seconds=seconds)
    assert (answer.status, answer.body) == (400, b"profile duration exceeds 60 seconds\n")


def test_a_cpu_profile_needs_the_main_thread(local: InProcessClient) -> None:
    assert local.get("/debug/pprof/profile", seconds="1").status == 501


def test_other_pages_and_methods_are_refused(local: InProcessClient) -> None:
    assert local.get("/debug/pprof/trace").status == 404
    assert local.get("/debug/pprofx").status == 404
    assert local.post("/debug/pprof/heap", b"").status == 405


def test_only_users_who_may_get_the_path_read_it(local: InProcessClient) -> None:
    for path in ("/debug/pprof", "/debug/pprof/heap"):
        assert local.get(path, headers=NOBODY).status == 403
        assert local.get(path, headers={"Authorization": None}).status == 403


def test_profiling_can_be_switched_off(serve: Callable[..., InProcessClient]) -> None:
    client = serve("--profiling=false")
    assert client.get("/debug/pprof/").status == 404
    assert client.get("/debug/pprof/heap").status == 404


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    script = (
        "import sys, clusterregistry.apiserver.routes\nassert 'clusterregistry.apiserver.profiling' not in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)
