"""The text of a CEL expression as a tree: what bounds, names and reads of an expression are found in.

The library that runs expressions shows no tree. What this reads is what the library reads, but for messages
(`Type{...}`), which have no meaning here. Syntax the library lacks (`.?`, `[?` and `cel.bind`) is written out for it.

Source: github.com/google/cel-spec doc/langdef.md, grammar
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import Any, Final

_MOST: Final = 100_000
"""Characters: what is optional is written several times, and doubles with each step of a chain."""
MACROS: Final = ("all", "exists", "exists_one", "existsOne", "map", "filter")
"""Methods that go through a list or map with a name for each element."""

TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|(?P<string>[rRbB]{0,2}(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"""
    r"""|(?P<symbol>\.\?|\[\?|&&|\|\||[<>=!]=|.)""",
    re.DOTALL,
)
_RELATIONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "in"))
OURS: Final = {"size": "size_"}
"""Functions that the library has, and for which it must ask ours: their names in the text that it reads."""
_LITERALS: Final = {"true": True, "false": False, "null": None}


class ExpressionError(Exception):
    """An expression that cannot be read or run.

    Attributes
    ----------
    line, column : int
        Where, from 1; 0 where the place is not known.
    """

    def __init__(self, said: str, line: int = 0, column: int = 0) -> None:
        self.said, self.line, self.column = said, line, column
        super().__init__(f"line {line}, column {column}: {said}" if line else said)


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """One node of the tree.

    Attributes
    ----------
    kind : str
        literal, name, select, index, call, method, list, map, unary, binary, choice or macro.
    value : object
        The literal's value; the name; the field; the function, method or operator, of a unary one each time it is
        written. Of a literal whose value is not known here (bytes, escapes, unsigned numbers) `exact` is False.
    parts : tuple of Node
        Operand first. Of a macro: what it goes through, then the rest with the names bound.
    names : tuple of str
        What a macro binds.
    at : int
        Place in the text.
    optional : bool
        Of a field or an element: whether it may be missing.
    text : str
        As the library reads it: without `.?`, `[?` and `cel.bind`, which mean the same written out.

    >>> parse('device.attributes["x"].?fast.orValue(false)', 50).text
    '(has(device.attributes["x"].fast)?optional.of(device.attributes["x"].fast):optional.none()).orValue(false)'
    >>> parse("cel.bind(d, f(1), d > 2)", 50).text
    '[f(1)].map(d,d > 2)[0]'
    """

    kind: str
    value: Any
    parts: tuple[SyntaxNode, ...] = ()
    names: tuple[str, ...] = ()
    at: int = 0
    exact: bool = True
    optional: bool = False
    text: str = ""


def parse(text: str, max_depth: int) -> SyntaxNode:
    """Read an expression.

    Raises
    ------
    ExpressionError
        With line and column.
    """
    return _Parser(text, max_depth).whole()


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column, from 1, of a place in a text."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


class _Parser:
    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._tokens = [match for match in TOKEN.finditer(text) if match.lastgroup]
        self._at = 0
        self._depth = 0
        self._max_depth = max_depth

    def whole(self) -> SyntaxNode:
        if not self._tokens:
            raise self._wrong("the expression is empty")
        node = self._choice()
        if self._peek() is not None:
            raise self._wrong(f"unexpected {self._peek()!r}")
        return node

    # ---- by precedence

    def _choice(self) -> SyntaxNode:
        self._depth += 1
        if self._depth > self._max_depth:
            raise self._wrong(f"the expression is nested deeper than {self._max_depth}")
        node = self._binary(0)
        if self._peek() == "?":
            at = self._here()
            self._take()
            then = self._choice()
            self._expect(":")
            other = self._choice()
            text = f"{node.text}?{then.text}:{other.text}"
            node = SyntaxNode("choice", "?:", (node, then, other), at=at, text=text)
        self._depth -= 1
        return node

    _LEVELS = (frozenset(("||",)), frozenset(("&&",)), _RELATIONS, frozenset("+-"), frozenset("*/%"))

    def _binary(self, level: int) -> SyntaxNode:
        if level == len(self._LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self._peek() in self._LEVELS[level]:
            at = self._here()
            operator = self._take()
            other = self._binary(level + 1)
            text = f"{node.text} {operator} {other.text}"
            node = SyntaxNode("binary", operator, (node, other), at=at, text=text)
        return node

    def _unary(self) -> SyntaxNode:
        at, operator, signs = self._here(), self._peek(), ""
        if operator not in ("!", "-"):
            return self._member()
        while self._peek() == operator:
            signs += self._take()
        node = self._member()
        return SyntaxNode("unary", signs, (node,), at=at, text=signs + node.text)

    def _member(self) -> SyntaxNode:
        node = self._primary()
        links = 0
        while (token := self._peek()) in (".", ".?", "[", "[?"):
            links += 1
            if links > 4 * self._max_depth:
                raise self._wrong(f"more than {4 * self._max_depth} fields and methods hang on one value")
            at = self._here()
            self._take()
            if token in ("[", "[?"):
                key, of = self._choice(), node.text
                text = f"{of}[{key.text}]"
                if token == "[?":
                    text = f"({key.text} in {of}?optional.of({text}):optional.none())"
                node = SyntaxNode("index", "[]", (node, key), at=at, optional=token == "[?", text=text)
                self._expect("]")
            else:
                node = self._field(node, self._word(), at, optional=token == ".?")
            if len(node.text) > _MOST:
                raise ExpressionError("too many optional fields hang on one value")
        return node

    def _field(self, owner: SyntaxNode, name: str, at: int, *, optional: bool) -> SyntaxNode:
        text = f"{owner.text}.{name}"
        if optional:
            text = f"(has({text})?optional.of({text}):optional.none())"
        if self._peek() != "(" or optional:
            return SyntaxNode("select", name, (owner,), at=at, optional=optional, text=text)
        self._take()
        if owner.kind == "name" and owner.value == "cel" and name == "bind":
            bound = self._word()
            self._expect(",")
            value = self._choice()
            self._expect(",")
            body = self._choice()
            self._expect(")")
            text = f"[{value.text}].map({bound},{body.text})[0]"
            return SyntaxNode("macro", "bind", (value, body), (bound,), at, text=text)
        given = self._given(")")
        text = f"{owner.text}.{OURS.get(name, name)}({_listed(given)})"
        if name in MACROS:
            if not given or given[0].kind != "name":
                raise self._wrong(f"{name} needs a name for the elements first", at)
            if len(given) != 2 and not (name == "map" and len(given) == 3):
                raise self._wrong(f"{name} needs, after the name for the elements, one expression", at)
            return SyntaxNode("macro", name, (owner, *given[1:]), (str(given[0].value),), at, text=text)
        if owner.kind == "name" and owner.value == "optional":
            return SyntaxNode("call", f"optional.{name}", tuple(given), at=at, text=text)
        return SyntaxNode("method", name, (owner, *given), at=at, text=text)

    def _primary(self) -> SyntaxNode:
        if self._at >= len(self._tokens):
            raise self._wrong("the expression ends too soon")
        match = self._tokens[self._at]
        at, token = match.start(), match[0]
        self._at += 1
        match match.lastgroup:
            case "string":
                return _string(token, at)
            case "number":
                value = _number(token)
                return SyntaxNode(
                    "literal", 0 if value is None else value, at=at, exact=value is not None, text=token
                )
            case "word" if token in _LITERALS:
                return SyntaxNode("literal", _LITERALS[token], at=at, text=token)
            case "word" if self._peek() == "(" and token != "in":
                self._take()
                given = self._given(")")
                return SyntaxNode(
                    "call", token, tuple(given), at=at, text=f"{OURS.get(token, token)}({_listed(given)})"
                )
            case "word" if token != "in":
                return SyntaxNode("name", token, at=at, text=token)
        if token == "(":
            node = self._choice()
            self._expect(")")
            return replace(node, text=f"({node.text})")
        if token == "[":
            given = self._given("]")
            return SyntaxNode("list", "[]", tuple(given), at=at, text=f"[{_listed(given)}]")
        if token == "{":
            given = self._given("}", ":")
            pairs = zip(given[::2], given[1::2], strict=True)
            text = f"{{{','.join(f'{key.text}:{value.text}' for key, value in pairs)}}}"
            return SyntaxNode("map", "{}", tuple(given), at=at, text=text)
        said = "the text in quotes does not end" if token in ("'", '"') else f"unexpected {token!r}"
        raise self._wrong(said, at)

    # ---- pieces

    def _given(self, closing: str, between: str = "") -> list[SyntaxNode]:
        """Expressions up to the closing bracket, parted by commas; of a map keys and values in turn."""
        items: list[SyntaxNode] = []
        while self._peek() != closing:
            items.append(self._choice())
            if between:
                self._expect(between)
                items.append(self._choice())
            if self._peek() != ",":
                break
            self._take()
        self._expect(closing)
        return items

    def _peek(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        token: str = self._tokens[self._at][0]
        self._at += 1
        return token

    def _word(self) -> str:
        if self._at >= len(self._tokens):
            raise self._wrong("the expression ends too soon")
        if self._tokens[self._at].lastgroup != "word":
            raise self._wrong(f"expected a name, not {self._peek()!r}")
        return self._take()

    def _expect(self, token: str) -> None:
        if self._peek() is None:
            raise self._wrong(f"the expression ends too soon: {token!r} is missing")
        if self._peek() != token:
            raise self._wrong(f"expected {token!r}, not {self._peek()!r}")
        self._take()

    def _here(self) -> int:
        return self._tokens[self._at].start() if self._at < len(self._tokens) else len(self._text)

    def _wrong(self, said: str, at: int | None = None) -> ExpressionError:
        return ExpressionError(said, *place(self._text, self._here() if at is None else at))


def _listed(nodes: list[SyntaxNode]) -> str:
    return ",".join(node.text for node in nodes)


def _number(token: str) -> int | float | None:
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", token):
        return int(token, 16 if token[1:2] in ("x", "X") else 10)
    try:
        return float(token)
    except ValueError:  # an unsigned one
        return None


def _string(token: str, at: int) -> SyntaxNode:
    prefix = token[: len(token) - len(token.lstrip("rRbB"))].lower()
    if "b" in prefix:
        return SyntaxNode("literal", "", at=at, exact=False, text=token)
    if "r" in prefix:
        return SyntaxNode("literal", token[len(prefix) + 1 : -1], at=at, text=token)
    try:
        return SyntaxNode("literal", ast.literal_eval(token), at=at, text=token)
    except (SyntaxError, ValueError):
        # An escape of CEL's that Python has not, or a line break: the value is as long as the text at most.
        return SyntaxNode("literal", token[1:-1], at=at, exact=False, text=token)


def names(node: SyntaxNode, bound: frozenset[str] = frozenset()) -> list[SyntaxNode]:
    """Where variables are read that no macro binds, in order."""
    if node.kind == "name":
        return [] if node.value in bound else [node]
    found: list[SyntaxNode] = []
    for place_, part in enumerate(node.parts):
        inner = bound | frozenset(node.names) if node.kind == "macro" and place_ else bound
        found += names(part, inner)
    return found


def calls(node: SyntaxNode) -> list[SyntaxNode]:
    """All calls of functions and methods, in order."""
    found = [node] if node.kind in ("call", "method") else []
    for part in node.parts:
        found += calls(part)
    return found


def nesting(node: SyntaxNode) -> int:
    """How deep macros that go through lists stand in each other."""
    if node.kind != "macro" or node.value == "bind":
        return max((nesting(part) for part in node.parts), default=0)
    return max(nesting(node.parts[0]), 1 + max((nesting(part) for part in node.parts[1:]), default=0))


Path = tuple[str, ...]


def paths(node: SyntaxNode) -> dict[str, set[Path]]:
    """What is read of each variable: the fields that lead to it, the empty path for all of it.

    >>> found = paths(parse('node.metadata.labels["disk"] == "ssd" && has(pod.spec.x) || pods.size() > 2', 50))
    >>> sorted(found.items())
    [('node', {('metadata', 'labels', 'disk')}), ('pod', {('spec', 'x')}), ('pods', {()})]
    """
    found: dict[str, set[Path]] = {}
    _paths(node, frozenset(), found)
    return found


def _paths(node: SyntaxNode, bound: frozenset[str], found: dict[str, set[Path]]) -> None:
    chain: list[str] = []
    inner = node
    while True:
        if inner.kind == "select":
            chain.append(str(inner.value))
        elif (
            inner.kind == "index"
            and inner.parts[1].kind == "literal"
            and inner.parts[1].exact
            and (isinstance(inner.parts[1].value, str))
        ):
            chain.append(inner.parts[1].value)
        else:
            break
        inner = inner.parts[0]
    if inner.kind == "name":
        if inner.value not in bound:
            found.setdefault(str(inner.value), set()).add(tuple(reversed(chain)))
        return
    for position, part in enumerate(inner.parts):
        within = bound | frozenset(inner.names) if inner.kind == "macro" and position else bound
        _paths(part, within, found)
