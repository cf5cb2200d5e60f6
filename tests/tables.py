"""Tables of tests, kept as YAML beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _text(path: Path) -> str:
    return path.read_text()


def table(file: str, name: str) -> Any:
    """What `test_it.yaml` beside `test_it.py` has under a name, made anew: rows, a manifest, a text."""
    return yaml.load(_text(Path(file).with_suffix(".yaml")), Loader)[name]
