"""What serves every kind names none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import clusterregistry

ROOT = Path(clusterregistry.__file__).parent
GENERIC = ["apimachinery", *(f"apiserver/{name}" for name in ("endpoints", "registry", "storage", "authn"))]
PARTICULAR = [ROOT / "apiserver" / "registry" / "rbac"]
KIND = re.compile(r"cluster(?!registry\b)", re.IGNORECASE)
NOT_THE_KIND = re.compile(r"clusterName|clusterrole|WithClusterBreakingPotential", re.IGNORECASE)
"""A field that the metadata of every kind once had, kinds of RBAC, and an option of every deletion."""


def sources() -> Iterator[Path]:
    for package in GENERIC:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not any(path.is_relative_to(particular) for particular in PARTICULAR):
                yield path


def docstrings(tree: ast.AST) -> set[int]:
    """Where text stands that only people read."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Every name and every text in the code, with its line."""
    tree = ast.parse(path.read_text())
    for_people = docstrings(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield line, node.name
        elif isinstance(node, ast.arg):
            yield line, node.arg
        elif isinstance(node, ast.alias):
            yield line, node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in for_people:
            yield line, node.value


def is_the_kind(word: str) -> bool:
    return bool(KIND.search(NOT_THE_KIND.sub("", word)))


def test_generic_code_does_not_name_the_kind() -> None:
    named = [(path, line, word) for path in sources() for line, word in words(path) if is_the_kind(word)]
    assert [f"{path.relative_to(ROOT)}:{line}: {word}" for path, line, word in named] == []


def test_there_is_something_to_look_at() -> None:
    assert len(list(sources())) > 40
    assert any(is_the_kind(word) for _, word in words(ROOT / "registry" / "cluster" / "strategy.py"))
