"""Recognises metadata that a round trip through Go's ObjectMeta leaves as it is, in one call of C code.

Nearly all is so: clients leave out what is empty, and send back what they got, with entries of managed fields as we
write them. What is not recognised may still be so; ``object_meta`` looks at each field.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from clusterregistry.apimachinery.meta import times

_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[dict[str, str], Meta(min_length=1)]
_Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class _Time:
    """Stands for a time that is not Go's zero, just as we write it. What is known of a text is not looked at again."""


_A_TIME = _Time()


class _Usual(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """No field is null, none is empty, none is unknown."""


class _Entry(_Usual):
    apiVersion: _Text | UnsetType = UNSET  # noqa: N815 - as on the wire, here and below
    fieldsType: _Text | UnsetType = UNSET  # noqa: N815
    fieldsV1: dict[str, Any] | UnsetType = UNSET  # noqa: N815
    manager: _Text | UnsetType = UNSET
    operation: _Text | UnsetType = UNSET
    subresource: _Text | UnsetType = UNSET
    time: _Time | UnsetType = UNSET


class _Metadata(_Usual):
    """Without what is rare: owners, deletion, finalizers, and what is kept only to be refused."""

    annotations: _Texts | UnsetType = UNSET
    creationTimestamp: _Time | UnsetType = UNSET  # noqa: N815
    generateName: _Text | UnsetType = UNSET  # noqa: N815
    generation: _Number | UnsetType = UNSET
    labels: _Texts | UnsetType = UNSET
    managedFields: Annotated[list[_Entry], Meta(min_length=1)] | UnsetType = UNSET  # noqa: N815
    name: _Text | UnsetType = UNSET
    namespace: _Text | UnsetType = UNSET
    resourceVersion: _Text | UnsetType = UNSET  # noqa: N815
    selfLink: _Text | UnsetType = UNSET  # noqa: N815
    uid: _Text | UnsetType = UNSET


def is_usual(metadata: dict[str, Any]) -> bool:
    """Whether decoding gives the very same, and nothing to say about it."""
    try:
        if "creationTimestamp" in metadata:
            msgspec.convert(metadata, _Metadata, dec_hook=_usual_time)
        else:  # no server has seen it, so there are no times; to name a hook costs something even if nothing calls it
            msgspec.convert(metadata, _Metadata)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for half of a surrogate pair
        return False
    return True


def _usual_time(_wanted: type, value: Any) -> _Time:
    """Called for what is to be a time, which is no type of msgspec's."""
    if type(value) is str and times.is_usual(value) and value != times.ZERO:
        return _A_TIME
    raise ValueError(value)  # msgspec makes a ValidationError of it
