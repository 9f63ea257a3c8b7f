"""Quantities as Kubernetes writes them, such as ``100m``, ``1.5Gi`` and ``2e3``: parsed, added and formatted exactly.

As in k8s.io/apimachinery/pkg/api/resource: a billionth is the smallest step, finer values are rounded up; a sum has
the notation of its first part that is not zero; the canonical form has no fraction and the largest possible suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

MAX_LENGTH = 64
"""Characters of a quantity."""

LARGEST = 2**63 - 1
"""Larger values are refused. Kubernetes silently takes this one for them."""

_NANO = 10**9
_KIBI = 1024
_MAX_EXPONENT = 18
_SYNTAX = re.compile(
    r"([+-]?)([0-9]{1,40})?(?:\.([0-9]{0,40}))?(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?", re.ASCII
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}


class Format(Enum):
    """How a quantity is written."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class QuantityError(ValueError):
    """The text is not a quantity, or one that is too large."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact number of billionths, with the notation in which it is written."""

    nano: int
    format: Format = Format.DECIMAL

    def __add__(self, other: Quantity) -> Quantity:
        """The exact sum. It may be larger than what ``parse_quantity`` accepts."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __str__(self) -> str:
        """The canonical form."""
        if self.format is Format.BINARY and abs(self.nano) >= _KIBI * _NANO and self.nano % _NANO == 0:
            return _binary(self.nano // _NANO)
        return _decimal(self.nano, exponents=self.format is Format.EXPONENT)


def parse_quantity(text: str) -> Quantity:
    """Raises QuantityError."""
    match = _SYNTAX.fullmatch(text) if 0 < len(text) <= MAX_LENGTH else None
    if match is None or not (match[2] or match[3]):
        raise QuantityError("is not a quantity, such as 100m, 2 or 1.5Gi")
    sign, whole, fraction, binary, suffix, exponent = match.groups(default="")
    ten, scale, notation = _scale(binary, suffix, exponent)
    digits, places = int(f"{whole}{fraction}" or "0"), len(fraction)
    nano = _times_power_of_ten(digits * scale, ten + 9 - places)
    if nano > LARGEST * _NANO:
        raise QuantityError("is too large a quantity")
    return Quantity(-nano if sign == "-" else nano, notation)


def add_quantities(texts: Iterable[str]) -> str:
    """The canonical sum of quantities. Raises QuantityError."""
    total = Quantity(0)
    for text in texts:
        total += parse_quantity(text)
    return str(total)


def _scale(binary: str, suffix: str, exponent: str) -> tuple[int, int, Format]:
    """The power of ten, the factor, and the notation."""
    if binary:
        return 0, _KIBI ** _BINARY[binary], Format.BINARY
    if exponent:
        if abs(int(exponent)) > _MAX_EXPONENT:
            raise QuantityError("is too large a quantity")
        return int(exponent), 1, Format.EXPONENT
    return _DECIMAL[suffix], 1, Format.DECIMAL


def _times_power_of_ten(number: int, exponent: int) -> int:
    """Rounded up to a whole number."""
    if exponent >= 0:
        return int(number * 10**exponent)
    return int(-(-number // 10**-exponent))


def _decimal(nano: int, *, exponents: bool) -> str:
    mantissa, exponent = nano, -9
    while mantissa and mantissa % 1000 == 0 and exponent < _MAX_EXPONENT:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if not mantissa:
        return "0"
    if exponents:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def _binary(number: int) -> str:
    power = 0
    while number % _KIBI == 0 and power < max(_BINARY_SUFFIX):
        number, power = number // _KIBI, power + 1
    return f"{number}{_BINARY_SUFFIX.get(power, '')}"
