"""Expressions without the compiled library, as in a browser: the same values and the same words as with it."""

from typing import Any

import pytest

from scheduler_core.expressions import expression
from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError
from tests.tables import table

LIMITS = ExpressionLimits(length=200)
DEVICE = table(__file__, "DEVICE")
TEXTS = table(__file__, "TEXTS").strip().splitlines()


def outcome(text: str) -> Any:
    try:
        return Expression(text, LIMITS).run({"device": DEVICE})
    except ExpressionError as error:
        return f"failed: {error}"


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_is_the_same_without_the_library(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = outcome(text)
    monkeypatch.setattr(expression, "_library", lambda: None)
    plain = outcome(text)
    assert (plain, type(plain)) == (told, type(told))


@pytest.mark.parametrize(
    "text, size", [('size("äöb")', 3), ('"ä".size()', 1), ("[1, 2].size()", 2), ('size({"ä": 1})', 1)]
)
def test_a_text_is_as_long_as_its_code_points(text: str, size: int) -> None:
    """Source: github.com/google/cel-spec doc/langdef.md, size"""
    assert outcome(text) == size


@pytest.mark.parametrize("text", ["5u > 1u", 'duration("1s") == duration("1s")', 'b"a" == b"a"'])
def test_what_only_the_library_has_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(text) is True
    monkeypatch.setattr(expression, "_library", lambda: None)
    assert "compiled library" in outcome(text) and "line 1, column 1" in outcome(text)
