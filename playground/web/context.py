"""What every page says about the scheduler behind it."""

from typing import Any

from django.http import HttpRequest

from playground.engine import engine_version
from playground.engine.releases import all_patches
from playground.web.manual import help_path


def site(request: HttpRequest) -> dict[str, Any]:
    """Template variables of every page: the releases there are (a cluster's page tells its own), engine, help."""
    match = request.resolver_match
    return {
        "emulates": all_patches(),
        "engine_version": engine_version(),
        "help_path": help_path(match.app_name, match.url_name or "") if match else help_path("", ""),
    }
