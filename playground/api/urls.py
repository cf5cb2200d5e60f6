"""Paths of the REST API: those of `openapi.yaml`, each done by the functions of its operations' ids (README.md).

Every path answers with and without its trailing slash, without a redirect; the one written there is documented.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pkgutil import iter_modules, resolve_name
from typing import Any, Final

from django.urls import URLPattern, path, re_path

from playground.api import views
from playground.api.documentation import INTEGERS, declared
from playground.api.views import objects, openapi, questions
from playground.api.views.base import PREFIX, Nothing, view_of

app_name = "api"

_MODULES: Final = [resolve_name(f"{views.__name__}.{found.name}") for found in iter_modules(views.__path__)]
_FUNCTIONS: Final = {name: does for module in _MODULES for name, does in vars(module).items()}
_FUNCTIONS.update(objects.MORE | questions.MORE)


def both(route: str, view: Callable[..., Any], name: str) -> list[URLPattern]:
    """The route, and its twin with or without the slash."""
    twin = route.removesuffix("/") if route.endswith("/") else f"{route}/"
    return [path(route, view, name=name), path(twin, view)]


def _route(template: str) -> str:
    """A path of the document as a route of Django's."""
    inside = template.removeprefix(PREFIX)
    return re.sub(
        r"{(\w+)}", lambda found: f"<{'int' if found[1] in INTEGERS else 'str'}:{found[1]}>", inside
    )


urlpatterns: list[URLPattern] = [
    *both("openapi.json", openapi.DocumentJSON.as_view(), "openapi-json"),
    *both("openapi.yaml", openapi.DocumentYAML.as_view(), "openapi-yaml"),
    *both("docs/", openapi.docs, "docs"),
]
for template, item in declared()["paths"].items():
    view = view_of(template, _FUNCTIONS).as_view()
    first = next(iter(item.values()))["id"]
    urlpatterns += both(_route(template), view, first) if template != PREFIX else [path("", view, name=first)]
urlpatterns.append(re_path(r"^(?P<rest>.*)$", Nothing.as_view()))
