"""Tables of tests, kept as YAML beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from scheduler_core.schema.tables import table_of


@cache
def _text(path: Path) -> str:
    return path.read_text()


def table(file: str, name: str) -> Any:
    """What `test_it.yaml` beside `test_it.py` has under a name, made anew: rows, a manifest, a text."""
    return table_of(_text(Path(file).with_suffix(".yaml")))[name]
