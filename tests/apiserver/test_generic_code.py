"""The library names neither the product nor its kind: a ``Product`` brings both."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import clusterregistry

ROOT = Path(clusterregistry.__file__).parent
LIBRARY = [name for name in ("apimachinery", "client", "apiserver") if (ROOT / name).exists()]

PRODUCT = re.compile(r"cluster[ _-]?registry", re.IGNORECASE)
IMPORT_NAME = re.compile(r"clusterregistry(\.[a-z0-9_]+)*")
"""Of the package itself, such as in the name of a logger or of a module that is imported late."""

STORED = {"/.clusterregistry/"}
"""A part of the format of keys in etcd, which replicas of an older version know by this name."""

KIND = re.compile(r"cluster(?!registry)", re.IGNORECASE)
OTHER_CLUSTERS = re.compile(
    r"clusterName|cluster[_-]?role|cluster-?admin|ClusterBreakingPotential"  # words of Kubernetes
    r"|scope.?cluster|cluster.scope|^cluster$"  # a scope
    r"|host.?cluster|in.?cluster|own.cluster|(?<=--)\w+-cluster"  # the cluster that an aggregated server runs behind
    r"|[a-z-]*cluster-[a-z-]+|initial-cluster",  # flags of other programs
    re.IGNORECASE,
)
OTHER_MODULES = re.compile(
    r"kubeconfig|webhooks/|delegated_auth|options/webhooks|client/|hostcluster/|storage/etcd/|cli/help_text"
)
"""Modules about kubeconfigs, which have clusters, about the host cluster, and about etcd, which is a cluster."""


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Every name and every text in the code, with its line; no docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        for text in (getattr(node, field, None) for field in ("id", "attr", "name", "arg", "value")):
            if isinstance(text, str):
                yield getattr(node, "lineno", 0), text


def names_product(word: str) -> bool:
    return bool(PRODUCT.search(word)) and word not in STORED and not IMPORT_NAME.fullmatch(word)


def names_kind(word: str) -> bool:
    return bool(KIND.search(OTHER_CLUSTERS.sub("", word)))


def found(path: Path, matches: Callable[[str], bool]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {word}" for line, word in words(path) if matches(word)]


@pytest.mark.parametrize("package", LIBRARY)
def test_the_library_does_not_name_the_product(package: str) -> None:
    assert [each for path in (ROOT / package).rglob("*.py") for each in found(path, names_product)] == []


@pytest.mark.parametrize("package", LIBRARY)
def test_the_library_does_not_name_the_kind(package: str) -> None:
    paths = [
        path for path in (ROOT / package).rglob("*.py") if not OTHER_MODULES.search(path.relative_to(ROOT).as_posix())
    ]
    assert [each for path in paths for each in found(path, names_kind)] == []


def test_the_product_names_both() -> None:
    assert found(ROOT / "registry" / "product.py", names_product)
    assert found(ROOT / "registry" / "cluster" / "columns.py", names_kind)
