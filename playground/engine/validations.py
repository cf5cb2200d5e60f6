"""Rules of CustomResourceDefinitions (`x-kubernetes-validations`), in CEL, bounded.

Differs: a rule that the library here cannot read, that fails while it runs or could cost too much is passed over, as
the definition is right for an API server. One that fails at a quantity breaks, as there.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, v1.36
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError
from scheduler_core.objects.quantity import FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG

_LONGEST: Final = 4096


@lru_cache(maxsize=1)
def _program() -> Any:
    # Imported where a pattern is first asked for: it brings a command line of its own, which takes each start a while.
    import cel

    return cel.compile("text.matches(pattern)")


def is_pattern(pattern: str) -> bool:
    """Whether a pattern can be read (syntax of RE2)."""
    return _found(pattern, "") is not None


def matches(pattern: str, text: str) -> bool:
    """Whether a text holds a match; a pattern that cannot be read matches all."""
    return _found(pattern, text) is not False


def _found(pattern: str, text: str) -> bool | None:
    if len(pattern) > _LONGEST:
        return None
    try:
        return bool(_program().execute({"text": text, "pattern": pattern}))
    except (RuntimeError, ValueError):
        return None


LIMITS: Final = ExpressionLimits(length=4096, comprehensions=3, steps=100_000)
SELF: Final = "self"
OLD: Final = "oldSelf"
UNREADABLE: Final = (FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG)


def broken_rule(rule: Mapping[str, Any], value: Any, old: Any = None) -> str | None:
    """What a rule says of a value that breaks it; None when it holds, or is about a change and there is none.

    Parameters
    ----------
    rule
        With ``rule`` and perhaps ``message`` or ``messageExpression``.
    old
        The value before; None = there was none.

    Examples
    --------
    >>> broken_rule({"rule": "self.min <= self.max", "message": "must not cross"}, {"min": 3, "max": 2})
    'must not cross'
    >>> broken_rule({"rule": "self == oldSelf"}, 2, 1)
    'failed rule: self == oldSelf'
    >>> broken_rule({"rule": "self == oldSelf"}, 2)
    >>> broken_rule({"rule": "quantity(self).sign() > 0"}, "1e999999999")
    'unable to parse numeric part of quantity evaluating rule: quantity(self).sign() > 0'
    """
    text = rule.get("rule")
    expression = _read(text) if isinstance(text, str) else None
    if expression is None or (OLD in expression.reads and old is None):
        return None
    known = {SELF: value, OLD: old}
    try:
        if _run(expression, known) is not False:
            return None
    except ExpressionError as error:
        if str(error) not in UNREADABLE:
            return None
        return f"{error} evaluating rule: {rule.get('message') or text}"
    said = None
    if isinstance(rule.get("messageExpression"), str) and (made := _read(rule["messageExpression"])):
        with suppress(ExpressionError):
            said = _run(made, known)
    if isinstance(said, str) and said.strip():
        return said
    message = rule.get("message")
    return message if isinstance(message, str) and message else f"failed rule: {text}"


@lru_cache(maxsize=2000)
def _read(text: str) -> Expression | None:
    try:
        return Expression(text, LIMITS, (SELF, OLD))
    except ExpressionError:
        return None


def _run(expression: Expression, known: Mapping[str, Any]) -> Any:
    return expression.run({name: known[name] for name in known if name in expression.reads})
