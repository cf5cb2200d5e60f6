"""Cycles: the list and the page of one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters.board.nodes import asks_for_devices, pools_of
from playground.clusters.board.pods import pod_of_cycle
from playground.clusters.choices import CycleOutcome
from playground.clusters.drive.extender_calls import calls_of_cycle
from playground.clusters.foreign.agreement import n_foreign_decisions
from playground.clusters.history.cycles import (
    CycleSearch,
    aftermath,
    cycle_explanation,
    cycle_page,
    neighbours,
    plugins_that_ended,
)
from playground.clusters.history.redecide import request_trace
from playground.clusters.row_types import Cluster, Cycle
from playground.web.cycles.preemption import next_steps
from playground.web.cycles.present import EACH_NODE_LIMIT, view_cycle, with_wire_calls
from playground.web.listing import Listing, sorted_columns
from playground.web.looks import priority_scale
from playground.web.requests import HtmxHttpRequest, positive_int

CYCLE_COLUMNS = (
    ("number", "Cycle", True),
    ("", "Time", False),
    ("pod", "Pod", False),
    ("outcome", "Outcome", False),
    ("node", "Node", False),
    ("feasible", "Feasible", True),
    ("victims", "Victims", True),
    ("", "In words", False),
)


def cycle_list(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """Cycles, found and sorted as the address says; the table alone for htmx."""
    asked = {name: request.GET.get(name, "").strip() for name in CycleSearch.__dataclass_fields__}
    search = CycleSearch(**asked)
    context = {
        "found": cycle_page(cluster, search, page=positive_int(request.GET.get("page")) or 1),
        "search": search,
        "filtered": any(value for name, value in asked.items() if name != "sort"),
        "n_foreign": n_foreign_decisions(cluster),
        "address": Listing(asked),
        "columns": sorted_columns(CYCLE_COLUMNS, search.sort or "-number"),
    }
    if request.htmx and request.htmx.target == "rows" and not request.htmx.history_restore_request:
        return render(request, "cycles/found.html", context)
    context |= {"outcomes": CycleOutcome.values, "plugins": plugins_that_ended(cluster)}
    return render(request, "cycles/find.html", context)


def cycle(request: HttpRequest, cluster: Cluster, number: int) -> HttpResponse:
    """One cycle opened up, from its explanation alone."""
    row, document = cycle_explanation(cluster, number, full=True)
    view = view_cycle(
        document or _summary(row),
        part=request.GET.get("part"),
        page=positive_int(request.GET.get("page")) or 1,
        pools=pools_of(cluster) if row.n_nodes > EACH_NODE_LIMIT else None,
    )
    if view["extenders"] or (cluster.config or {}).get("extenders"):
        view["extenders"] = with_wire_calls(view["extenders"], calls_of_cycle(cluster, number))
    before, after = neighbours(cluster, number)
    pod = pod_of_cycle(row)
    context: dict[str, Any] = {
        "row": row,
        "view": view,
        "recorded_only": document is None,
        # A body that was not kept is recreated when it is looked at.
        "waiting": document is None and request_trace(cluster=cluster, number=number),
        "previous": before,
        "next": after,
        "n_cycles": cluster.next_cycle - 1,
        "pod": pod,
        "asks_for_devices": asks_for_devices(pod),
        "mark": priority_scale(cluster).mark(pod.priority, pod.priority_class) if pod else None,
    }
    preemption = view["preemption"]
    if preemption and preemption["nominated"]:
        came_after = aftermath(row, [f"{v['namespace']}/{v['name']}" for v in preemption["victims"]])
        context["next_steps"] = next_steps(row, preemption["nominated"], came_after)
    if view["is_sampled"]:
        context["sampling"] = f"this cycle evaluated {view['n_evaluated']:,} of {view['n_nodes']:,} nodes"
    return render(request, "cycles/page.html", context)


def _summary(row: Cycle) -> dict[str, Any]:
    """What a page shows of the summary row, under the keys of an explanation."""
    return {
        "pod": row.pod,
        "outcome": row.outcome,
        "sentence": row.sentence,
        "headline": row.headline,
        "node": row.node,
        "nNodes": row.n_nodes,
        "nodesEvaluated": row.n_evaluated or row.n_nodes,
        "failedPlugin": row.failed_plugin,
        "message": row.message,
    }
