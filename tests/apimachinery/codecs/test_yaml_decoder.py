import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import MAX_DEPTH, DecodeError, yaml_codec


def decoded(text: str) -> Any:
    return yaml_codec.decode(text.encode()).value


@given(st.binary(max_size=40) | st.text("abc:-?!&*<{}[]#|>'\"%@ \n\t~01.", max_size=40).map(str.encode))
def test_no_bytes_raise_anything_but_a_decode_error(body: bytes) -> None:
    with contextlib.suppress(DecodeError):
        yaml_codec.decode(body)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("y Y yes Yes YES true True TRUE on On ON", True),
        ("n N no No NO false False FALSE off Off OFF", False),
        ("~ null Null NULL", None),
    ],
)
def test_booleans_and_nulls_have_the_spellings_of_yaml_1_1(words: str, value: Any) -> None:
    assert [decoded(f"a: {word}")["a"] for word in words.split()] == [value] * len(words.split())


@pytest.mark.parametrize("word", ["yEs", "nULL", "oN", "tRue", "2024-01-01", "2024-01-01T00:00:00Z", "1:30", "=", "<<"])
def test_other_spellings_and_timestamps_are_strings(word: str) -> None:
    assert decoded(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("12", 12), ("+12", 12), ("-12", -12), ("1_000", 1000), ("0x1F", 31), ("-0x1f", -31), ("017", 15)),
        *(
            ("0o17", 15),
            ("0b101", 5),
            ("-0b101", -5),
            ("08", 8),
            ("0", 0),
            ("-0", 0),
            ("9223372036854775807", 2**63 - 1),
        ),
        *(("1.5", 1.5), (".5", 0.5), ("-.5", -0.5), ("5.", 5), ("1e3", 1000), ("1.5e-3", 0.0015), ("1_0.5", 10.5)),
        *(("18446744073709551615", 18446744073709551615.0), ("99999999999999999999", 1e20), ("1e400", "1e400")),
        *(("0x", "0x"), ("0b2", "0b2"), ("1.2.3", "1.2.3"), ("+", "+"), ("0x" + "f" * 17, "0x" + "f" * 17)),
        *(("-18446744073709551615", -18446744073709551615.0), ("._5", "._5"), ("1e", "1e")),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, value: Any) -> None:
    found = decoded(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("text", "name"), [(".inf", "+Inf"), ("-.Inf", "-Inf"), (".NaN", "NaN")])
def test_what_json_has_no_number_for_is_an_error(text: str, name: str) -> None:
    with pytest.raises(DecodeError, match=f"json: unsupported value: {name.replace('+', '[+]')}"):
        decoded(f"a: [{text}]")


def test_quoted_and_block_scalars_are_strings() -> None:
    text = "a: 'on'\nb: \"1\"\nc: |\n  x\n  y\nd: >-\n  x\n  y\ne: ''\n"
    assert decoded(text) == {"a": "on", "b": "1", "c": "x\ny\n", "d": "x y", "e": ""}


def test_keys_become_strings() -> None:
    text = "on: a\n1: b\n0x10: c\n1.5: d\n1e6: e\n0.1: f\n2024-01-01: g\n.inf: h\n"
    assert list(decoded(text)) == ["true", "1", "16", "1.5", "1e+06", "0.1", "2024-01-01", ".inf"]


def test_floats_as_keys_have_32_bits() -> None:
    """As in sigs.k8s.io/yaml. The first one is nearly halfway between two of them."""
    assert list(decoded("0.4997999222368016: a\n16777217.5: b\n1e-50: c\n")) == ["0.49979994", "1.6777218e+07", "0"]


@pytest.mark.parametrize("text", ["~: a", "[a]: b", "? {a: b}\n: c", "18446744073709551615: a"])
def test_other_keys_are_errors(text: str) -> None:
    with pytest.raises(DecodeError, match="map key"):
        decoded(text)


def test_tags_choose_the_type() -> None:
    text = "a: !!str 5\nb: !!int '7'\nc: !!float 5\nd: !x 5\ne: ! 5\nf: !!bool 'on'\ng: !!binary |\n  aGVs\n  bG8=\n"
    assert decoded(text) == {"a": "5", "b": 7, "c": 5, "d": "5", "e": "5", "f": True, "g": "hello"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!!int foo", "yaml: cannot decode !!str `foo` as a !!int"),
        ("!!binary '%'", "yaml: !!binary value contains invalid base64 data"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &b [*b]", "yaml: anchor 'b' value contains itself"),
        ("a: &b {c: {d: *b}}", "yaml: anchor 'b' value contains itself"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ("<<: [1]", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: &a [{b: 1}]\nc: {<<: *a}", "yaml: map merge requires map or sequence of maps as the value"),
        ("\n\na: b: c", "yaml: line 3: mapping values are not allowed in this context"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("[" * (MAX_DEPTH + 1), "yaml: exceeded max depth"),
        ("- " * 5000 + "a", "yaml: exceeded max depth"),
    ],
)
def test_errors_read_as_go_yamls_do(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decoded(text)
    assert str(raised.value) == message


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n"])
def test_no_document_is_null(text: str) -> None:
    assert yaml_codec.decode(text.encode()).value is None


def test_only_the_first_document_is_read() -> None:
    assert decoded("a: 1\n---\nb: [") == {"a": 1}


def test_byte_order_marks_are_skipped() -> None:
    assert yaml_codec.decode(b"\xef\xbb\xbfa: 1").value == {"a": 1}


def test_merge_keys_merge_maps_and_lists_of_maps() -> None:
    text = (
        "a: &a {x: 1, z: 1}\nb: &b {x: 2, w: 2}\nc: {<<: *a, x: 3}\nd: {<<: [*a, *b]}\ne: {<<: {q: 1}}\nf: {'<<': 1}\n"
    )
    found = decoded(text)
    assert found["c"] == {"x": 3, "z": 1}
    assert found["d"] == {"x": 1, "z": 1, "w": 2}
    assert found["e"] == {"q": 1}
    assert found["f"] == {"<<": 1}


def test_a_merge_after_a_key_overrides_it_as_in_go_yaml() -> None:
    assert decoded("{x: 1, <<: {x: 2}}") == {"x": 2}


def test_aliases_are_values_of_their_own() -> None:
    found = decoded("a: &a {x: [1]}\nb: *a\nc: {<<: *a}\n")
    found["b"]["x"].append(2)
    assert found == {"a": {"x": [1]}, "b": {"x": [1, 2]}, "c": {"x": [1]}}


def test_an_anchor_may_be_given_anew() -> None:
    assert decoded("- &a 1\n- *a\n- &a 2\n- *a\n") == [1, 1, 2, 2]


def test_repeated_keys_are_one_strict_error_with_lines() -> None:
    found = yaml_codec.decode(b"a: 1\nspec:\n  clusterID: x\n  clusterID: z\na:\n  b\n1: c\n'1': d\n")
    assert found.value == {"a": "b", "spec": {"clusterID": "z"}, "1": "d"}
    assert found.strict_errors == [
        'yaml: unmarshal errors:\n  line 4: key "clusterID" already set in map\n  line 6: key "a" already set in map'
    ]
    assert found.warnings == ['line 4: key "clusterID" already set in map', 'line 6: key "a" already set in map']


def test_a_repeated_key_in_json_is_worded_as_in_yaml() -> None:
    found = yaml_codec.decode(b'{"a": 1, "a": 2}')
    assert found.value == {"a": 2}
    assert found.strict_errors == ['yaml: unmarshal errors:\n  line 1: key "a" already set in map']


def test_json_is_yaml() -> None:
    assert yaml_codec.decode(b'{"a": "\\ud83d\\ude00", "b": [1, {"c": null}]}').value == {
        "a": "😀",
        "b": [1, {"c": None}],
    }


def test_flow_style_is_no_json_and_still_read() -> None:
    assert decoded("{a: on, b: [x, 'y']}") == {"a": True, "b": ["x", "y"]}


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_do_not_explode() -> None:
    with pytest.raises(DecodeError, match="yaml: document contains excessive aliasing"):
        decoded(bomb(12))


def test_merges_do_not_explode() -> None:
    lines = ["m0: &m0 {" + ", ".join(f"k{n}: 1" for n in range(2000)) + "}"]
    lines += [f"m{n}: &m{n} {{<<: *m{n - 1}}}" for n in range(1, 2000)]
    with pytest.raises(DecodeError, match="yaml: document contains excessive aliasing"):
        decoded("\n".join(lines))


def test_a_few_aliases_are_fine() -> None:
    assert len(decoded(bomb(3))["a2"]) == 9


def test_aliases_cannot_nest_deeper_than_any_value() -> None:
    half = MAX_DEPTH - 20
    text = f"a: &a {'[' * half}{']' * half}\nb: {'[' * half}*a{']' * half}\n"
    with pytest.raises(DecodeError, match="yaml: exceeded max depth"):
        decoded(text)
