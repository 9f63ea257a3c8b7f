"""The BootstrapToken kind: its schema and its validation. A token lets a member join as one cluster, for a while."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from clusterregistry.api.clusterregistry.agents import is_token_id
from clusterregistry.apimachinery.meta import field_errors, times
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors, name_errors
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, String

KIND = "BootstrapToken"
PLURAL = "bootstraptokens"
JOIN = "join"
LONGEST = 30 * 86400.0
"""Seconds from a write to ``expirationTime`` at most."""

_CLOCKS = 300.0
"""Seconds by which the clock of the maker may be ahead."""

_ALGORITHM = "sha256:"
_HASH = re.compile(rf"{_ALGORITHM}[0-9a-f]{{64}}", re.ASCII)
_MAX_LABELS = 64

SPEC = Object(
    description="Spec is what the token is for. Only description and expirationTime can be changed.",
    required=("secretHash", "expirationTime", "clusterName"),
    fields={
        "secretHash": String(
            max_length=71,
            description="SecretHash is sha256: and the SHA-256 of the secret, in hexadecimal digits. The secret "
            "itself is kept nowhere.",
        ),
        "expirationTime": String(
            format="date-time", description="ExpirationTime is when the token ends: within 30 days."
        ),
        "clusterName": String(max_length=253, description="ClusterName is the one cluster that the token is for."),
        "clusterLabels": Map(
            values=String(),
            description="ClusterLabels are the labels of the cluster, if the token creates it. It can have no others.",
        ),
        "usages": Array(
            items=String(enum=(JOIN,)), list_type="set", description="Usages of the token. There is one: join."
        ),
        "description": String(max_length=1024, description="Description says what the token was made for."),
    },
)

BOOTSTRAP_TOKEN = Object(
    description=(
        "BootstrapToken lets a member join the registry as one cluster. Its name is the ID of the token, which is "
        "ID.SECRET."
    ),
    required=("spec",),
    fields={"spec": SPEC},
)

_IMMUTABLE = ("secretHash", "clusterName", "clusterLabels", "usages")


def validate_token(token: dict[str, Any], old: dict[str, Any] | None, *, now: float) -> list[FieldError]:
    """The errors that the schema does not find. Values of a wrong type are skipped: the schema reports them."""
    spec, before = _spec(token), _spec(old or {})
    errors = [] if old is not None else _name_errors(token)
    errors += _spec_errors(spec)
    if spec.get("expirationTime") != before.get("expirationTime"):
        errors += _time_errors(spec, now=now)
    if old is not None:
        changed = [each for each in _IMMUTABLE if spec.get(each) != before.get(each)]
        errors += [field_errors.invalid(f"spec.{each}", spec.get(each), "field is immutable") for each in changed]
    return errors


def _name_errors(token: dict[str, Any]) -> list[FieldError]:
    name = token["metadata"].get("name")
    if not isinstance(name, str) or is_token_id(name):
        return []
    detail = "is the ID of the token: 6 to 32 lower case letters and digits"
    return [field_errors.invalid("metadata.name", name, detail)]


def _spec_errors(spec: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    found, cluster, usages = spec.get("secretHash"), spec.get("clusterName"), spec.get("usages")
    if isinstance(found, str) and not _HASH.fullmatch(found):
        # Not shown: it may be the secret, by mistake.
        errors.append(field_errors.invalid("spec.secretHash", "", "must be sha256: and 64 hexadecimal digits"))
    if isinstance(cluster, str):
        errors += [field_errors.invalid("spec.clusterName", cluster, detail) for detail in name_errors(cluster)]
    if isinstance(usages, list) and not usages:
        errors.append(field_errors.invalid("spec.usages", [], f"must have {JOIN}"))
    return errors + _label_errors(spec.get("clusterLabels"))


def _label_errors(labels: Any) -> list[FieldError]:
    if not isinstance(labels, dict):
        return []
    if len(labels) > _MAX_LABELS:
        return [field_errors.too_long("spec.clusterLabels", _MAX_LABELS)]
    path = "spec.clusterLabels"
    errors = [field_errors.invalid(path, key, detail) for key in labels for detail in label_key_errors(key)]
    for value in labels.values():
        if isinstance(value, str):
            errors += [field_errors.invalid(path, value, detail) for detail in label_value_errors(value)]
    return errors


def _time_errors(spec: dict[str, Any], *, now: float) -> list[FieldError]:
    text = spec.get("expirationTime")
    end = expiration(text)
    if end is None:
        return []
    if end <= now:
        return [field_errors.invalid("spec.expirationTime", text, "must be in the future")]
    if end > now + LONGEST + _CLOCKS:
        return [field_errors.invalid("spec.expirationTime", text, "must be within 30 days")]
    return []


def digest_in(secret_hash: Any) -> str:
    """The hexadecimal digits of ``secretHash``; empty for any other value, as another program may store it."""
    if isinstance(secret_hash, str) and _HASH.fullmatch(secret_hash):
        return secret_hash.removeprefix(_ALGORITHM)
    return ""


def expiration(text: Any) -> float | None:
    """The Unix time of ``expirationTime``; None if it is no time."""
    try:
        return times.parse(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


def expiration_time(end: float) -> str:
    """A Unix time as ``expirationTime``."""
    return times.render(datetime.fromtimestamp(end, UTC))


def default_usages(spec: Any) -> None:
    """Fills in what a client left out."""
    if isinstance(spec, dict) and spec.get("usages") is None:
        spec["usages"] = [JOIN]


def _spec(token: dict[str, Any]) -> dict[str, Any]:
    found = token.get("spec")
    return found if isinstance(found, dict) else {}
