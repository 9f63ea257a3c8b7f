from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver import lifecycle
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.product import Product
from clusterregistry.registry.main import main
from tools.ports import free_port

Output = pytest.CaptureFixture[str]
Serve = Callable[[CompletedOptions, Callable[[], None]], int]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Runs ``standalone`` with something else in the server's place."""

    def run(serve: Serve, *arguments: str) -> int:
        def in_its_place(completed: CompletedOptions, _product: Product, hooks: lifecycle.LifecycleHooks) -> int:
            hooks.prepare()
            return serve(completed, hooks.on_ready)

        monkeypatch.setattr(lifecycle, "serve", in_its_place)
        return main(["standalone", f"--data-dir={tmp_path / 'data'}", *arguments], {})

    return run


def ready(_: CompletedOptions, on_ready: Callable[[], None]) -> int:
    on_ready()
    return 0


def test_a_first_start_prints_what_it_made_and_what_to_type_next(
    start: Callable[..., int], tmp_path: Path, capsys: Output
) -> None:
    assert start(ready) == 0
    text = capsys.readouterr().out
    assert text.startswith("Made:\n")
    assert f"{tmp_path / 'data' / 'ca.crt'} (certificate authority" in text
    assert text.endswith(
        f"Ready: https://127.0.0.1:8443\nTry:   kubectl --kubeconfig {tmp_path}/data/admin.kubeconfig get clusters\n"
    )


def test_a_second_start_prints_only_that_it_is_ready(start: Callable[..., int], capsys: Output) -> None:
    start(ready)
    capsys.readouterr()
    assert start(ready) == 0
    assert capsys.readouterr().out.startswith("Ready: ")


def test_the_server_gets_completed_options_and_files_that_exist(start: Callable[..., int]) -> None:
    seen: list[CompletedOptions] = []

    def serve(completed: CompletedOptions, _: Callable[[], None]) -> int:
        seen.append(completed)
        files = (completed.serving_certificate, completed.serving_key, *completed.client_ca_files)
        assert all(path.is_file() for path in files)
        return 0

    assert start(serve, "--secure-port=1234", "--secret-lint=off") == 0
    (completed,) = seen
    assert completed.serving.secure_port == 1234
    assert completed.product.secret_lint == "off"


def test_a_failed_start_is_one_line_and_a_remedy(start: Callable[..., int], capsys: Output) -> None:
    def fails(*_: object) -> int:
        raise OperatorError("port 8443 is taken", remedy="stop the other server")

    assert start(fails) == 3
    assert capsys.readouterr().err.splitlines() == [
        "clusterregistry standalone: port 8443 is taken",
        "What to do: stop the other server",
    ]


def test_a_bad_token_file_is_a_failed_start(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "tokens.csv").write_text("one,two\n")
    arguments = [f"--data-dir={tmp_path / 'data'}", f"--secure-port={free_port()}"]
    assert main(["standalone", *arguments, f"--token-auth-file={tmp_path / 'tokens.csv'}"], {}) == 3
    error = capsys.readouterr().err
    assert "tokens.csv:1: a line needs at least 3 columns" in error
    assert "What to do: correct the file that --token-auth-file names" in error


def test_damaged_certificates_are_a_failed_start(start: Callable[..., int], tmp_path: Path, capsys: Output) -> None:
    start(ready)
    (tmp_path / "data" / "ca.crt").write_text("garbage")
    assert start(ready) == 3
    error = capsys.readouterr().err
    assert "ca.crt is damaged" in error
    assert "What to do: restore" in error


def test_a_data_directory_that_cannot_be_made_is_a_failed_start(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "file").write_text("x")
    directory = tmp_path / "file" / "data"
    assert main(["standalone", f"--data-dir={directory}", f"--secure-port={free_port()}"], {}) == 3
    error = capsys.readouterr().err
    assert "cannot be made: Not a directory" in error
    assert "What to do: let the user that runs the server" in error


def test_a_server_whose_port_is_taken_makes_nothing(tmp_path: Path, capsys: Output) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["standalone", f"--data-dir={tmp_path / 'data'}", f"--secure-port={port}"], {}) == 3
    assert "What to do: stop what listens there" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_server_that_never_listens_leaves_the_kubeconfig_alone(start: Callable[..., int], tmp_path: Path) -> None:
    def fails(*_: object) -> int:
        raise OperatorError("the data directory is in use", remedy="stop the other server")

    start(ready)
    before = (tmp_path / "data" / "admin.kubeconfig").read_bytes()
    assert start(fails, "--secure-port=9443") == 3
    assert (tmp_path / "data" / "admin.kubeconfig").read_bytes() == before
    assert start(ready, "--secure-port=9443") == 0
    assert b":9443" in (tmp_path / "data" / "admin.kubeconfig").read_bytes()


def test_warnings_are_logged_as_plain_lines(start: Callable[..., int], capsys: Output) -> None:
    assert start(ready, "--authorization-mode=AlwaysAllow") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "Z WARNING clusterregistry.apiserver.cli.server: anonymous requests are refused" in line


@pytest.mark.parametrize(("arguments", "shown"), [([], ["message"]), (["-v"], ["message", "detail"])])
def test_verbosity_shows_details(
    start: Callable[..., int], arguments: list[str], shown: list[str], capsys: Output
) -> None:
    def serve(*_: object) -> int:
        logging.getLogger("clusterregistry.apiserver").info("message")
        logging.getLogger("clusterregistry.apiserver").debug("detail")
        logging.getLogger("somelibrary").info("chatter")
        return 0

    start(serve, *arguments)
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == shown
