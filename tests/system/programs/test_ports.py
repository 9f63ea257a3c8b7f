"""Ports for servers of tests: several processes run tests at once, and none may take another's."""

import socket
import subprocess
import sys

from tools import ports

_CLAIM = "from tools import ports; print(ports.free_port(), flush=True); input()"


def test_no_port_is_given_twice() -> None:
    given = ports.free_ports(50)
    assert len({*given, *ports.free_ports(50)}) == 100


def test_a_port_on_which_somebody_listens_is_not_free() -> None:
    port = ports.free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert not ports._is_free(port)
    assert ports._is_free(port)


def test_a_port_belongs_to_a_process_until_its_end_though_nobody_listens_there() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CLAIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        assert ports._is_free(port)
        assert not ports._claimed(port)
        other.communicate("\n")
    assert ports._claimed(port)
