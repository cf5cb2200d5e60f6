"""Exact resource quantities: `500m`, `1.5Gi`, `1e3`.

Source: staging/src/k8s.io/apimachinery/pkg/api/resource/{quantity,amount,math,scale_int,suffix}.go, v1.34.

Differs: a number that needs more than `MAX_DIGITS` digits to be written out is refused with a
`QuantityError`, where upstream computes on (and may not come back).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
ManifestNumber = str | int | float | None
"""What a manifest may hold where a quantity is expected; null reads as zero."""

MAX_DIGITS: Final = 4000
"""Longest number handled, in decimal digits. It bounds the work a hostile text can cause."""

FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_MAX_INT64: Final = 2**63 - 1
_NANO: Final = -9
_GO_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_MAX_INT64_DIGITS: Final = 18
"""Digits every int64 can hold (`maxInt64Factors`); longer numbers take the slow path."""
_TEXT: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_SIGNED_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)

_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY_EXPONENTS.items()}


class QuantityError(ValueError):
    """A text that is not a quantity, in Kubernetes' words."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """The number `mantissa * 10**exponent`, and how it likes to be printed.

    Equality and hash are those of the number: `1` equals `1000m` (`Quantity.Equal`).

    Attributes
    ----------
    mantissa, exponent : int
        The number. Not reduced: `1000m` is (1000, -3).
    is_decimal : bool
        Upstream holds it as an arbitrary-precision decimal, not as an int64 with a scale. Only the answers to
        numbers beyond int64, the rounding of negative fractions and approximate floats depend on it.
    format : str
        `DecimalSI`, `BinarySI` or `DecimalExponent`.
    text : str
        The text it was parsed from if that is printed unchanged, else empty.
    """

    mantissa: int
    exponent: int
    is_decimal: bool
    format: Format
    text: str = ""

    def value(self) -> int:
        """The number rounded up to an integer (`Value`). Beyond int64: 0 or wrapped, as upstream."""
        return self._scaled(0)

    def milli_value(self) -> int:
        """A thousand times the number, rounded up (`MilliValue`). Beyond int64 as for `value`."""
        return self._scaled(-3)

    def nano_value(self) -> int:
        """The number in units of 10^-9, exact for every quantity that was parsed.

        Raises
        ------
        QuantityError
            It has more than `MAX_DIGITS` digits.
        """
        shift = self.exponent - _NANO
        if shift < 0:
            return _divided_away_from_zero(self.mantissa, -shift)
        if self.mantissa == 0:
            return 0
        _check_digits(shift)
        return int(self.mantissa * 10**shift)

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def is_zero(self) -> bool:
        return self.mantissa == 0

    def cmp(self, other: Quantity) -> int:
        """-1, 0 or 1 as this number is smaller than, equal to or greater than the other."""
        if self.exponent == other.exponent:
            return (self.mantissa > other.mantissa) - (self.mantissa < other.mantissa)
        sign = self.sign()
        if sign != other.sign():
            return 1 if sign > other.sign() else -1
        if sign == 0:
            return 0
        # Magnitudes first: aligning 1e2000000000 with 1 would write out two thousand million digits.
        magnitude = _digits(self.mantissa) + self.exponent
        other_magnitude = _digits(other.mantissa) + other.exponent
        if magnitude != other_magnitude:
            return sign if magnitude > other_magnitude else -sign
        exponent = min(self.exponent, other.exponent)
        left = int(self.mantissa * 10 ** (self.exponent - exponent))
        right = int(other.mantissa * 10 ** (other.exponent - exponent))
        return (left > right) - (left < right)

    def add(self, other: Quantity) -> Quantity:
        """The sum. It prints in this quantity's format, or in the other's if this one is zero."""
        return self._plus(other, other.mantissa)

    def sub(self, other: Quantity) -> Quantity:
        """The difference, in the format `add` chooses."""
        return self._plus(other, -other.mantissa)

    def as_approximate_float(self) -> float:
        """Nearby float64, infinite out of its range (`AsApproximateFloat64`)."""
        try:
            base = float(self.mantissa)
        except OverflowError:
            base = math.copysign(math.inf, self.mantissa)
        return base if self.exponent == 0 else base * _pow10(self.exponent)

    def canonical(self) -> str:
        """The canonical form: no fraction, the largest suffix that loses nothing (`CanonicalizeBytes`).

        Where no suffix of the format is large enough upstream prints none at all, and so does this:
        `1000E` prints `1`.
        """
        if self.mantissa == 0:
            return "0"
        format = self.format
        if format == "BinarySI":
            whole = self._whole()
            # Small numbers are shown in decimal, and so is what would lose its fraction.
            if whole is not None and abs(whole) >= 1024:
                return _canonical_binary(whole)
            format = "DecimalSI"
        mantissa, exponent = _without_factors(self.mantissa, 10)
        exponent += self.exponent
        surplus = exponent % 3
        mantissa *= 10**surplus
        exponent -= surplus
        if format == "DecimalSI":
            return f"{mantissa}{_DECIMAL_SUFFIXES.get(exponent, '')}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def __str__(self) -> str:
        return self.text or self.canonical()

    def __eq__(self, other: object) -> bool:
        return self.cmp(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        if self.mantissa == 0:
            return hash((0, 0))
        mantissa, exponent = _without_factors(self.mantissa, 10)
        return hash((mantissa, exponent + self.exponent))

    def _whole(self) -> int | None:
        """The number if it is an integer."""
        if self.exponent >= 0:
            _check_digits(self.exponent)
            return int(self.mantissa * 10**self.exponent)
        if -self.exponent >= _digits(self.mantissa):
            return None
        whole, rest = divmod(self.mantissa, 10**-self.exponent)
        return None if rest else whole

    def _plus(self, other: Quantity, addend: int) -> Quantity:
        format = other.format if self.mantissa == 0 else self.format
        is_decimal = self.is_decimal or other.is_decimal
        if not is_decimal:
            if addend == 0:
                return Quantity(self.mantissa, self.exponent, False, format)
            if self.mantissa == 0:
                return Quantity(addend, other.exponent, False, format)
        left, right, exponent = _aligned(self, Quantity(addend, other.exponent, False, format))
        fits = _fits_int64(left) and _fits_int64(right) and _fits_int64(left + right)
        return Quantity(left + right, exponent, is_decimal or not fits, format)

    def _scaled(self, exponent: int) -> int:
        """The number in units of `10**exponent`. Source: ScaledValue."""
        shift = self.exponent - exponent
        if self.is_decimal:
            return _scaled_decimal(self.mantissa, -shift)
        if self.mantissa == 0 or shift == 0:
            return self.mantissa
        if shift > 0:
            return _scaled_up_int64(self.mantissa, shift)
        return _divided_away_from_zero(self.mantissa, -shift)


def parse_quantity(text: str) -> Quantity:
    """Parse a quantity.

    Parameters
    ----------
    text : str
        For example `100m`, `1.5Gi`, `1e3`, `.5`.

    Raises
    ------
    QuantityError
        With upstream's message.

    Examples
    --------
    >>> str(parse_quantity("1.5Gi")), parse_quantity("1.5Gi").value()
    ('1536Mi', 1610612736)
    >>> parse_quantity("0.1m").milli_value()
    1
    """
    matched = _TEXT.fullmatch(text)
    if matched is None or not text:
        raise QuantityError(FORMAT_WRONG)
    if text == "0":
        return Quantity(0, 0, False, "DecimalSI", text)
    sign_text, numerator, denominator, suffix = matched.groups()
    numerator = numerator or "0"
    denominator = denominator or ""
    exponent, format = _interpret_suffix(suffix)
    negative = sign_text == "-"
    fast = _parse_int64(text, negative, numerator, denominator, exponent, format)
    if fast is not None:
        return fast
    if not any("0" <= character <= "9" for character in text[: matched.start(4)]):
        raise QuantityError(NUMERIC_WRONG)
    return _parse_decimal(negative, numerator, denominator, exponent, format)


@lru_cache(maxsize=8192)
def read_quantity(text: str) -> Quantity:
    """The quantity in a text that a person wrote, wherever it is: the one rule for all of them.

    Raises
    ------
    QuantityError
        It is none, or has more than `MAX_DIGITS` digits: an API server writes out all digits of 1e999999999 to compare
        it with zero, and does not come back.
    """
    quantity = parse_quantity(text)
    if quantity.mantissa:
        _check_digits(quantity.exponent - _NANO)
    return quantity


def quantity_from(number: ManifestNumber) -> Quantity:
    """The quantity a manifest holds: a text (blanks around it do not matter), a number, or null for zero.

    Raises
    ------
    QuantityError
        Anything else, true and false among it.
    """
    if isinstance(number, str):
        return read_quantity(number.strip(_GO_SPACE))
    if number is None:
        return parse_quantity("0")
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise QuantityError(FORMAT_WRONG)
    return read_quantity(_number_text(number))


def quantity_value(number: ManifestNumber) -> int:
    """`quantity_from(number).value()`, remembered: manifests repeat the same few texts."""
    return _text_value(number) if isinstance(number, str) else quantity_from(number).value()


def quantity_milli_value(number: ManifestNumber) -> int:
    """`quantity_from(number).milli_value()`, remembered."""
    return _text_milli_value(number) if isinstance(number, str) else quantity_from(number).milli_value()


@lru_cache(maxsize=65536)
def _text_value(text: str) -> int:
    return quantity_from(text).value()


@lru_cache(maxsize=65536)
def _text_milli_value(text: str) -> int:
    return quantity_from(text).milli_value()


def _number_text(number: int | float) -> str:
    """A number as Go's JSON encoder writes it, which is what upstream parses after reading YAML."""
    if isinstance(number, int):
        if number.bit_length() > MAX_DIGITS * 3:
            raise QuantityError(NUMERIC_WRONG)
        return str(number)
    if not math.isfinite(number):
        raise QuantityError(FORMAT_WRONG)
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        text = format(Decimal(repr(number)), "f")
        return text.removesuffix(".0")
    return repr(number)


def _interpret_suffix(suffix: str) -> tuple[int, Format]:
    """Exponent (of two for BinarySI, else of ten) and format of a suffix. Source: suffix.go."""
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent, "DecimalSI"
    exponent = _BINARY_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent, "BinarySI"
    if len(suffix) > 1 and suffix[0] in "eE" and _SIGNED_INTEGER.fullmatch(suffix, 1):
        if len(suffix) > MAX_DIGITS:
            raise QuantityError(SUFFIX_WRONG)
        number = int(suffix[1:])
        if _fits_int64(number):
            return _wrapped(number, 32), "DecimalExponent"
    raise QuantityError(SUFFIX_WRONG)


def _parse_int64(
    text: str, negative: bool, numerator: str, denominator: str, exponent: int, format: Format
) -> Quantity | None:
    """The fast path of ParseQuantity, None when the number is not for it."""
    digits = numerator + denominator
    if format == "BinarySI":
        scale = 0
        multiplier = 1 << exponent
        precision = -1 if denominator else 15 - len(numerator) - exponent * 3 // 10 - 1
    else:
        scale = _wrapped(exponent - len(denominator), 32)
        multiplier = 1
        precision = _MAX_INT64_DIGITS - len(digits)
    if precision < 0 or scale < _NANO:
        return None
    value = int(digits)
    mantissa = value * multiplier
    if format == "BinarySI":
        unchanged = value % 8 != 0
    else:
        unchanged = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(-mantissa if negative else mantissa, scale, False, format, text if unchanged else "")


def _parse_decimal(
    negative: bool, numerator: str, denominator: str, exponent: int, format: Format
) -> Quantity:
    """The slow path of ParseQuantity: round up to nano, cap binary suffixes at 2^63-1."""
    digits = numerator + denominator
    _check_digits(len(digits))
    mantissa = int(digits)
    scale = -len(denominator)
    if format == "BinarySI":
        mantissa <<= exponent
    else:
        scale = -_wrapped(-scale - exponent, 32)
    if mantissa:
        if scale >= _NANO:
            _check_digits(_digits(mantissa) + scale - _NANO)
            mantissa *= 10 ** (scale - _NANO)
        else:
            mantissa = _divided_away_from_zero(mantissa, _NANO - scale)
        scale = _NANO
    if format == "BinarySI":
        one = 10**-scale if scale < 0 else 1
        if mantissa > _MAX_INT64 * one:
            mantissa, scale = _MAX_INT64, 0
        elif 0 < mantissa < one:
            format = "DecimalSI"
    return Quantity(-mantissa if negative else mantissa, scale, True, format)


def _canonical_binary(whole: int) -> str:
    mantissa, times = _without_factors(whole, 1024)
    return f"{mantissa}{_BINARY_SUFFIXES.get(times * 10, '')}"


def _scaled_up_int64(value: int, places: int) -> int:
    """`value * 10**places`, as upstream answers it. Source: math.go positiveScaleInt64.

    Beyond int64 the places upstream multiplies at once come out wrapped around, all others are 0.
    """
    scaled: int = value * 10**places if places <= _MAX_INT64_DIGITS else _MAX_INT64 + 1
    if _fits_int64(scaled):
        return scaled
    return _wrapped(scaled, 64) if places in (1, 2, 3, 6, 9) else 0


def _scaled_decimal(unscaled: int, places: int) -> int:
    """`unscaled * 10**-places` as upstream answers it, wrapping and all. Source: scale_int.go scaledValue."""
    if places == 0:
        return _wrapped(unscaled, 64)
    if places < 0:
        # A float power beyond int64 converts to the smallest int64.
        factor: int = 10**-places if -places <= _MAX_INT64_DIGITS else -(2**63)
        return _wrapped(_wrapped(unscaled, 64) * factor, 64)
    if unscaled < _MAX_INT64 and places <= _MAX_INT64_DIGITS:
        narrow, divisor = _wrapped(unscaled, 64), int(10**places)
        quotient = abs(narrow) // divisor * (1 if narrow >= 0 else -1)
        return quotient + 1 if quotient * divisor != narrow else quotient
    if places > MAX_DIGITS + 1:
        return 1 if unscaled > 0 else 0
    quotient, rest = divmod(unscaled, 10**places)
    return _wrapped(_wrapped(quotient, 64) + (1 if rest else 0), 64)


def _divided_away_from_zero(number: int, places: int) -> int:
    """`number / 10**places`, rounded away from zero."""
    if number == 0:
        return 0
    sign = 1 if number > 0 else -1
    if places > _digits(number):
        return sign
    quotient, rest = divmod(abs(number), int(10**places))
    return sign * (quotient + (1 if rest else 0))


def _aligned(left: Quantity, right: Quantity) -> tuple[int, int, int]:
    """Both mantissas at the smaller exponent, and that exponent."""
    exponent = min(left.exponent, right.exponent)
    return _rescaled(left, exponent), _rescaled(right, exponent), exponent


def _rescaled(quantity: Quantity, exponent: int) -> int:
    """The mantissa at an exponent that is not larger than the quantity's own."""
    if quantity.mantissa == 0:
        return 0
    shift = quantity.exponent - exponent
    _check_digits(_digits(quantity.mantissa) + shift)
    return int(quantity.mantissa * 10**shift)


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    """`(rest, times)` with `number == rest * factor**times` and rest not divisible; number is not zero."""
    times = 0
    while True:
        quotient, rest = divmod(number, factor)
        if rest:
            return number, times
        number = quotient
        times += 1


def _digits(number: int) -> int:
    return len(str(abs(number)))


def _check_digits(n_digits: int) -> None:
    if n_digits > MAX_DIGITS:
        raise QuantityError(NUMERIC_WRONG)


def _fits_int64(number: int) -> bool:
    return -(2**63) <= number <= _MAX_INT64


def _wrapped(number: int, bits: int) -> int:
    """The number as a signed integer of that many bits holds it."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


_SMALL_POWERS: Final = tuple(float(f"1e{n}") for n in range(32))
_POSITIVE_POWERS: Final = tuple(float(f"1e{32 * n}") for n in range(10))
_NEGATIVE_POWERS: Final = tuple(float(f"1e-{32 * n}") for n in range(11))


def _pow10(exponent: int) -> float:
    """`math.Pow10` of Go: a product (quotient) of two table entries, so not always the nearest float."""
    if 0 <= exponent <= 308:
        return _POSITIVE_POWERS[exponent // 32] * _SMALL_POWERS[exponent % 32]
    if -323 <= exponent < 0:
        return _NEGATIVE_POWERS[-exponent // 32] / _SMALL_POWERS[-exponent % 32]
    return math.inf if exponent > 0 else 0.0
