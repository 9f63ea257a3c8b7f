from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options.groups import Options
from clusterregistry.cli.options import config_file
from clusterregistry.cli.options.sources import read_environment
from tests.product import OPTIONS, resolve


def options(arguments: list[str], environ: dict[str, str] | None = None) -> Options:
    resolved = resolve(arguments, environ or {})
    assert resolved.problems == ()
    return resolved.options


def problems(arguments: list[str], environ: dict[str, str] | None = None) -> list[str]:
    return [str(problem) for problem in resolve(arguments, environ or {}).problems]


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_without_anything_the_defaults_count() -> None:
    assert options([]) == OPTIONS.build({})
    assert options([]).serving.secure_port == 8443


def test_a_flag_counts_before_the_environment_before_the_file_before_the_default(tmp_path: Path) -> None:
    path = config(tmp_path, "secure-port: 1\nbind-address: 0.0.0.0\nrequest-timeout: 5s\n")
    environ = {"CLUSTERREGISTRY_SECURE_PORT": "2", "CLUSTERREGISTRY_BIND_ADDRESS": "::"}
    serving = options(["--config", path, "--secure-port=3"], environ).serving
    assert serving.secure_port == 3
    assert serving.bind_address == "::"
    assert serving.request_timeout == 5
    assert serving.min_request_timeout == 1800


def test_of_a_repeated_flag_the_last_counts() -> None:
    assert options(["--secure-port=1", "--secure-port=2"]).serving.secure_port == 2


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    path = config(tmp_path, "secure-port: 1\n")
    assert options([], {"CLUSTERREGISTRY_CONFIG": path}).serving.secure_port == 1


def test_every_option_has_a_variable() -> None:
    variables = {"CLUSTERREGISTRY_" + flag.upper().replace("-", "_"): flag for flag in OPTIONS.by_flag}
    reading = read_environment(OPTIONS, dict.fromkeys(variables, "x"))
    assert {each.where: each.flag for each in reading.given} == variables
    assert reading.problems == []


def test_an_empty_variable_is_not_set() -> None:
    assert options([], {"CLUSTERREGISTRY_SECURE_PORT": ""}).serving.secure_port == 8443


def test_an_empty_flag_takes_back_what_the_environment_gave() -> None:
    environ = {"CLUSTERREGISTRY_TOKEN_AUTH_FILE": "tokens.csv"}
    assert options(["--token-auth-file="], environ).authentication.token_auth_file is None


def test_unknown_and_promised_variables_are_named() -> None:
    environ = {"CLUSTERREGISTRY_SECURE_PROT": "1", "CLUSTERREGISTRY_AUTHORIZATION_ALWAYS_ALLOW": "x", "OTHER": "1"}
    assert problems([], environ) == [
        "CLUSTERREGISTRY_AUTHORIZATION_ALWAYS_ALLOW is not supported yet (use --authorization-mode=AlwaysAllow)",
        "unknown option CLUSTERREGISTRY_SECURE_PROT (did you mean CLUSTERREGISTRY_SECURE_PORT?)",
    ]


def test_variables_that_kubernetes_makes_for_a_service_are_no_options() -> None:
    environ = {
        "CLUSTERREGISTRY_SERVICE_HOST": "10.0.0.1",
        "CLUSTERREGISTRY_SERVICE_PORT": "443",
        "CLUSTERREGISTRY_SERVICE_PORT_HTTPS": "443",
        "CLUSTERREGISTRY_PORT": "tcp://10.0.0.1:443",
        "CLUSTERREGISTRY_PORT_443_TCP": "tcp://10.0.0.1:443",
        "CLUSTERREGISTRY_PORT_443_TCP_ADDR": "10.0.0.1",
        "CLUSTERREGISTRY_API_SERVICE_HOST": "10.0.0.1",
        "CLUSTERREGISTRY_API_PORT": "tcp://10.0.0.1:443",
    }
    assert options([], environ) == OPTIONS.build({})


def test_a_file_has_the_names_of_flags_and_any_kind_of_value(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        "# comment\nsecure-port: 1\nanonymous-auth: false\nrequest-timeout: 90\n"
        "authorization-mode: [RBAC, AlwaysDeny]\n"
        "data-dir: '/d'\ntoken-auth-file:\nclient-ca-file: null\n",
    )
    read = options(["--config", path])
    assert read.serving.secure_port == 1
    assert read.authentication.anonymous_auth is False
    assert read.serving.request_timeout == 90
    assert read.authorization.authorization_mode == ("RBAC", "AlwaysDeny")
    assert read.storage.data_dir == Path("/d")
    assert read.authentication.token_auth_file is None


def test_an_empty_file_is_fine(tmp_path: Path) -> None:
    assert options(["--config", config(tmp_path, "# nothing\n")]).serving.secure_port == 8443


def test_everything_wrong_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    text = "secure-port: abc\nsecure-prot: 1\nauthorization-always-allow: x\n"
    text += "secure-port: 2\ndata-dir: {a: b}\n? [a]\n: b\nconfig: x\n"
    path = config(tmp_path, text)
    assert problems(["--config", path]) == [
        f"unknown option secure-prot in {path}:2 (did you mean secure-port?)",
        f"authorization-always-allow in {path}:3 is not supported yet (use --authorization-mode=AlwaysAllow)",
        f"{path}:4: secure-port is there twice (first in line 1)",
        f"{path}:5: data-dir: must be a single value or a list of them",
        f"{path}:6: a key must be the name of a flag",
        f"{path}:8: config: a file cannot name another file",
        f'{path}:1: secure-port: "abc" is not a whole number',
    ]


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "a: b: c\n", "{", "a: *b\n", "\x01", "[" * 1200])
def test_a_file_that_is_no_mapping_is_one_problem(tmp_path: Path, text: str) -> None:
    path = config(tmp_path, text)
    (problem,) = problems(["--config", path])
    assert problem.startswith(f"{path}: ")
    assert "\n" not in problem


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * (config_file.MAX_BYTES + 1)])
def test_a_file_that_is_no_text_or_too_large_is_one_problem(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "registry.yaml"
    path.write_bytes(content)
    (problem,) = problems(["--config", str(path)])
    assert problem.startswith("--config: ")


def test_a_missing_file_is_one_problem(tmp_path: Path) -> None:
    (problem,) = problems([f"--config={tmp_path / 'nothing.yaml'}"])
    assert "No such file" in problem


def test_a_bad_value_is_named_also_when_a_stronger_source_overrides_it(tmp_path: Path) -> None:
    path = config(tmp_path, "secure-port: abc\n")
    environ = {"CLUSTERREGISTRY_SECURE_PORT": "def"}
    assert problems(["--config", path, "--secure-port=1"], environ) == [
        f'{path}:1: secure-port: "abc" is not a whole number',
        'CLUSTERREGISTRY_SECURE_PORT: "def" is not a whole number',
    ]
