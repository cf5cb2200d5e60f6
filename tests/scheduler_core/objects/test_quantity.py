"""Quantities are exact, print as Kubernetes prints them and refuse what it refuses.

Durations are read and written as Go does it.
"""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.objects.duration import format_duration, parse_duration_ns
from scheduler_core.objects.quantity import (
    FORMAT_WRONG,
    NUMERIC_WRONG,
    SUFFIX_WRONG,
    Quantity,
    QuantityError,
    parse_quantity,
    quantity_milli_value,
    quantity_value,
)
from tests.tables import table

DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]
BINARY_SUFFIXES = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]

numbers = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6})", fullmatch=True)
# A number so large that no suffix is left for it prints without one (upstream too), so E stays small.
suffixes = st.sampled_from([*DECIMAL_SUFFIXES[:-2], *BINARY_SUFFIXES, "e0", "e3", "E-3", "e+5", "e-9"])
quantities = st.builds(lambda number, suffix: parse_quantity(number + suffix), numbers, suffixes)


def as_fraction(quantity: Quantity) -> Fraction:
    return quantity.mantissa * Fraction(10) ** quantity.exponent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1..2", FORMAT_WRONG),
        ("1e+", SUFFIX_WRONG),
        ("1eE3", SUFFIX_WRONG),
        ("1e99999999999999999999", SUFFIX_WRONG),
        ("e-10", NUMERIC_WRONG),
    ],
)
def test_what_is_not_a_quantity_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["9" * 5000, "1e2147483648", "99999999999999999999e1000000000"])
def test_a_number_too_long_to_write_out_is_refused_at_once(text: str) -> None:
    with pytest.raises(QuantityError, match="numeric part"):
        parse_quantity(text)


def test_far_apart_numbers_compare_but_are_not_added() -> None:
    huge, one = parse_quantity("1e999999999"), parse_quantity("1")
    assert (huge.cmp(one), one.cmp(huge), huge.cmp(huge)) == (1, -1, 0)
    assert huge.as_approximate_float() == math.inf
    with pytest.raises(QuantityError):
        huge.add(one)
    with pytest.raises(QuantityError):
        parse_quantity("9" * 3980).add(parse_quantity("1e3995"))


@pytest.mark.parametrize(("text", "printed"), table(__file__, "other_texts_print_in_canonical_form"))
def test_other_texts_print_in_canonical_form(text: str, printed: str) -> None:
    assert str(parse_quantity(text)) == printed


@pytest.mark.parametrize(
    ("number", "value", "milli_value"), table(__file__, "manifests_may_hold_numbers_for_quantities")
)
def test_manifests_may_hold_numbers_for_quantities(
    number: str | int | float | None, value: int, milli_value: int
) -> None:
    assert quantity_value(number) == value
    assert quantity_milli_value(number) == milli_value


@pytest.mark.parametrize("number", [True, False, math.nan, math.inf, [], {}])
def test_manifests_may_hold_nothing_else(number: Any) -> None:
    with pytest.raises(QuantityError):
        quantity_value(number)


def test_equal_numbers_are_equal_however_they_are_written() -> None:
    assert len({parse_quantity(text) for text in ("1", "1000m", "1e0", "+1.0", "0.001k")}) == 1
    assert parse_quantity("1") != parse_quantity("2")
    assert parse_quantity("1") != 1


@given(quantities)
def test_what_is_printed_parses_to_the_same_number(quantity: Quantity) -> None:
    assert parse_quantity(str(quantity)) == quantity
    assert hash(parse_quantity(str(quantity))) == hash(quantity)


@given(quantities, quantities)
def test_comparing_and_adding_agree_with_fractions(left: Quantity, right: Quantity) -> None:
    a, b = as_fraction(left), as_fraction(right)
    assert left.cmp(right) == (a > b) - (a < b)
    assert as_fraction(left.add(right)) == a + b
    assert as_fraction(left.sub(right)) == a - b
    assert (left == right) == (a == b)


@given(numbers, suffixes)
def test_a_positive_value_is_the_number_rounded_up(number: str, suffix: str) -> None:
    quantity = parse_quantity(number.lstrip("+-") + suffix)
    exact = as_fraction(quantity)
    for computed, scaled in ((quantity.value(), exact), (quantity.milli_value(), exact * 1000)):
        if math.ceil(scaled) < 2**63:
            assert computed == math.ceil(scaled)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP ", max_size=30))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    quantity.value()
    quantity.milli_value()
    quantity.as_approximate_float()
    str(quantity)


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back(duration_ns: int) -> None:
    assert parse_duration_ns(format_duration(duration_ns)) == duration_ns


@pytest.mark.parametrize(("text", "duration_ns", "written"), table(__file__, "durations_in_all_their_forms"))
def test_durations_in_all_their_forms(text: str, duration_ns: int, written: str) -> None:
    assert parse_duration_ns(text) == duration_ns
    assert format_duration(duration_ns) == written


@pytest.mark.parametrize(
    "text", ["", "x", "5", "s", "-", ".s", "1 s", "1s ", "1d", "3000000h", "--1s", "1.2.3s"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration_ns(text)
