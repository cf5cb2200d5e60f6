"""JSON paths as printer columns have them: names, places, ``[*]`` and ``[?(@.a=="b")]``.

Source: staging/src/k8s.io/client-go/util/jsonpath, v1.34
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Step = str | int | tuple[str, str]
"""A name, a place in a list, ``*`` as the name of all, or a field and the value it must have."""
Path = tuple[Step, ...]

_STEP: Final = re.compile(
    r"""\.?\[\?\(\s*@\.(?P<field>[\w.\-]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]"""
    r"""|\.?\[["'](?P<quoted>[^"']+)["']\]"""
    r"""|\.?\[(?P<place>-?\d+|\*)\]"""
    r"""|\.(?P<name>(?:\\.|[^.\[\\])+)"""
)


def path_of(text: str) -> Path:
    """The steps of a path; none of a text that is no path."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return ()
        position = match.end()
        if match["field"]:
            steps.append((match["field"], match["value"]))
        elif match["place"] is not None:
            steps.append("*" if match["place"] == "*" else int(match["place"]))
        else:
            steps.append(re.sub(r"\\(.)", r"\1", match["quoted"] or match["name"]))
    return tuple(steps)


def values(document: Any, path: Path) -> list[Any]:
    """What stands at a path; nothing where it leads nowhere."""
    found = [document] if path else []
    for step in path:
        found = [value for item in found for value in _after(item, step)]
    return [value for value in found if value is not None]


def _after(item: Any, step: Step) -> list[Any]:
    if isinstance(step, tuple):
        name, wanted = step
        return [each for each in _all(item) if str(_inner(each, name)) == wanted]
    if isinstance(step, int):
        return [item[step]] if isinstance(item, list) and -len(item) <= step < len(item) else []
    if step == "*":
        return _all(item)
    return [item[step]] if isinstance(item, Mapping) and step in item else []


def _all(item: Any) -> list[Any]:
    if isinstance(item, list):
        return item
    return list(item.values()) if isinstance(item, Mapping) else []


def _inner(item: Any, name: str) -> Any:
    for part in name.split("."):
        item = item.get(part) if isinstance(item, Mapping) else None
    return item
