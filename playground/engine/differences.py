"""Where the engine is known to differ from kube-scheduler: the list in its README, for pages and answers."""

import re
from pathlib import Path

import scheduler_core

_HEADING = re.compile(r"^#+\s+(.*)$")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def engine_readme() -> str:
    """scheduler_core's README; empty where it is not shipped."""
    path = Path(scheduler_core.__file__).with_name("README.md")
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def known_differences(markdown: str) -> list[str]:
    """Return the points (or rows) under the heading 'Known differences', as plain text.

    >>> known_differences("# X\\n## Known differences\\n- `a` is\\n  late\\n- b\\n## Next\\n- c")
    ['a is late', 'b']
    """
    points: list[str] = []
    inside = False
    fresh = True
    for line in markdown.splitlines():
        heading = _HEADING.match(line)
        if heading:
            inside = heading[1].strip().lower().startswith("known differences")
            continue
        text = line.strip()
        if not inside:
            continue
        if not text:
            fresh = True
        elif text[:2] in ("- ", "* "):
            points.append(text[2:])
            fresh = False
        elif text.startswith("|"):
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            if not all(set(cell) <= set("-: ") for cell in cells):
                points.append(": ".join(cell for cell in cells if cell))
        elif points and not fresh:
            points[-1] += f" {text}"
        else:
            points.append(text)
            fresh = False
    return [_LINK.sub(r"\1", point).replace("`", "").replace("**", "") for point in points]
