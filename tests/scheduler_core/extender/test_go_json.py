"""v1 objects are printed, and answers read, as Go's encoding/json does it."""

from typing import Any

import pytest

from scheduler_core.extender.go_json import DecodeProblem, decode, encode, read_value, types
from tests.tables import table


def printed_spec(**spec: Any) -> dict[str, Any]:
    result: dict[str, Any] = encode("Pod", {"spec": spec})["spec"]
    return result


def test_the_table_names_only_types_it_has() -> None:
    scalars = {"s", "b", "i32", "i64", "q", "t", "is", "any", "rl"}
    for struct, text in types().items():
        names = [field.partition(":")[0] for field in text.split()]
        assert len(names) == len(set(names)), struct
        for field in text.split():
            kind = field.partition(":")[2].strip("[]{}*")
            assert kind in scalars or kind in types(), f"{struct}.{field}"


@pytest.mark.parametrize(
    ("written", "expected"),
    table(__file__, "amounts_are_printed_as_quantities_are_and_rounded_up_to_thousandths"),
)
def test_amounts_are_printed_as_quantities_are_and_rounded_up_to_thousandths(
    written: Any, expected: str
) -> None:
    spec = printed_spec(containers=[{"name": "c", "resources": {"requests": {"cpu": written}}}])
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": expected}}


def test_a_resource_field_has_a_divisor_of_zero_and_an_empty_dir_keeps_its_size() -> None:
    field = {"resourceFieldRef": {"resource": "limits.cpu"}}
    spec = printed_spec(
        containers=[{"name": "c", "env": [{"name": "E", "valueFrom": field}]}],
        volumes=[{"name": "v", "emptyDir": {"sizeLimit": "500u"}}],
    )
    assert spec["containers"][0]["env"][0]["valueFrom"] == {
        "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}
    }
    assert spec["volumes"] == [{"name": "v", "emptyDir": {"sizeLimit": "500u"}}]


def test_keys_of_answers_match_in_any_case_and_unknown_ones_do_not_matter() -> None:
    text = '{"nodenames": ["a"], "FAILEDNODES": {"b": "x"}, "more": [1, 2]}'
    assert decode("ExtenderFilterResult", read_value(text)) == {"NodeNames": ["a"], "FailedNodes": {"b": "x"}}


def test_null_sets_nothing() -> None:
    assert decode("ExtenderFilterResult", read_value("null")) is None
    text = '{"NodeNames": null, "FailedNodes": {"a": null}, "Error": null}'
    assert decode("ExtenderFilterResult", read_value(text)) == {"FailedNodes": {"a": ""}}


@pytest.mark.parametrize("text", ["", "   ", "{nope", "[1,]", "NaN", "<html>", '{"a":', "[" * 100_000, "'a'"])
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(DecodeProblem):
        read_value(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    table(__file__, "a_value_of_another_type_is_refused"),
)
def test_a_value_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(DecodeProblem):
        decode(kind, read_value(text))
