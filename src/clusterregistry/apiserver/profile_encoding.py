"""Profiles in the format of pprof (profile.proto, compressed), which ``go tool pprof`` and other viewers open.

The numbers of the fields are those of github.com/google/pprof/proto/profile.proto.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.message import Message

from clusterregistry.apimachinery.codecs.protobuf_tables import message_classes

_MESSAGES = {
    "Profile": "sample_type:1:[]ValueType sample:2:[]Sample location:4:[]Location function:5:[]Function "
    "string_table:6:[]string time_nanos:9:int64 duration_nanos:10:int64 period_type:11:ValueType period:12:int64",
    "ValueType": "type:1:int64 unit:2:int64",
    "Sample": "location_id:1:[]uint64 value:2:[]int64",
    "Location": "id:1:uint64 line:4:[]Line",
    "Line": "function_id:1:uint64 line:2:int64",
    "Function": "id:1:uint64 name:2:int64 filename:4:int64",
}


class Place(NamedTuple):
    """A line of a function, or, without a line, whatever else a profile counts by."""

    function: str
    file: str = ""
    line: int = 0


Stack = tuple[Place, ...]
"""The innermost place first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Values by stack. ``kinds`` names the values and their units, ``time`` and ``duration`` are in nanoseconds."""

    kinds: Sequence[tuple[str, str]]
    samples: Mapping[Stack, Sequence[int]]
    time: int = 0
    duration: int = 0
    period: int = 0
    """Nanoseconds of CPU between two samples; 0 for what is not sampled."""

    def encoded(self) -> bytes:
        """The bytes of the profile. Imports protobuf: call it in a thread."""
        return gzip.compress(_Encoder().encode(self).SerializeToString(), mtime=0)


class _Encoder:
    """Makes one message. Strings, functions and places are numbered, and each is written once."""

    def __init__(self) -> None:
        self._message: Any = _profile_class()()
        self._strings: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._places: dict[Place, int] = {}
        self._string("")  # the first one is empty

    def encode(self, profile: Profile) -> Message:
        message = self._message
        for kind, unit in profile.kinds:
            message.sample_type.add(type=self._string(kind), unit=self._string(unit))
        for stack, values in profile.samples.items():
            message.sample.add(location_id=[self._place(place) for place in stack], value=values)
        message.time_nanos, message.duration_nanos = profile.time, profile.duration
        if profile.period:
            message.period_type.type, message.period_type.unit = self._string("cpu"), self._string("nanoseconds")
            message.period = profile.period
        message.string_table.extend(self._strings)
        encoded: Message = message
        return encoded

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _place(self, place: Place) -> int:
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = len(self._places) + 1
            location = self._message.location.add(id=known)
            location.line.add(function_id=self._function(place), line=place.line)
        return known

    def _function(self, place: Place) -> int:
        key = place.function, place.file
        known = self._functions.get(key)
        if known is None:
            known = self._functions[key] = len(self._functions) + 1
            self._message.function.add(id=known, name=self._string(place.function), filename=self._string(place.file))
        return known


@cache
def _profile_class() -> type[Message]:
    return message_classes("perftools.profiles", _MESSAGES)["Profile"]
