"""Field selectors: `metadata.name=web-1,status.phase!=Running`.

Source: staging/src/k8s.io/apimachinery/pkg/fields/selector.go, v1.34.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler_core.objects.field_errors import SelectorError

_OPERATOR: Final = re.compile("!=|==|=")
_TERM_END: Final = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """`field` equals `value`, or does not (`negated`). A field that is absent reads as empty."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{value}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements hold; without any, everything matches."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(requirement.matches(fields) for requirement in self.requirements)

    def required_value(self, field: str) -> str | None:
        """The value the field must have, None if more than one will do (`RequiresExactMatch`)."""
        for requirement in self.requirements:
            if requirement.field == field and not requirement.negated:
                return requirement.value
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector_text(text: str) -> FieldSelector:
    r"""Parse a field selector (`fields.ParseSelector`).

    Parameters
    ----------
    text : str
        Terms `field=value`, `field==value` or `field!=value`, separated by commas; `\\`, `\,` and `\=` in a
        value stand for the sign itself. Empty terms do not count.

    Raises
    ------
    SelectorError
        With upstream's message.

    Examples
    --------
    >>> parse_field_selector_text("status.phase!=Running,metadata.name==web-1").matches(
    ...     {"metadata.name": "web-1", "status.phase": "Pending"})
    True
    """
    requirements = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value = term[: operator.start()], _unescaped(term[operator.end() :])
        if field or value:
            requirements.append(FieldRequirement(field, value, operator.group() == "!="))
    return FieldSelector(tuple(requirements))


def _terms(text: str) -> list[str]:
    """The text split at its commas, those behind a backslash excepted."""
    terms = []
    start = 0
    while start <= len(text):
        matched = _TERM_END.match(text, start)
        end = matched.end() if matched else len(text)
        terms.append(text[start:end])
        start = end + 1
    return terms


def _unescaped(value: str) -> str:
    characters = []
    escaping = False
    for character in value:
        if escaping:
            if character not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
            characters.append(character)
            escaping = False
        elif character == "\\":
            escaping = True
        elif character in ",=":
            # Upstream prints the number of the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    if escaping:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(characters)
