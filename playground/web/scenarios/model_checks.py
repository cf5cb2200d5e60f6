"""The formal model of scheduling, checked on every cycle of a cluster or a share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.http import HttpRequest

from playground.engine.model import MODEL_DEPARTURES
from playground.scenarios import services
from playground.scenarios.services.model_checks import model_result
from playground.web.requests import positive_int
from playground.web.scenarios.asked_for import Work

if TYPE_CHECKING:
    from playground.scenarios.row_types import ModelCheck

A_PAGE: Final = 50
PROPERTIES: Final = (
    (
        "order",
        "Order",
        "The pod taken is the first of those that wait: the highest priority, then who waits longest.",
    ),
    ("placement", "Placement", "Its node is feasible, and viable: no feasible node scores higher."),
    (
        "casualty",
        "Minimal casualty",
        "Where no node is feasible, no other set of lower pods, on any node, would make room at a smaller loss.",
    ),
)
STATUSES: Final = (
    ("fails", "violated", "bad", "no"),
    ("leaves", "left on purpose", "warn", "info"),
    ("notComputed", "not computed", "", "dash"),
    ("holds", "holds", "ok", "ok"),
)
"""Status, words, how it is coloured and drawn; the most telling first."""


def _of_newest(request: HttpRequest, check: ModelCheck | None, of: Mapping[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = {"properties": PROPERTIES, "departures": MODEL_DEPARTURES.items()}
    found = None if check is None else model_result(check)
    return context if found is None else context | _shown(request, found)


def _shown(request: HttpRequest, found: Mapping[str, Any]) -> dict[str, Any]:
    show = request.GET.get("show", "")
    known = {status for status, *_ in STATUSES}
    cycles = [_row(cycle) for cycle in found["cycles"]]
    n_by_status = {status: sum(status in row["statuses"] for row in cycles) for status in known}
    if show in known:
        cycles = [row for row in cycles if show in row["statuses"]]
    page = Paginator(cycles, A_PAGE).get_page(positive_int(request.GET.get("page")) or 1)
    counts = [
        {
            "key": key,
            "name": name,
            "meaning": meaning,
            "statuses": [
                {"words": words, "css": css, "icon": icon, "count": found["counts"][key][status]}
                for status, words, css, icon in STATUSES
                if found["counts"][key][status]
            ],
        }
        for key, name, meaning in PROPERTIES
    ]
    return {
        "found": found,
        "counts": counts,
        "page": page,
        "show": show if show in known else "",
        "filters": [
            {"status": status, "words": words, "count": n_by_status[status]}
            for status, words, *_ in STATUSES
            if n_by_status[status]
        ],
        "n_told": len(found["cycles"]),
    }


def _row(cycle: Mapping[str, Any]) -> dict[str, Any]:
    """A cycle with a cell a property; its sentence is that of the most telling verdict."""
    verdicts: Sequence[Mapping[str, Any]] = cycle["verdicts"]
    look = {status: (words, css, icon) for status, words, css, icon in STATUSES}
    by_property = {verdict["property"]: verdict for verdict in verdicts}
    cells = []
    for key, name, _ in PROPERTIES:
        verdict = by_property.get(key)
        words, css, icon = look[verdict["status"]] if verdict else ("", "", "")
        cells.append({"name": name, "words": words, "css": css, "icon": icon, "verdict": verdict})
    rank = [status for status, *_ in STATUSES]
    telling = sorted(verdicts, key=lambda verdict: rank.index(verdict["status"]))
    other = [verdict["sentence"] for verdict in telling if verdict["status"] != "holds"]
    return {
        **cycle,
        "cells": cells,
        "counterexamples": [
            json.dumps(verdict["counterexample"], indent=1, ensure_ascii=False)
            for verdict in verdicts
            if verdict["status"] == "fails" and verdict.get("counterexample")
        ],
        "sentences": other or [verdict["sentence"] for verdict in verdicts[-1:]],
        "statuses": {verdict["status"] for verdict in verdicts},
    }


WORK: Final = Work(
    name="model",
    row="check",
    refused="checking the model wants a login",
    place={"tab": "cycles"},
    ask=lambda request, **of: services.request_model_check(**of),
    shown=_of_newest,
)
of_cluster = WORK.of_cluster()
of_scenario = WORK.of_scenario()
