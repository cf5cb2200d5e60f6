"""What stands in the columns kubectl prints. Ages are by the cluster's own clock.

Source: pkg/printers/internalversion/printers.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from playground.engine.times import parse_time_ns

Manifest = Mapping[str, Any]
Cell = Callable[[Manifest, int], Any]
"""A cell's value from the object and the cluster's time in nanoseconds."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 are shown by `-o wide` only."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0

    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": "name" if self.name == "Name" else "",
            "description": "",
            "priority": self.priority,
        }


def human_duration(seconds: int) -> str:
    """As kubectl writes ages: about two significant parts.

    Source: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go HumanDuration, v1.34

    >>> [human_duration(s) for s in (5, 119, 121, 599, 3 * 3600 + 1, 50 * 3600, 9 * 86400, 800 * 86400)]
    ['5s', '119s', '2m1s', '9m59s', '3h', '2d2h', '9d', '2y70d']
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, below: str) -> str:
    return f"{large}{unit}{small}{below}" if small else f"{large}{unit}"


def at(*path: str, default: Any = None) -> Cell:
    """The value at a path."""

    def cell(manifest: Manifest, now_ns: int) -> Any:
        value = get(manifest, *path)
        return default if value is None or value == "" else value

    return cell


def get(manifest: Any, *path: str) -> Any:
    for step in path:
        manifest = manifest.get(step) if isinstance(manifest, Mapping) else None
    return manifest


def since(text: Any, now_ns: int) -> str:
    if not isinstance(text, str):
        return UNKNOWN
    try:
        return human_duration((now_ns - parse_time_ns(text)) // 1_000_000_000)
    except ValueError:
        return UNKNOWN


def age(manifest: Manifest, now_ns: int) -> str:
    return since(get(manifest, "metadata", "creationTimestamp"), now_ns)


def count(*path: str) -> Cell:
    return lambda manifest, now_ns: len(get(manifest, *path) or ())


def joined(*path: str, default: str = NONE) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        return ",".join(str(item) for item in get(manifest, *path) or ()) or default

    return cell


def selector_words(selector: Any) -> str:
    """A label selector in kubectl's words."""
    if not isinstance(selector, Mapping):
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key"), expression.get("operator")
        values = ",".join(sorted(str(value) for value in expression.get("values") or ()))
        parts.append(
            {"Exists": f"{key}", "DoesNotExist": f"!{key}"}.get(
                str(operator), f"{key} {str(operator).lower()} ({values})"
            )
        )
    return ",".join(parts) or NONE


def of_template(part: str) -> Cell:
    """Names or images of the containers of a pod template."""

    def cell(manifest: Manifest, now_ns: int) -> str:
        containers = get(manifest, "spec", "template", "spec", "containers") or ()
        return ",".join(str(container.get(part) or "") for container in containers)

    return cell


def spec_selector(manifest: Manifest, now_ns: int) -> str:
    return selector_words(get(manifest, "spec", "selector"))


NAME: Final = Column("Name", at("metadata", "name", default=""))
AGE: Final = Column("Age", age)
