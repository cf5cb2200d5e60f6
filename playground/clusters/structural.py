"""Structural schemas of CustomResourceDefinitions: prune, default and validate an object, rules in CEL included.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema, v1.34; k8s.io/kube-openapi/pkg/validation
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from scheduler_core.errors import FieldError, invalid, not_supported, required
from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError
from scheduler_core.objects.quantity import FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG


class OverLimit(Exception):
    """What a piece of work of the site's own processes took is more than it may take; the words name the limit."""


_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


@contextmanager
def at_most(processor_s: float) -> Iterator[None]:
    """Hold what is done inside, in this thread, to so much processor time: `go_on` raises when it is used up."""
    token = _left.set([time.thread_time() + processor_s, processor_s])
    try:
        yield
    finally:
        _left.reset(token)


def go_on() -> None:
    """To be called at each step of what may take long.

    Raises
    ------
    OverLimit
    """
    left = _left.get()
    if left is not None and time.thread_time() > left[0]:
        raise OverLimit(f"takes more than the {left[1]:g} s of processor time that it may take")


# ---- Rules of CustomResourceDefinitions (`x-kubernetes-validations`), in CEL, bounded
#
# Differs: a rule that the library here cannot read, that fails while it runs or could cost too much is passed over,
# as
# the definition is right for an API server. One that fails at a quantity breaks, as there.
#
# Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, v1.36

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


Schema = Mapping[str, Any]
Problem = tuple[str, str, Any]
"""Path, words, value."""

_ROOT: Final = ("apiVersion", "kind", "metadata")
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_RULES: Final = "x-kubernetes-validations"
_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")
_MAX_DEPTH: Final = 60
_MOST_PROBLEMS: Final = 10


def schema_problem(schema: Any, path: str, depth: int = 0) -> FieldError | None:
    """The first thing that makes a schema not structural, or its default no value of it; None for nothing."""
    if not isinstance(schema, Mapping):
        return required(path, "must be an object")
    if depth > _MAX_DEPTH:
        return FieldError("FieldValueForbidden", path, None, "is nested too deeply")
    kind, pattern = schema.get("type"), schema.get("pattern")
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    if kind not in _TYPES and (
        kind not in (None, "") or not (schema.get(_PRESERVE) or schema.get(_INT_OR_STRING))
    ):
        words = "must not be empty for specified object fields"
        return (
            not_supported(f"{path}.type", kind, sorted(_TYPES)) if kind else required(f"{path}.type", words)
        )
    if isinstance(pattern, str) and not is_pattern(pattern):
        return invalid(f"{path}.pattern", pattern, "must be a valid regular expression")
    if not isinstance(properties, Mapping):
        return invalid(f"{path}.properties", properties, "must be an object")
    if properties and more:
        words = "additionalProperties and properties are mutual exclusive"
        return FieldError("FieldValueForbidden", f"{path}.additionalProperties", None, words)
    below = [
        (f"{path}.properties[{name}]", inner)
        for name, inner in properties.items()
        if depth or name not in _ROOT
    ]
    if isinstance(more, Mapping):
        below.append((f"{path}.additionalProperties", more))
    elif kind == "array":
        below.append((f"{path}.items", schema.get("items")))
    for place, inner in below:
        if (found := schema_problem(inner, place, depth + 1)) is not None:
            return found
    if (default := schema.get("default")) is not None:
        wrong = next(_problems(defaulted(copied(default), schema), schema, ""), None)
        return wrong and invalid(f"{path}.default", wrong[2], wrong[1])
    return None


def pruned(value: Any, schema: Schema, unknown: list[str] | None = None) -> Any:
    """The value without fields the schema does not name; their paths are added to `unknown`."""
    return _pruned(value, schema, [] if unknown is None else unknown, "", root=True)


def _pruned(value: Any, schema: Schema, unknown: list[str], path: str, *, root: bool) -> Any:
    go_on()
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return value
        return [
            _pruned(item, items, unknown, f"{path}[{number}]", root=False)
            for number, item in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    result = {}
    for name, inner in value.items():
        here = f"{path}.{name}" if path else str(name)
        known = _inner(schema, name, root)
        if known is None:
            unknown.append(here)
        elif known:
            result[name] = _pruned(inner, known, unknown, here, root=bool(known.get(_EMBEDDED)))
        else:
            result[name] = inner
    return result


def names_at(schema: Schema, path: str) -> list[str]:
    """The fields the schema names beside the one at a path."""
    for step in re.sub(r"\[\d+\]", ".[]", path).split(".")[:-1]:
        inner = schema.get("items") if step == "[]" else (schema.get("properties") or {}).get(step)
        if not isinstance(inner, Mapping):
            inner = schema.get("additionalProperties")
        if not isinstance(inner, Mapping):
            return []
        schema = inner
    return [str(name) for name in schema.get("properties") or ()]


def _inner(schema: Schema, name: str, root: bool) -> Schema | None:
    """The schema of a field: empty = anything goes, None = there is no such field."""
    if root and name in _ROOT:
        return {}
    properties = schema.get("properties") or {}
    if name in properties:
        found = properties[name]
        return found if isinstance(found, Mapping) else {}
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        return more
    if more or schema.get(_PRESERVE) or (not properties and not schema.get("type")):
        return {}
    return None


def defaulted(value: Any, schema: Schema) -> Any:
    """The value with the schema's defaults where it says nothing."""
    go_on()
    if isinstance(value, list):
        items = schema.get("items")
        return [defaulted(item, items) for item in value] if isinstance(items, Mapping) else value
    if not isinstance(value, Mapping):
        return value
    result = dict(value)
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        if not isinstance(inner, Mapping):
            continue
        # A null where null is not allowed is as if nothing was said.
        empty = result.get(name) is None and not inner.get("nullable")
        if "default" in inner and (name not in result or empty):
            result[name] = copied(inner["default"])
        elif name in result and empty and result[name] is None:
            del result[name]
        if name in result:
            result[name] = defaulted(result[name], inner)
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        for name in result.keys() - properties.keys():
            result[name] = defaulted(result[name], more)
    return result


def copied(value: Any) -> Any:
    """A copy of data, made step by step: defaults of one schema may be copied into each of many items."""
    go_on()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    """Whether data are equal, found step by step."""
    go_on()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def problems(value: Any, schema: Schema, path: str = "") -> list[Problem]:
    """What the schema does not allow, the first few."""
    found = []
    for problem in _problems(value, schema, path, root=True):
        found.append(problem)
        if len(found) >= _MOST_PROBLEMS:
            break
    return found


def broken_rules(value: Any, old: Any, schema: Schema, path: str = "") -> list[Problem]:
    """What the rules in CEL (`x-kubernetes-validations`) do not allow, the first few.

    Parameters
    ----------
    old
        What was there; None = nothing, and rules about a change do not apply.
    """
    return list(islice(_broken(value, old, schema, path), _MOST_PROBLEMS))


def _broken(value: Any, old: Any, schema: Schema, path: str) -> Iterator[Problem]:
    go_on()
    if value is None:
        return
    rules = schema.get(_RULES)
    for rule in rules if isinstance(rules, list) else ():
        go_on()
        if isinstance(rule, Mapping) and (said := broken_rule(rule, value, old)) is not None:
            below = rule.get("fieldPath")
            place = f"{path}{below}" if isinstance(below, str) else path
            yield place.lstrip("."), said, value
    if isinstance(value, Mapping):
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        for name, item in value.items():
            inner = properties.get(name, more)
            if isinstance(inner, Mapping):
                before = old.get(name) if isinstance(old, Mapping) else None
                yield from _broken(item, before, inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        earlier = old if isinstance(old, list) and keys else ()
        known = {_key(item, keys): item for item in earlier if isinstance(item, Mapping)}
        for number, item in enumerate(value):
            before = known.get(_key(item, keys)) if isinstance(item, Mapping) else None
            yield from _broken(item, before, schema["items"], f"{path}[{number}]")


def _key(item: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys)


def _problems(value: Any, schema: Schema, path: str, *, root: bool = False) -> Iterator[Problem]:
    go_on()
    if value is None:
        if not schema.get("nullable") and schema.get("type") and not schema.get(_PRESERVE):
            yield path, f'must be of type {schema["type"]}: "null"', value
        return
    if schema.get(_INT_OR_STRING):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield path, "must be of type integer or string", value
        return
    kind = schema.get("type")
    if kind in _TYPES and not _is(value, kind):
        yield path, f'must be of type {kind}: "{_type_name(value)}"', value
        return
    if "enum" in schema and not _is_one_of(value, schema["enum"]):
        shown = ", ".join(f'"{each}"' for each in schema["enum"])
        yield path, f"Unsupported value: supported values: {shown}", value
    yield from _bounds(value, schema, path)
    if isinstance(value, Mapping):
        for name in schema.get("required") or ():
            if name not in value:
                yield f"{path}.{name}" if path else name, "Required value", None
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        for name, item in value.items():
            if root and name in _ROOT:
                continue
            inner = properties.get(name, more)
            if isinstance(inner, Mapping):
                yield from _problems(item, inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for number, item in enumerate(value):
                yield from _problems(item, items, f"{path}[{number}]")
        yield from _doubles(value, schema, path)
    yield from _combined(value, schema, path)


def _bounds(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if isinstance(value, str):
        sized, words = len(value), "characters long"
        least, most = "minLength", "maxLength"
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not matches(pattern, value):
            yield path, f"should match '{pattern}'", value
    elif isinstance(value, list):
        sized, words, least, most = len(value), "items", "minItems", "maxItems"
    elif isinstance(value, Mapping):
        sized, words, least, most = len(value), "properties", "minProperties", "maxProperties"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
            yield (
                path,
                f"should be greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{low}",
                value,
            )
        if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
            yield (
                path,
                f"should be less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{high}",
                value,
            )
        if schema.get("multipleOf") and value % schema["multipleOf"]:
            yield path, f"should be a multiple of {schema['multipleOf']}", value
        return
    else:
        return
    if schema.get(least) is not None and sized < schema[least]:
        yield path, f"should be at least {schema[least]} {words}", value
    if schema.get(most) is not None and sized > schema[most]:
        yield path, f"may not be more than {schema[most]} {words}", value


def _doubles(value: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    seen: set[str] = set()
    for number, item in enumerate(value):
        if kind == "map":
            if not isinstance(item, Mapping):  # said already: it is of another type
                continue
            item = {key: item.get(key) for key in keys}
        mark = json.dumps(item, sort_keys=True)
        if mark in seen:
            yield f"{path}[{number}]", "Duplicate value", item
        seen.add(mark)


def _is_one_of(value: Any, allowed: Sequence[Any]) -> bool:
    for number, each in enumerate(allowed):
        if number % 256 == 255:
            go_on()
        if value == each:
            return True
    return False


def _combined(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    def fits(inner: Any) -> bool:
        return isinstance(inner, Mapping) and next(_problems(value, inner, path), None) is None

    for inner in schema.get("allOf") or ():
        if isinstance(inner, Mapping):
            yield from _problems(value, inner, path)
    if schema.get("anyOf") and not any(fits(inner) for inner in schema["anyOf"]):
        yield path, "must validate at least one schema (anyOf)", value
    if schema.get("oneOf") and sum(fits(inner) for inner in schema["oneOf"]) != 1:
        yield path, "must validate one and only one schema (oneOf)", value
    if isinstance(schema.get("not"), Mapping) and fits(schema["not"]):
        yield path, "must not validate the schema (not)", value


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, Mapping)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _type_name(value: Any) -> str:
    return next(
        kind for kind in ("boolean", "integer", "number", "string", "array", "object") if _is(value, kind)
    )
