"""Tables for people."""

from __future__ import annotations

from clusterregistry.cli.table import table_lines


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table_lines(("NAME", "AGE"), [("oslo-1", "3s"), ("x", "")]) == ["NAME     AGE", "oslo-1   3s", "x"]


def test_a_table_without_rows_has_headings() -> None:
    assert table_lines(("NAME", "AGE"), []) == ["NAME   AGE"]
