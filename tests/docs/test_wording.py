"""What must not stand in any document, and what must stand in some."""

from __future__ import annotations

import re
import tomllib

from tests.docs import markdown
from tests.docs.markdown import ROOT

PLACES = re.compile(r"(?<![\w.~-])/(?:root|work|home|Users|tmp|private)/", re.IGNORECASE)
"""Directories of some machine."""

HOSTS = re.compile(r"https?://([A-Za-z0-9.-]+)")
KNOWN_HOSTS = {"127.0.0.1", "localhost", "keepachangelog.com", "semver.org"}
"""A document that needs another host is a document to think about: packages come by their names alone."""


def foreign_hosts(text: str) -> set[str]:
    """Hosts that are neither known nor services in a host cluster."""
    known = ("example.com", ".clusterregistry.svc")
    return {host for host in HOSTS.findall(text) if host not in KNOWN_HOSTS and not host.endswith(known)}


def test_no_document_names_a_machine_or_where_packages_come_from() -> None:
    texts = {markdown.name_of(path): path.read_text(encoding="utf-8") for path in markdown.documents()}
    assert {name: found for name, text in texts.items() if (found := PLACES.findall(text))} == {}
    assert {name: hosts for name, text in texts.items() if (hosts := foreign_hosts(text))} == {}


def test_such_places_and_hosts_are_found() -> None:
    assert PLACES.search("in /root/registry")
    assert PLACES.search("`/home/jane/data`")
    assert foreign_hosts("see https://packages.example.net/simple and https://127.0.0.1:8443") == {
        "packages.example.net"
    }


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (markdown.name_of(document), target)
        for document in markdown.documents()
        for target in re.findall(
            r"(?:^|`|# |\$ | )make ([a-z-]+)(?=$|`|  | ARGS| PYTHON)", document.read_text(), re.MULTILINE
        )
    }
    assert ("README.md", "run") in named
    assert sorted((page, target) for page, target in named if target not in targets) == []


def test_the_readme_has_two_commands() -> None:
    first = next(block for block in markdown.blocks(markdown.page("README.md")) if block.info == "sh")
    commands = {line.split("#")[0].strip() for line in first.body.splitlines()}
    assert commands == {"make run", "make test"}


def test_every_runtime_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^\w-]", dependency)[0] for dependency in project["dependencies"]}
    decision = markdown.section(markdown.page("docs/decisions/0001-dependencies.md"), "## Decision")
    assert {name for row in markdown.table_rows(decision) for name in markdown.code_in(row[0])} == declared


def test_every_decision_is_in_their_index() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = [link for link in markdown.links(markdown.page("docs/decisions/README.md")) if link[0].isdigit()]
    assert listed == sorted(path.name for path in folder.glob("[0-9]*.md"))


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    versions = re.findall(r"^## (.*)$", markdown.page("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])


def test_every_release_opens_with_what_an_operator_must_know() -> None:
    for release in re.split(r"^## .*\n", markdown.page("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        assert release.strip().startswith("**What an operator must know.**")


_COMMAND = re.compile(
    r"^ *(?:[$#] |(?:kubectl|clusterregistry|crinit|helm|docker|make|curl|openssl|systemctl) )", re.MULTILINE
)
_INDENTED = re.compile(r"\n\n((?: {4}.*\n)+)")


WITH_COMMANDS = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "reference"]
"""What is written for readers who try it. The reference shows what programs print."""


def unrun_commands(text: str) -> list[str]:
    """Commands in blocks that the tests do not take for shell blocks, and so never run."""
    blocks = markdown.blocks(text)
    kinds = [block.info.partition(" ")[0] for block in blocks]
    found = [
        block.body
        for block, kind, before in zip(blocks, kinds, ["", *kinds], strict=False)
        if kind in {"", "console"} or (kind == "text" and before != "sh")
    ]
    found += _INDENTED.findall(markdown.prose(text))
    return [line for body in found for line in body.splitlines() if _COMMAND.match(line)]


def test_every_command_is_in_a_block_that_is_run_or_says_why_not() -> None:
    found = {markdown.name_of(path): unrun_commands(path.read_text(encoding="utf-8")) for path in WITH_COMMANDS}
    assert {name: commands for name, commands in found.items() if commands} == {}


def test_commands_that_are_not_run_are_found() -> None:
    assert unrun_commands("```console\n$ kubectl get clusters\n```\n") == ["$ kubectl get clusters"]
    assert unrun_commands("```text\nclusterregistry standalone\n```\n") == ["clusterregistry standalone"]
    assert unrun_commands("So:\n\n    kubectl get clusters\n\nThen\n") == ["    kubectl get clusters"]
    assert unrun_commands("```sh\nkubectl get clusters\n```\n```text\nNAME  AGE\n```\n") == []


def test_every_variable_in_the_documents_is_one_of_an_option() -> None:
    pages = (markdown.page(f"docs/reference/{name}.md") for name in ("flags", "commands"))
    known = {variable for page in pages for variable in re.findall(r"CLUSTERREGISTRY_\w+", page)}
    named = {
        (markdown.name_of(path), variable)
        for path in ROOT.glob("docs/**/*.md")
        if path.parent.name != "decisions"
        for variable in re.findall(r"CLUSTERREGISTRY_\w+", path.read_text(encoding="utf-8"))
    }
    assert sorted((page, variable) for page, variable in named if variable not in known) == []
