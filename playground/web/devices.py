"""The answer about a cycle's devices, made ready to be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from playground.clusters import questions
from playground.clusters.history.cycles import get_cycle
from playground.clusters.questions import latest_question
from playground.clusters.row_types import Cluster
from playground.web.looks import View
from playground.web.questions.views import question_context
from playground.web.requests import HtmxHttpRequest

SHOWN = 80
"""Rows of the table that are shown; the others are counted."""
WORDS = {"in use": "allocated", "taken": "takes it"}


def view_devices(answer: Mapping[str, Any], device: str = "", request: str = "") -> View:
    """View of an answer; `device` is ``driver/pool/device``, `request` the request it was tried for.

    Returns
    -------
    dict
        `rows` of devices by request, in the order they were tried (those that were not are counted in `n_not_tried`);
        `counts` of what stood against devices; the `picked` row that was asked about ("why not this device?"), or None.
    """
    node = answer["open"] or {}
    rows = [
        {**row, "id": "/".join((row["driver"], row["pool"], row["device"]))}
        for row in node.get("devices") or ()
    ]
    tried = sorted((row for row in rows if row["outcome"] != "not tried"), key=_in_order)
    asked = [row for row in rows if row["id"] == device and request in ("", row["request"])]
    refused = [row for row in tried if row["outcome"] in ("refused", "put back")]
    # What a selector leaves out is no surprise: the first device that might have served is asked about first.
    wanted = [row for row in refused if not row["check"].endswith("selector")]
    picked = next(iter(asked or wanted or refused), None)
    chosen = [row for row in tried if row["outcome"] == "taken"]
    n_nodes, n_fit = len(answer["nodes"]), answer["nAllocated"]
    able = f"{n_fit:,} of {n_nodes:,} node{'s' if n_nodes != 1 else ''} can serve the claims"
    return {
        "answer": answer,
        "node": node,
        "counts": _counted(node.get("refusals") or {}),
        "sentence": str(answer["refused"] or able),
        "groups": _groups(answer["nodes"]),
        "rows": tried[:SHOWN],
        "n_not_tried": len(rows) - len(tried),
        "n_more": max(len(tried) - SHOWN, 0) + int(node.get("nMore") or 0),
        "chosen": chosen,
        "cards": _cards(rows, {row["id"] for row in chosen}),
        "picked": picked,
    }


def _in_order(row: Mapping[str, Any]) -> tuple[bool, int, str]:
    return (row["place"] < 0, row["place"], row["request"])


def _groups(nodes: Sequence[Mapping[str, Any]]) -> list[View]:
    """Nodes that say the same, for the same causes: feasible ones first, the others by what stood against them."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for item in nodes:
        if item["verdict"] == "allocated":
            key = ("allocated", "", "")
        else:
            what = _counted(item["refusals"]) if item["nDevices"] else "no devices"
            key = (item["verdict"], item["reason"], what)
        found.setdefault(key, []).append(item["node"])
    ordered = sorted(found.items(), key=lambda pair: (pair[0][0] != "allocated", -len(pair[1])))
    return [
        {
            "verdict": verdict,
            "words": words,
            "refusals": refusals,
            "names": names,
        }
        for (verdict, words, refusals), names in ordered
    ]


def _counted(refusals: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {WORDS.get(check, check)}" for check, count in refusals.items())


def _cards(rows: Sequence[Mapping[str, Any]], chosen: set[str]) -> tuple[Mapping[str, Any], ...]:
    """One card a device, first come first: free, held, tainted or chosen; at most 64."""
    cards: dict[str, dict[str, Any]] = {}
    for row in rows:
        card = cards.setdefault(row["id"], {**row, "state": "free"})
        if row["id"] in chosen:
            card["state"] = "chosen"
        elif row["holder"]:
            card["state"] = "held"
        elif row["taints"]:
            card["state"] = "tainted"
        elif card["state"] == "free" and any(
            item["check"] == "counter" and not item["ok"] for item in row["checks"]
        ):
            card["state"] = "counted"
    return tuple(list(cards.values())[:64])


def cycle_devices(request: HtmxHttpRequest, cluster: Cluster, number: int) -> HttpResponse:
    """The claims, requests and devices of a cycle; ``?node=`` opens one node, ``?device=&request=`` one device.

    Looking asks: the answer is about the past and is kept. The fragment alone for htmx.
    """
    row = get_cycle(cluster, number)
    node = request.GET.get("node", "").strip()[:253]
    params = {"cycle": number, "node": node}
    found = latest_question(cluster, "devices", params)
    if found is None:
        found = questions.ask(cluster=cluster, kind="devices", params=params)
    context = question_context(request, cluster, found) | {"row": row, "node": node}
    if found.answer is not None:
        device, wanted = request.GET.get("device", ""), request.GET.get("request", "")
        context["view"] = view_devices(found.answer, device, wanted)
    template = "devices/answer.html" if request.htmx and "part" in request.GET else "devices/page.html"
    return render(request, template, context)
