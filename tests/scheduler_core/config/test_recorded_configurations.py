"""Configurations are decoded, defaulted, validated and built as the real kube-scheduler v1.34 does it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance_values import outcome, run_config_case
from scheduler_core.errors import ConfigurationError
from scheduler_core.plugins import load_configuration

RECORDED = Path(__file__).parents[2] / "conformance" / "data" / "config-validation.jsonl.gz"


def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CASES = recorded()
EACH = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def source_of(case: dict[str, Any]) -> Any:
    return case["text"] if "text" in case else case["config"]


@EACH
def test_the_outcome_is_the_recorded_one(case: dict[str, Any]) -> None:
    assert run_config_case(case) == []


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


def test_a_changed_expectation_is_a_difference() -> None:
    case = next(case for case in CASES if "defaulted" in case["expect"])
    changed = json.loads(json.dumps(case))
    changed["expect"]["defaulted"]["profiles"][0]["args"] = {}
    changed["expect"]["constructionError"] = "nothing fits"
    keys = [difference.key for difference in run_config_case(changed)]
    assert "constructionError" in keys
    assert any(key.startswith("defaulted.profiles[0].args") for key in keys)
