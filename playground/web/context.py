"""What every page says about the scheduler behind it."""

from typing import Any

from django.http import HttpRequest

from playground.engine import EMULATES, engine_version


def site(request: HttpRequest) -> dict[str, Any]:
    """Template variables of every page: the emulated version and the engine's own."""
    del request
    return {"emulates": EMULATES, "engine_version": engine_version()}
