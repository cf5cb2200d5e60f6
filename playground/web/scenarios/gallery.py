"""The lessons as cards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from playground.clusters import wake
from playground.clusters.memo import Memo
from playground.engine.scenarios import gallery_documents, load
from playground.scenarios import selectors
from playground.scenarios.selectors import ProvedScenario
from playground.scenarios.services.gallery import (
    LOOKALIKE,
    gallery_scenario,
    open_gallery_scenario,
    share_lookalike,
)
from playground.web.looks import View
from playground.web.requests import site_user
from playground.web.scenarios.past_board import view_past
from scheduler_core.scenario.types import Scenario
from scheduler_core.schema.tables import table_beside

GROUPS: Final[Mapping[str, tuple[str, str]]] = table_beside(__package__, "tables.yaml")["groups"]
"""`group` of a scenario -> title and words, in page order."""
DIFFERS = "differs"
MOST_ROWS: Final = 6
_PICTURES: Final[Memo[list[View]]] = Memo(128)


@lru_cache(maxsize=128)
def _facts(document: bytes) -> Scenario:
    return load(document)


def _card(name: str, document: bytes, share: ProvedScenario | None) -> View:
    """One scenario; its summary is the first sentence of its lesson."""
    facts = _facts(document)
    return {
        "name": name,
        "facts": facts,
        "share": share,
        "picture": _PICTURES.get(share.public_id, lambda: picture(share)) if share else [],
        "n_nodes": sum(item.get("kind") == "Node" for item in facts.objects),
        "n_pods": sum(item.get("kind") == "Pod" for item in facts.objects),
        "first_stop": facts.path[0].cycle if facts.path else 1,
        "summary": facts.lesson.strip().split(". ")[0].rstrip(".") + "." if facts.lesson else "",
    }


def picture(share: ProvedScenario) -> list[View]:
    """The first nodes as the run of a share left them, each a row from `y` on with a `height`."""
    state, _ = selectors.moment(cycle=share.n_cycles, scenario=share)
    look = view_past(state)["look"] if state else None
    cells = [cell for pool in look["pools"] for cell in pool["cells"]] if look else []
    nodes = [node for cell in cells for node in cell["nodes"]][:MOST_ROWS]
    step = 60 / max(3, len(nodes))
    return [{"n": node, "y": int(8 + row * step), "height": int(step - 4)} for row, node in enumerate(nodes)]


def gallery(request: HttpRequest) -> HttpResponse:
    """Every lesson with its proof."""
    documents = gallery_documents()
    rows = selectors.gallery_rows()
    if any(name not in rows for name in documents) and cache.add("scenarios:gallery-asked", 1, 60):
        wake.send("gallery")
    q = request.GET.get("q", "").strip().lower()
    cards = []
    for name, document in documents.items():
        facts = _facts(document)
        if q and q not in f"{name} {facts.title} {facts.lesson}".lower():
            continue
        cards.append(_card(name, document, rows.get(name)))
    shares = [card["share"] for card in cards if card["share"] is not None]
    proved = [share for share in shares if share.proof_recorded is not None]
    context = {
        "groups": _grouped(cards),
        "n_cards": len(cards),
        "n_proved": sum(share.proof_differs_at is None for share in proved),
        "n_decisions": sum(share.proof_same or 0 for share in proved),
        "all_proved": len(proved) == len(cards) and all(share.proof_differs_at is None for share in proved),
        "q": request.GET.get("q", ""),
        "large": rows.get(LOOKALIKE),
        "shows_large": not q or q in "at scale large openb trace production gpu",
    }
    return render(request, "scenarios/gallery.html", context)


def _grouped(cards: list[View]) -> list[View]:
    """Cards that belong together."""
    by_group: dict[str, list[View]] = {key: [] for key in GROUPS}
    for card in cards:
        by_group[card["facts"].group].append(card)
    return [
        {"key": key, "title": GROUPS[key][0], "words": GROUPS[key][1], "cards": found}
        for key, found in by_group.items()
        if found
    ]


def differs(request: HttpRequest) -> HttpResponse:
    """List what is often written of the scheduler and is no longer so, each with a scenario that shows it."""
    rows = selectors.gallery_rows()
    documents = gallery_documents().items()
    cards = [
        _card(name, document, rows.get(name))
        for name, document in documents
        if _facts(document).group == DIFFERS
    ]
    return render(request, "scenarios/differs.html", {"cards": cards})


def show(request: HttpRequest, name: str) -> HttpResponse:
    """Lead to the share of a lesson."""
    del request
    return redirect("scenarios:page", gallery_scenario(name).public_id)


def open_one(request: HttpRequest, name: str) -> HttpResponse:
    """Open a lesson in a new cluster."""
    cluster = open_gallery_scenario(name=name, owner=site_user(request))
    return redirect("web:board", cluster.public_id)


def make_large(request: HttpRequest) -> HttpResponse:
    """Make and share the production-sized scenario."""
    return redirect("scenarios:page", share_lookalike().public_id)
