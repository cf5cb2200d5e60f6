"""Configurations are decoded, defaulted, validated and built as the real kube-scheduler v1.34 does it."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance import read_cases
from scheduler_core.errors import ConfigurationError
from scheduler_core.plugins import load_configuration

CASES = list(read_cases(Path(__file__).parents[1] / "conformance/data/config-validation.jsonl.gz"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_refused_names_fields_in_the_words_of_kubernetes_and_everything_else_loads(
    case: dict[str, Any],
) -> None:
    expect, source = case["expect"], case["text"] if "text" in case else case["config"]
    if not expect.get("errors") and not expect.get("constructionError") and "decodeError" not in expect:
        assert load_configuration(source).plans
        return
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(source)
    assert refused.value.errors and all(error.field for error in refused.value.errors)
    if messages := [error["message"] for error in expect.get("errors") or ()]:
        found = zip(refused.value.errors, messages, strict=True)
        assert all(str(error).startswith(message) for error, message in found)
