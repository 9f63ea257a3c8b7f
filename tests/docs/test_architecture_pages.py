"""The pages about how it works speak of the code that there is."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import clusterregistry
from tests.docs import markdown

PACKAGE = Path(clusterregistry.__file__).parent
PAGES = [page for page in markdown.documents() if page.parent.name == "architecture"]
WITH_DIAGRAM = [page for page in PAGES if page.stem != "glossary"]

_MODULE = re.compile(r"(?<![\w/.-])(?:[a-z0-9_]+/)*[a-z0-9_]+\.py\b")
_FOLDER = re.compile(r"`((?:[a-z0-9_]+/)+)`")


@pytest.mark.parametrize("page", PAGES, ids=markdown.name_of)
def test_every_module_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {*_MODULE.findall(text), *_FOLDER.findall(text)} - {"src/clusterregistry/"}
    assert named
    assert sorted(name for name in named if not (PACKAGE / name).exists()) == []


_NO_FILTERS = {"__init__", "chain", "interface", "fairness", "refused_credentials"}


def filters_in_the_code() -> list[str]:
    """The modules of the list ``filters`` in ``apiserver/filters/chain.py``, from top to bottom."""
    tree = ast.parse((PACKAGE / "apiserver" / "filters" / "chain.py").read_text())
    lists = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.List)
    ]
    calls = [ast.unparse(call) for call in lists[0].elts]
    return [call.partition(".")[0] for call in calls]


def test_the_filters_stand_in_their_order() -> None:
    section = markdown.section(markdown.page("docs/architecture/flow.md"), "## The filters")
    assert re.findall(r"^\d+\. `(\w+)`:", section, re.MULTILINE) == filters_in_the_code()


def test_every_filter_is_in_the_chain() -> None:
    files = {path.stem for path in (PACKAGE / "apiserver" / "filters").glob("*.py")} - _NO_FILTERS
    assert set(filters_in_the_code()) == files


@pytest.mark.parametrize("page", WITH_DIAGRAM, ids=markdown.name_of)
def test_a_page_has_one_diagram(page: Path) -> None:
    infos = [block.info for block in markdown.blocks(page.read_text(encoding="utf-8"))]
    assert infos.count("mermaid") == 1


def figures() -> list[tuple[str, str, str]]:
    section = markdown.section(markdown.page("docs/architecture/watch.md"), "## Figures")
    return [(*markdown.code_in(where), value) for _, where, value in markdown.table_rows(section)]  # type: ignore[misc]


@pytest.mark.parametrize(("module", "name", "value"), figures())
def test_the_figures_of_watches_are_those_of_the_code(module: str, name: str, value: str) -> None:
    assert in_the_code(module, name) == float(value.replace(",", ""))


def in_the_code(module: str, name: str) -> Any:
    """A constant, ``NAME``, or what a parameter is by default, ``function(parameter)``."""
    found: Any = importlib.import_module("clusterregistry." + module.removesuffix(".py").replace("/", "."))
    path, _, parameter = name.rstrip(")").partition("(")
    for part in path.split("."):
        found = getattr(found, part)
    return inspect.signature(found).parameters[parameter].default if parameter else found
