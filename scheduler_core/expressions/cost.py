"""What running an expression can cost at most, before it is run.

The library counts no steps, so they are bounded from the tree and from what the variables hold: going through a list
costs its elements times what is done with one, a text a step for each ten characters, as in Kubernetes. The bound
follows from the expression and its variables alone, so the same question always meets the same limit.

Source: staging/src/k8s.io/apiserver/pkg/cel (limits.go, cost estimates by sizes), v1.36
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduler_core.expressions.syntax import SyntaxNode

CHARACTERS_A_STEP = 10
_CEILING = 10**15
"""Bounds beyond this are not told apart."""
_REPEATED = re.compile(r"\{\s*(\d+)?\s*,?\s*(\d+)?\s*\}")


_OF_ONE_STEP = frozenset(
    (
        "size", "contains", "startsWith", "endsWith", "has", "int", "uint", "double", "compareTo", "isGreaterThan",
        "isLessThan", "isQuantity", "isSemver", "hasValue", "asInteger", "asApproximateFloat", "sign", "isInteger",
    )
)  # fmt: skip
"""Functions that give a number or a truth."""


class Size:
    """What is known of a value: the values it may be, or how much it holds at most.

    Attributes
    ----------
    values : tuple or None
        Everything it may be; None where it is computed.
    most : int
        Steps it takes to look at all of it, at most.
    """

    __slots__ = ("_most", "values")

    def __init__(self, values: tuple[Any, ...] | None, most: int = 0) -> None:
        self.values = values
        self._most = min(most, _CEILING) if values is None else -1

    @property
    def most(self) -> int:
        if self._most < 0:
            assert self.values is not None
            self._most = max((weight(value) for value in self.values), default=1)
        return self._most

    def field(self, key: Any) -> Size:
        if self.values is None:
            return self
        try:
            return Size(tuple(v[key] for v in self.values if isinstance(v, Mapping) and key in v))
        except TypeError:
            return self.elements()

    def elements(self) -> Size:
        """Any one element, or key of a map."""
        if self.values is None:
            return self
        return Size(tuple(e for v in self.values if isinstance(v, Mapping | list | tuple) for e in v))

    def members(self) -> Size:
        """Any one element, or value of a map."""
        if self.values is None:
            return self
        lists = (v.values() if isinstance(v, Mapping) else v for v in self.values if not isinstance(v, str))
        return Size(tuple(e for v in lists if not isinstance(v, int | float | bool | None) for e in v))

    @property
    def count(self) -> int:
        """How many elements it has at most."""
        if self.values is None:
            return self._most
        return max((len(v) for v in self.values if isinstance(v, Mapping | list | tuple)), default=0)


def weight(value: Any) -> int:
    """Steps it takes to look at all of a value."""
    if isinstance(value, str | bytes):
        return 1 + len(value) // CHARACTERS_A_STEP
    if isinstance(value, Mapping):
        return 1 + sum(weight(key) + weight(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 1 + sum(map(weight, value))
    return 1


def bound(node: SyntaxNode, variables: Mapping[str, Any]) -> int:
    """Steps that running the expression takes at most."""
    return _cost(node, {name: Size((value,)) for name, value in variables.items()})[0]


def _cost(node: SyntaxNode, known: Mapping[str, Size]) -> tuple[int, Size]:
    """Steps, and what comes of them."""
    kind, parts = node.kind, node.parts
    if kind == "literal":
        return 1, Size((node.value,))
    if kind == "name":
        return 1, known.get(str(node.value), Size(None, 1))
    if kind == "macro":
        return _macro(node, known)
    costs, sizes = [], []
    for part in parts:
        cost, size = _cost(part, known)
        costs.append(cost)
        sizes.append(size)
    steps = 1 + sum(costs)
    if kind == "select":
        return steps, sizes[0].field(node.value)
    if kind == "index":
        key = parts[1]
        exact = key.kind == "literal" and key.exact and isinstance(key.value, str)
        return steps, sizes[0].field(key.value) if exact else sizes[0].members()
    if kind == "choice":
        return steps, _either(sizes[1], sizes[2])
    held = sum(size.most for size in sizes)
    if kind == "unary":
        return steps, sizes[0]
    if kind == "binary":
        if node.value in ("&&", "||"):
            return steps, Size(None, 1)
        if node.value in ("+", "-", "*", "/", "%"):
            return steps + held, Size(None, held)
        return min(steps + held, _CEILING), Size(None, 1)
    if kind in ("list", "map"):
        return steps + held, Size(None, 1 + held)
    if kind == "method" and node.value == "matches":
        return min(steps + sizes[0].most * _pattern(sizes[-1]), _CEILING), Size(None, 1)
    if node.value in _OF_ONE_STEP:
        return steps + held, Size(None, 1)
    # Whatever it is, a function looks at what it is given, and gives no more than that and a number's digits.
    return steps + held, Size(None, held + 8)


def _macro(node: SyntaxNode, known: Mapping[str, Size]) -> tuple[int, Size]:
    cost, gone_through = _cost(node.parts[0], known)
    if node.value == "bind":
        steps, size = _cost(node.parts[1], {**known, node.names[0]: gone_through})
        return min(1 + cost + gone_through.most + steps, _CEILING), size
    # `in` a map its keys, in a list its elements.
    element = gone_through.elements()
    inner = {**known, node.names[0]: element}
    each, last = 1, Size(None, 1)
    for part in node.parts[1:]:
        steps, last = _cost(part, inner)
        each += steps
    count = gone_through.count
    total = min(1 + cost + count * each, _CEILING)
    if node.value == "map":
        # The list that is made is copied as it grows.
        return min(total + count * last.most, _CEILING), Size(None, 1 + count * last.most)
    return total, gone_through if node.value == "filter" else Size(None, 1)


def _either(one: Size, other: Size) -> Size:
    if one.values is not None and other.values is not None:
        return Size((*one.values, *other.values))
    return Size(None, max(one.most, other.most))


def _pattern(size: Size) -> int:
    """Steps a regular expression takes for each step of the text, its own making included."""
    if size.values is None:
        return 1_000 * size.most
    worst = 1
    for text in size.values:
        if isinstance(text, str):
            times = 1
            for first, last in _REPEATED.findall(text):
                times = min(times * max(int(first or 1), int(last or 1), 1), _CEILING)
            worst = max(worst, (1 + len(text)) * times)
    return min(worst, _CEILING)
