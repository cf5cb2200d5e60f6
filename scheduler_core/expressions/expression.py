"""One compiled expression, its limits, and what it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from scheduler_core.expressions import cost
from scheduler_core.expressions.functions import FUNCTIONS
from scheduler_core.expressions.syntax import (
    ExpressionError,
    Path,
    SyntaxNode,
    calls,
    names,
    nesting,
    parse,
    paths,
    place,
)
from scheduler_core.expressions.written_out import written_out

OF_THE_LIBRARY: Final = frozenset(
    (
        "size", "contains", "startsWith", "endsWith", "matches", "string", "int", "uint", "double", "bytes", "dyn",
        "type", "has", "duration", "timestamp", "optional.of", "optional.none", "optional.ofNonZeroValue", "orValue",
        "or", "hasValue", "value", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate",
        "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
    )
)  # fmt: skip
"""What the library brings of CEL's standard functions."""
_OF_OURS: Final = re.compile(
    r"Function '\w+' error: Python function call failed: \w+: (.*)\. Check function arguments and their types\.",
    re.DOTALL,
)
"""How the library words the failure of a function of `FUNCTIONS`."""


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
        try:
            import cel  # here and not above: only clusters with devices or rules need the library
        except ImportError:
            raise ExpressionError(
                "expressions need a CEL library: pip install common-expression-language"
            ) from None

        if len(text) > limits.length:
            raise ExpressionError(f"expression is longer than {limits.length} characters")
        self.text = text
        self.limits = limits
        self.tree = parse(text, limits.depth)
        deep = nesting(self.tree)
        if deep > limits.comprehensions:
            raise ExpressionError(
                f"exists, all, map and filter stand {deep} deep in each other, at most {limits.comprehensions} may"
            )
        if variables is not None:
            self._check_names(variables)
        self._cel = cel
        try:
            self._program = cel.compile(written_out(text))
        except ValueError as error:
            raise ExpressionError(str(error)) from None

    def _check_names(self, variables: tuple[str, ...]) -> None:
        for node in names(self.tree):
            if node.value not in variables:
                raise self._wrong(node, f'there is no "{node.value}"; there is {", ".join(variables)}')
        for node in calls(self.tree):
            if node.value not in FUNCTIONS and node.value not in OF_THE_LIBRARY:
                raise self._wrong(node, f'there is no function "{node.value}"')

    def _wrong(self, node: SyntaxNode, said: str) -> ExpressionError:
        return ExpressionError(said, *place(self.text, node.at))

    @cached_property
    def reads(self) -> dict[str, set[Path]]:
        """What it reads of each variable (`syntax.paths`)."""
        return paths(self.tree)

    def run(self, variables: Mapping[str, Any]) -> Any:
        """What it is for these variables.

        Raises
        ------
        ExpressionError
            It fails, or could take more steps than it may.
        """
        steps = cost.bound(self.tree, variables)
        if steps > self.limits.steps:
            raise ExpressionError(
                f"it could take {steps:,} steps here, it may take {self.limits.steps:,}: go through fewer or "
                "shorter lists and texts"
            )
        context = self._cel.Context()
        for name, value in variables.items():
            context.add_variable(name, value)
        for name, function in FUNCTIONS.items():
            context.add_function(name, function)
        try:
            return self._program.execute(context)
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0] if error.args else error}") from None
        except Exception as error:  # whatever the library raises is the expression's failure
            ours = _OF_OURS.fullmatch(str(error))
            raise ExpressionError(ours[1] if ours else str(error)) from None
