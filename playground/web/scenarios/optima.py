"""How far one pod at a time is from the best joint placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest

from playground.clusters.choices import WorkState
from playground.scenarios import services
from playground.web.requests import positive_int
from playground.web.scenarios.asked_for import Work
from playground.web.scenarios.sharing import wants_login

if TYPE_CHECKING:
    from playground.scenarios.row_types import Optimum

SHOWN: Final = 100


def _ask(request: HttpRequest, **of: Any) -> Optimum:
    return services.request_optimum(
        **of,
        cycle=positive_int(request.POST.get("cycle")),
        time_limit_s=positive_int(request.POST.get("limit")) or 30,
    )


def _shown(request: HttpRequest, optimum: Optimum | None, of: Mapping[str, Any]) -> dict[str, Any]:
    if optimum is None or optimum.state != WorkState.DONE:
        return {}
    moved = [item for item in optimum.result["pods"] if item["now"] != item["best"]]
    return {"gap": f"{100 * optimum.result.get('gap', 0):.2g}", "pods": moved[:SHOWN]}


WORK: Final = Work(
    name="optimum",
    row="optimum",
    refused="looking for the best placement wants a login",
    place={"tab": "share"},
    ask=_ask,
    shown=_shown,
)
of_cluster = WORK.of_cluster()
of_scenario = wants_login(WORK.of_scenario())
