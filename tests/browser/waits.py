"""Waiting for what a page makes happen on the server."""

from collections.abc import Callable
from typing import Any

PATIENCE_S = 60
"""As long as pages have to show what is expected (`conftest`): a busy machine is slow, a broken page stays broken."""


def wait_until(page: Any, holds: Callable[[], bool]) -> None:
    """Look again until something holds; the browser goes on meanwhile."""
    for _ in range(PATIENCE_S * 20):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within {PATIENCE_S} s")
