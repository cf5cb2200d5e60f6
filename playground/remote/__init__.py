"""Programs that drive an instance from outside, over its REST API. README.md says which."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PROGRAM: Final = "kube-scheduler-playground"


@contextmanager
def of_an_extra(name: str) -> Iterator[None]:
    """Name the extra whose packages are missing. Nothing of the site is loaded for what talks to others."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "playground":
            raise
        sys.exit(f"the package {error.name} is missing; install it with: pip install '{PROGRAM}[{name}]'")
