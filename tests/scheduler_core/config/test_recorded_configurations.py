"""Configurations are decoded, defaulted, validated and built as the real kube-scheduler v1.34 does it."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance import read_cases
from scheduler_core.cli.conformance_values import outcome
from scheduler_core.errors import ConfigurationError
from scheduler_core.plugins import load_configuration

CASES = list(read_cases(Path(__file__).parents[1] / "conformance/data/config-validation.jsonl.gz"))
EACH = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def source_of(case: dict[str, Any]) -> Any:
    return case["text"] if "text" in case else case["config"]


@EACH
def test_validation_errors_read_as_kubernetes_prints_them(case: dict[str, Any]) -> None:
    wanted = [error["message"] for error in case["expect"].get("errors", [])]
    assert [error["message"] for error in outcome(source_of(case)).get("errors", [])] == wanted


@EACH
def test_every_refusal_names_a_field_and_everything_else_loads(case: dict[str, Any]) -> None:
    expect = case["expect"]
    if not expect.get("errors") and not expect.get("constructionError") and "decodeError" not in expect:
        assert load_configuration(source_of(case)).plans
        return
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(source_of(case))
    assert refused.value.errors
    assert all(error.field for error in refused.value.errors)
