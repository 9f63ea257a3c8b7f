"""Validates CertificateSigningRequests, with kube-apiserver's messages.

All functions take objects that ``schema.native`` has decoded. What an update leaves as it was is not held against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from clusterregistry.api.certificates.v1 import pkcs10
from clusterregistry.api.certificates.v1.pem_blocks import pem_blocks
from clusterregistry.api.certificates.v1.pkcs10 import MalformedRequestError
from clusterregistry.api.certificates.v1.signer_name import signer_name_errors
from clusterregistry.api.certificates.v1.types import APPROVED, DENIED, FAILED, LEGACY_SIGNER, USAGES
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.field_errors import ENOUGH, FieldError, quoted, shown

Object = dict[str, Any]

LEAST_SECONDS = 600
"""The least ``spec.expirationSeconds``."""

MAX_CERTIFICATE_BYTES = 256 * 1024
"""The PEM of a certificate with a long chain takes a twentieth. Kubernetes has no limit of its own."""

_ONLY_TRUE = (APPROVED, DENIED, FAILED)
_STATUSES = ("False", "True", "Unknown")
_REQUEST, _USAGES, _SECONDS = "spec.request", "spec.usages", "spec.expirationSeconds"
_CONDITIONS, _CERTIFICATE = "status.conditions", "status.certificate"
_CERTIFICATE_LABEL = "CERTIFICATE"


def validate(request: Object) -> list[FieldError]:
    """The errors of a new request."""
    return list(islice(_errors(request, None), ENOUGH))


def validate_update(request: Object, old: Object) -> list[FieldError]:
    """The errors of an update of the request itself, which may change neither decisions nor the certificate."""
    return _update_errors(request, old, may_decide=False, may_sign=False)


def validate_status_update(request: Object, old: Object) -> list[FieldError]:
    """The errors of an update of ``/status``: it may set the certificate, once."""
    return _update_errors(request, old, may_decide=False, may_sign=True)


def validate_approval_update(request: Object, old: Object) -> list[FieldError]:
    """The errors of an update of ``/approval``: it may approve or deny."""
    return _update_errors(request, old, may_decide=True, may_sign=False)


def conditions_of(request: Object, *types: str) -> list[Object]:
    """The conditions of some types, in order; without types all."""
    found: list[Object] = request["status"].get("conditions", [])
    return [each for each in found if each["type"] in types] if types else found


def _update_errors(request: Object, old: Object, *, may_decide: bool, may_sign: bool) -> list[FieldError]:
    wrong = list(islice(_errors(request, old), ENOUGH))
    wrong += _removed_conditions(request, old)
    if not may_decide:
        wrong += _changed_decisions(request, old)
    before, after = old["status"].get("certificate", ""), request["status"].get("certificate", "")
    if before != after:
        if not may_sign:
            wrong.append(field_errors.forbidden(_CERTIFICATE, "updates may not set certificate content"))
        elif before:
            wrong.append(field_errors.forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    return wrong


def _errors(request: Object, old: Object | None) -> Iterator[FieldError]:
    """``old`` is None for a new request. What it has wrong may stay wrong."""
    spec = request["spec"]
    yield from _request_errors(spec["request"] or "")
    yield from _usage_errors(spec.get("usages", []), old["spec"].get("usages", []) if old else [])
    name = spec["signerName"]
    if name != LEGACY_SIGNER:
        yield from signer_name_errors(name, "spec.signerName")
    elif old is None or old["spec"]["signerName"] != LEGACY_SIGNER:
        detail = "the legacy signerName is not allowed via this API version"
        yield field_errors.invalid("spec.signerName", name, detail)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < LEAST_SECONDS:
        detail = f"may not specify a duration less than {LEAST_SECONDS} seconds (10 minutes)"
        yield field_errors.invalid(_SECONDS, seconds, detail)
    yield from _condition_errors(conditions_of(request), conditions_of(old) if old else [])
    yield from _certificate_errors(request, old)


def _request_errors(text: str) -> Iterator[FieldError]:
    if _bytes_in(text) > pkcs10.MAX_BYTES:
        yield field_errors.too_long(_REQUEST, pkcs10.MAX_BYTES)
        return
    try:
        pkcs10.verify_signature(pkcs10.parse_request(content_of(text) or b""))
    except MalformedRequestError as error:
        yield field_errors.invalid(_REQUEST, text or None, str(error))


def _usage_errors(usages: list[str], before: list[str]) -> Iterator[FieldError]:
    if not usages:
        yield field_errors.required(_USAGES)
    if all(each in USAGES for each in before):
        for index, usage in enumerate(usages):
            if usage not in USAGES:
                yield field_errors.not_supported(f"{_USAGES}[{index}]", usage, USAGES)
    if len(set(before)) == len(before):
        seen: set[str] = set()
        for index, usage in enumerate(usages):
            if usage in seen:
                yield field_errors.duplicate(f"{_USAGES}[{index}]", usage)
            seen.add(usage)


def _condition_errors(conditions: list[Object], before: list[Object]) -> Iterator[FieldError]:
    types = [each["type"] for each in before]
    exclusive = not {APPROVED, DENIED} <= set(types)
    unique = len(set(types)) == len(types)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        field, kind = f"{_CONDITIONS}[{index}]", condition["type"]
        if not kind and "" not in types:
            yield field_errors.required(f"{field}.type")
        yield from _status_errors(condition, field)
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if exclusive and other in seen:
            detail = "Approved and Denied conditions are mutually exclusive"
            yield field_errors.invalid(_CONDITIONS, kind, detail)
        if unique and kind in seen:
            yield field_errors.duplicate(f"{field}.type", kind)
        seen.add(kind)


def _status_errors(condition: Object, field: str) -> Iterator[FieldError]:
    status, allowed = condition["status"], ("True",) if condition["type"] in _ONLY_TRUE else _STATUSES
    if not status:
        yield field_errors.required(f"{field}.status")
    elif status not in allowed:
        yield field_errors.not_supported(f"{field}.status", status, allowed)


def _removed_conditions(request: Object, old: Object) -> Iterator[FieldError]:
    for kind in (APPROVED, DENIED, FAILED):
        if len(conditions_of(request, kind)) < len(conditions_of(old, kind)):
            detail = f"updates may not remove a condition of type {quoted(kind)}"
            yield field_errors.forbidden(_CONDITIONS, detail)


def _changed_decisions(request: Object, old: Object) -> Iterator[FieldError]:
    for kind in (APPROVED, DENIED):
        before, after = conditions_of(old, kind), conditions_of(request, kind)
        if len(after) > len(before):
            yield field_errors.forbidden(_CONDITIONS, f"updates may not add a condition of type {quoted(kind)}")
        elif len(after) == len(before) and before != after:
            changes = f"from {shown(before)} to {shown(after)}"
            detail = f"updates may not modify a condition of type {quoted(kind)}\n{changes}"
            yield field_errors.forbidden(_CONDITIONS, detail)


def _certificate_errors(request: Object, old: Object | None) -> Iterator[FieldError]:
    text = request["status"].get("certificate", "")
    before = old["status"].get("certificate", "") if old else ""
    if not text or text == before or (before and _certificate_problem(before)):
        return
    if _bytes_in(text) > MAX_CERTIFICATE_BYTES:
        yield field_errors.too_long(_CERTIFICATE, MAX_CERTIFICATE_BYTES)
    elif wrong := _certificate_problem(text):
        yield field_errors.invalid(_CERTIFICATE, "<certificate data>", wrong)


def _certificate_problem(text: str) -> str:
    """What is wrong with a certificate in PEM; empty for a good one."""
    from cryptography import x509  # noqa: PLC0415 - slow import

    found = 0
    for block in pem_blocks(content_of(text) or b""):
        if block.label != _CERTIFICATE_LABEL:
            return f"only CERTIFICATE PEM blocks are allowed, found {quoted(block.label)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(block.content)
        except Exception:  # noqa: BLE001 - the library has no common error type for what is malformed
            return "x509: malformed certificate"
        found += 1
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def _bytes_in(text: str) -> int:
    """The number of bytes that a text in base64 stands for."""
    return len(text) // 4 * 3 - text[-2:].count("=")
