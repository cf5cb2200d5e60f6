"""What every page says about the scheduler behind it."""

from typing import Any

from django.http import HttpRequest

from playground.engine import engine_version
from playground.engine.releases import all_patches


def site(request: HttpRequest) -> dict[str, Any]:
    """Template variables of every page: the releases there are (a cluster's page tells its own), and the engine."""
    del request
    return {"emulates": all_patches(), "engine_version": engine_version()}
