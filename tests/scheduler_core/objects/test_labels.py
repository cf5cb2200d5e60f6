"""Label and field selectors match and complain as Kubernetes' do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_values import run_selector_case
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import (
    label_selector_from,
    parse_field_selector_text,
    parse_label_selector_text,
)
from tests.tables import table


def test_a_selector_case_of_unknown_kind_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="unknown kind 'other'"):
        run_selector_case({"kind": "other", "selector": None, "expect": {}})


@pytest.mark.parametrize(
    ("document", "path", "message"),
    table(__file__, "a_broken_selector_names_the_field"),
)
def test_a_broken_selector_names_the_field(document: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector_from(document)
    assert caught.value.path == path
    assert message in str(caught.value)


@pytest.mark.parametrize(("document", "path", "reason"), table(__file__, "a_field_of_another_type_is_named"))
def test_a_field_of_another_type_is_named(document: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        label_selector_from(document, "spec.selector")
    assert caught.value.path == f"spec.selector.{path}"
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(
    ("text", "printed"),
    table(__file__, "text_selectors_print_in_order_of_keys"),
)
def test_text_selectors_print_in_order_of_keys(text: str, printed: str | None) -> None:
    if printed is None:
        with pytest.raises(SelectorError):
            parse_label_selector_text(text)
    else:
        assert str(parse_label_selector_text(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    table(__file__, "a_broken_text_selector_is_refused_in_upstreams_words"),
)
def test_a_broken_text_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector_text(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("value", "expected"), table(__file__, "greater_than_compares_64_bit_integers"))
def test_greater_than_compares_64_bit_integers(value: str, expected: bool) -> None:
    assert parse_label_selector_text("n>5").matches({"n": value}) is expected


@given(st.text(alphabet="ab=!()<>, \tin.not\0", max_size=20))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        str(parse_label_selector_text(text))
    except SelectorError as error:
        assert str(error)


@pytest.mark.parametrize(("text", "printed"), table(__file__, "field_selectors_parse_and_print"))
def test_field_selectors_parse_and_print(text: str, printed: str) -> None:
    assert str(parse_field_selector_text(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"), table(__file__, "a_broken_field_selector_is_refused_in_upstreams_words")
)
def test_a_broken_field_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector_text(text)
    assert str(caught.value) == message
