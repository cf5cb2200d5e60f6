"""Query parameters as values."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework.request import Request

from playground.clusters.errors import InvalidInput

LARGEST = 2**63 - 1


def whole_number(
    request: Request, name: str, *, default: int | None = None, least: int = 0, most: int = LARGEST
) -> int | None:
    """A whole number, or the default if the parameter is absent or empty.

    Raises
    ------
    InvalidInput
    """
    text = request.GET.get(name, "")
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    if not least <= number <= most:
        raise InvalidInput(f"{name} is a whole number from {least} to {most}", field=name, value=text)
    return number


def flag(request: Request, name: str) -> bool:
    """`1`, `true`, `yes`, or the bare name.

    Raises
    ------
    InvalidInput
    """
    text = request.GET.get(name)
    if text is None or text.lower() in ("0", "false", "no"):
        return False
    if text.lower() in ("", "1", "true", "yes"):
        return True
    raise InvalidInput(f"{name} is true or false", field=name, value=text)


def one_of(request: Request, name: str, allowed: Sequence[str], *, default: str) -> str:
    """One of some words, or the default if the parameter is absent or empty.

    Raises
    ------
    InvalidInput
    """
    text = request.GET.get(name) or default
    if text not in allowed:
        raise InvalidInput(f"{name} is one of {', '.join(allowed)}", field=name, value=text)
    return text
