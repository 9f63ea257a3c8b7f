"""API errors are bounded, whatever a client sends."""

from __future__ import annotations

import orjson

from clusterregistry.apimachinery.meta import errors, field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

KIB = 1024
LONG = "x" * 1_000_000


def refused(*wrong: FieldError, name: str = "a") -> errors.APIError:
    return errors.invalid(group="g", kind="K", name=name, errors=wrong)


def size_of(error: errors.APIError) -> int:
    return len(orjson.dumps(error.status))


def test_of_a_long_value_a_cause_shows_the_first_kibibyte() -> None:
    for value in (LONG, [LONG], {"a": LONG}):
        message = field_errors.invalid("spec.a", value, "must be short").message
        assert KIB < len(message) < 2 * KIB
        assert message.endswith(": must be short")
        assert "..." in message


def test_a_value_of_a_kibibyte_is_shown_whole() -> None:
    text = "x" * KIB
    assert field_errors.shown(text) == f'"{text}"'


def test_long_values_are_cut_before_they_are_quoted() -> None:
    assert len(field_errors.shown("\x01" * 1_000_000)) < 5 * KIB


def test_hundreds_of_long_causes_make_an_answer_of_moderate_size() -> None:
    error = refused(*(field_errors.invalid(f"spec.a[{index}]", LONG, "must be short") for index in range(1000)))
    causes = error.status["details"]["causes"]
    assert 100 < len(causes) < 500
    assert error.status["message"].endswith(f", and {1000 - len(causes)} more")
    assert size_of(error) < KIB * KIB


def test_a_path_without_end_is_cut() -> None:
    error = refused(field_errors.required(f"metadata.labels[{LONG}]"), field_errors.required("spec.a"))
    assert [len(cause["field"]) < 10 * KIB for cause in error.status["details"]["causes"]] == [True]
    assert error.status["message"].endswith(", and 1 more")
    assert size_of(error) < 100 * KIB


def test_a_name_without_end_is_cut() -> None:
    error = refused(field_errors.required("spec.a"), name=LONG)
    assert len(error.status["details"]["name"]) < 2 * KIB
    assert size_of(error) < 10 * KIB


def test_no_message_is_without_end() -> None:
    assert size_of(errors.bad_request(LONG)) < 600 * KIB


def test_small_errors_are_not_cut() -> None:
    error = refused(field_errors.required("spec.a"), field_errors.invalid("spec.b", 1, "no"))
    assert error.status["message"] == ('K.g "a" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: no]')
    assert len(error.status["details"]["causes"]) == 2
