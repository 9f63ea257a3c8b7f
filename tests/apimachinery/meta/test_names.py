from __future__ import annotations

import pytest

from clusterregistry.apimachinery.meta.names import (
    LABELS,
    generate_name,
    generate_name_errors,
    label_key_errors,
    label_value_errors,
    name_errors,
)


@pytest.mark.parametrize("name", ["a", "a-b", "a.b", "0", "n" * 253])
def test_dns_subdomains_are_names(name: str) -> None:
    assert name_errors(name) == ()


@pytest.mark.parametrize("name", ["Upper", "under_score", "-a", "a-", "a..b", "a/b", "a%b", ".", "", "a\n", "ä"])
def test_anything_else_is_not(name: str) -> None:
    (message,) = name_errors(name)
    assert message.startswith("a lowercase RFC 1123 subdomain must consist of")


def test_a_name_may_have_253_characters_and_no_more() -> None:
    assert name_errors("n" * 254) == ("must be no more than 253 characters",)


@pytest.mark.parametrize(
    ("prefix", "good"), [("gen-", True), ("g", True), ("a--", True), ("-", False), ("_-", True), ("_", False)]
)
def test_a_prefix_may_end_in_a_dash_and_is_checked_as_kubernetes_does(prefix: str, *, good: bool) -> None:
    assert (generate_name_errors(prefix) == ()) is good


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("a-1", []),
        ("n" * 63, []),
        ("n" * 64, ["must be no more than 63 characters"]),
        ("a.b", ["must not contain dots"]),
        ("Upper", ["a lowercase RFC 1123 label must consist of"]),
        ("", ["a lowercase RFC 1123 label must consist of"]),
    ],
)
def test_some_names_are_dns_labels(name: str, messages: list[str]) -> None:
    found = LABELS.name(name)
    assert len(found) == len(messages)
    assert all(text.startswith(wanted) for text, wanted in zip(found, messages, strict=True))


def test_the_prefix_of_a_label_may_end_in_a_dash() -> None:
    assert LABELS.prefix("gen-") == ()
    assert LABELS.prefix("Gen-") != ()


@pytest.mark.parametrize("key", ["k", "a.b_c-d", "example.com/k", "K" * 63])
def test_label_keys_that_are_good(key: str) -> None:
    assert label_key_errors(key) == ()


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        ("", ["name part must be non-empty", "name part must consist"]),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", "name part must consist"]),
        ("A/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("k" * 64, ["name part must be no more than 63 bytes"]),
        ("p" * 254 + "/k", ["prefix part must be no more than 253 bytes"]),
        ("a/b/c", ["a valid label key must consist"]),
        ("bad key", ["name part must consist"]),
    ],
)
def test_label_keys_that_are_not(key: str, messages: list[str]) -> None:
    found = label_key_errors(key)
    assert len(found) == len(messages)
    assert all(text.startswith(start) for text, start in zip(found, messages, strict=True))


def test_label_values_have_at_most_63_bytes() -> None:
    assert label_value_errors("v" * 63) == ()
    assert label_value_errors("v" * 64) == ("must be no more than 63 bytes",)
    assert label_value_errors("ä" * 32)[0] == "must be no more than 63 bytes"


def test_generated_names_keep_their_base_and_fit() -> None:
    assert generate_name("gen-").startswith("gen-")
    assert len(generate_name("gen-")) == len("gen-") + 5
    assert len(generate_name("x" * 100)) == 63
    assert set(generate_name("")) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len({generate_name("") for _ in range(20)}) > 1
