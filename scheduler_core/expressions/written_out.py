"""Syntax the library lacks, written out before it reads the text: `.?`, `[?` and `cel.bind`."""

from __future__ import annotations

import re

from scheduler_core.expressions.syntax import TOKEN, ExpressionError

_MOST = 100_000
"""Characters: what is optional is written several times, and doubles with each step of a chain."""


def written_out(text: str) -> str:
    """The expression without `.?`, `[?` and `cel.bind`, which mean the same written out.

    >>> written_out('device.attributes["x"].?fast.orValue(false)')
    '(has(device.attributes["x"].fast)?optional.of(device.attributes["x"].fast):optional.none()).orValue(false)'
    >>> written_out("cel.bind(d, f(1), d > 2)")
    '[f(1)].map(d,d>2)[0]'
    """
    return _Writer([match for match in TOKEN.finditer(text) if match.lastgroup]).expression()


_CLOSING = {"(": ")", "[": "]", "{": "}"}


class _Writer:
    """Goes through the tokens once; the text of a chain (`a.b[c].d(e)`) is kept until it ends."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def expression(self, until: tuple[str, ...] = ()) -> str:
        """Everything up to one of `until`, which is left, or to the end."""
        parts: list[str] = []
        while (token := self._peek()) is not None and token not in until:
            kind = self._tokens[self._at].lastgroup
            if kind == "symbol" and token not in _CLOSING:
                parts.append(self._take())
                continue
            chain = self._chain()
            if parts and parts[-1][-1:].isalnum() and chain[:1].isalnum():
                parts.append(" ")
            if parts and chain[:1].isalnum() and re.fullmatch(r"[A-Za-z_]\w*", parts[-1]):
                parts.append(" ")
            parts.append(f" {chain} " if chain == "in" else chain)
        return "".join(parts)

    def _chain(self) -> str:
        """An operand with everything that hangs on it."""
        text = self._operand()
        while (token := self._peek()) is not None:
            if len(text) > _MOST:
                raise ExpressionError("too many optional fields hang on one value")
            if token == ".":
                self._take()
                text += "." + self._take()
            elif token == ".?":
                self._take()
                field = f"{text}.{self._take()}"
                text = f"(has({field})?optional.of({field}):optional.none())"
            elif token == "[?":
                self._take()
                key = self.expression(("]",))
                self._take()
                text = f"({key} in {text}?optional.of({text}[{key}]):optional.none())"
            elif token in ("(", "["):
                text = self._bound() if text == "cel.bind" else text + self._bracketed()
            else:
                return text
        return text

    def _operand(self) -> str:
        token = self._peek()
        return self._bracketed() if token in _CLOSING else self._take()

    def _bracketed(self) -> str:
        opening = self._take()
        inner = self.expression((_CLOSING[opening],))
        return opening + inner + (self._take() if self._peek() else "")

    def _bound(self) -> str:
        self._take()
        name = self.expression((",",))
        self._take()
        value = self.expression((",",))
        self._take()
        body = self.expression((")",))
        self._take()
        return f"[{value}].map({name},{body})[0]"

    def _peek(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise ExpressionError("the expression ends too soon")
        token = self._tokens[self._at][0]
        self._at += 1
        return token
