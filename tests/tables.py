"""Tables of tests, kept as YAML beside them."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

from scheduler_core.schema.tables import table_of


@cache
def _tables(path: Path) -> dict[str, bytes]:
    return {name: pickle.dumps(rows) for name, rows in table_of(path.read_text()).items()}


def table(file: str, name: str) -> Any:
    """What `test_it.yaml` beside `test_it.py` has under a name, made anew: rows, a manifest, a text."""
    return pickle.loads(_tables(Path(file).with_suffix(".yaml"))[name])
