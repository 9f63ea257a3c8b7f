"""Hypothesis strategies for values that travel as JSON or YAML."""

from typing import Any

from hypothesis import strategies as st

NASTY_STRINGS = (
    *("", " ", "a ", " a", "~", "null", "Null", "y", "N", "yes", "No", "on", "OFF", "true", "False", "TRUE"),
    *("1", "-1", "+1", "0", "007", "0o7", "0x10", "0b11", "1_000", "1e3", "1.5", ".5", "5.", "-.5", "1e400", "1:30"),
    *(".inf", "-.Inf", ".nan", "nan", "inf", "Infinity", "2024-01-01", "2024-01-01T00:00:00Z", "12:30:45"),
    *("- a", "-", "---", "...", "a: b", "a:", ":a", ": ", "#", "a #b", "a#b", "? a", "?", "!a", "!!int 1", "&a", "*a"),
    *("{a}", "[a]", "{", "]", "a, b", "'", '"', "''", "a'b", 'a"b', "\\", "\\n", "|", ">", "%a", "@a", "`a", "=", "<<"),
    *(
        "\n",
        "a\nb",
        "a\n",
        "\na",
        "a\n\n b\n",
        "\t",
        "a\tb",
        "\r",
        "\r\n",
        "\0",
        "\x07",
        "\x1b",
        "\x7f",
        "\x85",
        "\xa0",
    ),
    *("\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff", "\ufffd", "é", "日本", "😀", "\U0010ffff", "x" * 2000),
    *("https://1.2.3.4:443", "a:443", "example.com/a", 'k:{"type":"OK"}', "f:metadata", 'v:"a b"', "a b c", "a  b"),
)

_TEXT = st.one_of(
    st.sampled_from(NASTY_STRINGS),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.text("-:#?!&*{}[],'\"|>%@`=~ \n\tnyo01ex._", max_size=6),
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, st.floats(allow_nan=False, allow_infinity=False), _TEXT)


def containers_of(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda children: st.lists(children, max_size=4) | st.dictionaries(_TEXT, children, max_size=4),
        max_leaves=12,
    )


VALUES = containers_of(SCALARS)
MAPS = st.dictionaries(_TEXT, VALUES, max_size=4)
# Few names, so that a document and a patch meet in the same places.
SMALL_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    max_leaves=8,
)
SMALL_MAPS = st.dictionaries(st.sampled_from("abc"), SMALL_VALUES, max_size=3)
