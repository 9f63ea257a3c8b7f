"""The rules for the name of a signer: ``DOMAIN/PATH``, as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError, quoted
from clusterregistry.apimachinery.meta.names import Messages, label_name_errors, name_errors, size

_DOMAIN_LIMIT = 253
_LIMIT = 571
"""Bytes of a name: a domain, a namespace, an object's name, and what separates them."""


def signer_name_errors(name: str, field: str) -> Iterator[FieldError]:
    """The errors of a signer's name. Of each part only the first wrong label is reported."""
    if not name:
        yield field_errors.required(field)
        return
    domain, slash, path = name.partition("/")
    if not slash or "/" in path:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield field_errors.invalid(field, name, detail)
        return
    if size(domain) > _DOMAIN_LIMIT:
        yield field_errors.too_long(field, _DOMAIN_LIMIT)
    labels = domain.split(".")
    for label, messages in _first_wrong((each, label_name_errors(each)) for each in labels):
        yield from _label_field_errors(field, part=domain, label=label, messages=messages)
    if len(labels) == 1:
        yield field_errors.invalid(field, domain, "should be a domain with at least two segments separated by dots")
    for label, messages in _first_wrong((each, name_errors(each)) for each in path.split(".")):
        yield from _label_field_errors(field, part=path, label=label, messages=messages)
    if size(name) > _LIMIT:
        yield field_errors.too_long(field, _LIMIT)


def _first_wrong(checked: Iterator[tuple[str, Messages]]) -> list[tuple[str, Messages]]:
    return [found] if (found := next((each for each in checked if each[1]), None)) else []


def _label_field_errors(field: str, *, part: str, label: str, messages: Messages) -> Iterator[FieldError]:
    for message in messages:
        yield field_errors.invalid(field, part, f"validating label {quoted(label)}: {message}")
