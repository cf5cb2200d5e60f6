"""One compiled expression: its limits, what it reads, and what running it can cost at most, before it is run.

The library counts no steps, so they are bounded from the tree and from what the variables hold: going through a list
costs its elements times what is done with one, a text a step for each ten characters, as in Kubernetes. The bound
follows from the expression and its variables alone, so the same question always meets the same limit.

Source of costs: staging/src/k8s.io/apiserver/pkg/cel (limits.go, cost estimates by sizes), v1.36
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from scheduler_core.expressions import plain, syntax
from scheduler_core.expressions.functions import FUNCTIONS

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


def bound(node: syntax.SyntaxNode, variables: Mapping[str, Any]) -> int:
    """Steps that running the expression takes at most."""
    return _cost(node, {name: Size((value,)) for name, value in variables.items()})[0]


def _cost(node: syntax.SyntaxNode, known: Mapping[str, Size]) -> tuple[int, Size]:
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


def _macro(node: syntax.SyntaxNode, known: Mapping[str, Size]) -> tuple[int, Size]:
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


OF_THE_LIBRARY: Final = frozenset(
    (
        "contains", "startsWith", "endsWith", "matches", "string", "int", "uint", "double", "bytes", "dyn",
        "type", "has", "duration", "timestamp", "optional.of", "optional.none", "optional.ofNonZeroValue", "orValue",
        "or", "hasValue", "value", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate",
        "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
    )
)  # fmt: skip
"""What the library brings of CEL's standard functions."""
_WORDS: Final = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (
            r"Function '\w+' error: Python function call failed: \w+: (.*)\. Check function arguments and .*",
            r"\1",
        ),
        (r"Function '\w+' error: (.*)\. Check function arguments and their types\.", r"\1"),
        (r"(No such overload|Unsupported operation): .*", plain.NO_OVERLOAD),
        (r"Undefined variable or function: '(\w+)'.*", r"undeclared reference to '\1' (in container '')"),
        (r"Unexpected type: got '(\w+)', want 'int\|uint'\.", r"unsupported index type '\1' in list"),
        (r"(Arithmetic overflow|Function '\w+' error: .*integer overflow).*", "integer overflow"),
        (r"division by zero .*", "division by zero"),
        (r"modulo by zero .*", "modulus by zero"),
    )
)
"""How the library words failures, and how Kubernetes' does: github.com/google/cel-go common/types/err.go."""


def _library() -> Any:
    """The compiled library; None where it is not installed. Only clusters with devices or rules need it."""
    try:
        import cel
    except ImportError:
        return None
    return cel


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """How large an expression may be, and what one run of it may cost.

    Attributes
    ----------
    length : int
        Characters of the text.
    depth : int
        How deep brackets, calls and choices may stand in each other.
    comprehensions : int
        How deep macros that go through a list may stand in each other.
    steps : int
        What a run may take (`cost`).
    """

    length: int
    depth: int = 40
    comprehensions: int = 3
    steps: int = 20_000


class Expression:
    """A compiled expression.

    Parameters
    ----------
    text : str
    limits : ExpressionLimits
    variables : tuple of str, optional
        What it may read, and with it that every function must be known; None leaves both to the library.

    Raises
    ------
    ExpressionError
        It cannot be read, or is beyond a limit; with line and column where they are known.
    """

    def __init__(self, text: str, limits: ExpressionLimits, variables: tuple[str, ...] | None = None) -> None:
        if len(text) > limits.length:
            raise syntax.ExpressionError(f"expression is longer than {limits.length} characters")
        self.text = text
        self.limits = limits
        self.tree = syntax.parse(text, limits.depth)
        deep = syntax.nesting(self.tree)
        if deep > limits.comprehensions:
            raise syntax.ExpressionError(
                f"exists, all, map and filter come {deep} deep in each other, at most {limits.comprehensions} may"
            )
        if variables is not None:
            self._check_names(variables)
        self._cel = _library()
        try:
            self._program: Any = (
                self._cel.compile(self.tree.text) if self._cel else plain.PlainExpression(self.tree, text)
            )
        except ValueError as error:
            raise syntax.ExpressionError(str(error)) from None

    def _check_names(self, variables: tuple[str, ...]) -> None:
        for node in syntax.names(self.tree):
            if node.value not in variables:
                raise self._wrong(node, f'there is no "{node.value}"; there is {", ".join(variables)}')
        for node in syntax.calls(self.tree):
            if node.value not in FUNCTIONS and node.value not in OF_THE_LIBRARY:
                raise self._wrong(node, f'there is no function "{node.value}"')

    def _wrong(self, node: syntax.SyntaxNode, said: str) -> syntax.ExpressionError:
        return syntax.ExpressionError(said, *syntax.place(self.text, node.at))

    @cached_property
    def reads(self) -> dict[str, set[syntax.Path]]:
        """What it reads of each variable (`syntax.paths`)."""
        return syntax.paths(self.tree)

    def run(self, variables: Mapping[str, Any]) -> Any:
        """What it is for these variables.

        Raises
        ------
        ExpressionError
            It fails, or could take more steps than it may.
        """
        steps = bound(self.tree, variables)
        if steps > self.limits.steps:
            raise syntax.ExpressionError(
                f"it could take {steps:,} steps here, it may take {self.limits.steps:,}: go through fewer or "
                "shorter lists and texts"
            )
        if self._cel is None:
            return self._program.execute(variables)
        context = self._cel.Context()
        for name, value in variables.items():
            context.add_variable(name, value)
        for name, function in FUNCTIONS.items():
            context.add_function(syntax.OURS.get(name, name), function)
        try:
            return self._program.execute(context)
        except KeyError as error:
            raise syntax.ExpressionError(f"no such key: {error.args[0] if error.args else error}") from None
        except Exception as error:  # whatever the library raises is the expression's failure
            raise syntax.ExpressionError(_in_upstreams_words(str(error))) from None


def _in_upstreams_words(said: str) -> str:
    for pattern, words in _WORDS:
        if found := pattern.fullmatch(said):
            return found.expand(words)
    return said
