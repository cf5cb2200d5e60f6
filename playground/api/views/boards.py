"""A board: nodes with their pods and the queue, now or after a cycle; and the recorded cycles of a share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import representations
from playground.api.requests import next_page, whole_number
from playground.api.views.base import PlaygroundView, accepted
from playground.api.views.scenarios import Reads
from playground.clusters.board.nodes import node_uses
from playground.clusters.board.pods import count_pods, running_by_node
from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import Conflict, NotFound
from playground.clusters.history.queue import queue_view
from playground.engine.columns import FINISHED
from playground.scenarios import selectors, services
from playground.scenarios.briefs import brief_of
from playground.scenarios.services.proof import is_whole
from scheduler_core.objects.fields import format_time_ns

WITH_PODS: Final = 200
"""Nodes up to which each is told with the names of its pods."""


def _of_state(state: Mapping[str, Any], cycle: int) -> dict[str, Any]:
    """A moment (`engine.moments`), or its brief."""
    brief = brief_of(state) if "pods" in state else state
    by_node: dict[str, list[str]] | None = None
    if "pods" in state and len(state["nodes"]) <= WITH_PODS:
        by_node = {}
        for pod in sorted(state["pods"], key=lambda pod: (pod["namespace"], pod["name"])):
            node = pod["node_name"] or pod.get("reserved")
            if node and pod["phase"] not in FINISHED:
                by_node.setdefault(node, []).append(f"{pod['namespace']}/{pod['name']}")
    return {
        "cycle": cycle,
        "at": format_time_ns(state["clock_ns"]),
        "nPods": brief["n_pods"],
        "nodes": [
            {
                "name": node["name"],
                "zone": node["zone"],
                "ready": node["ready"],
                "unschedulable": node["unschedulable"],
                "cpuMilli": node["cpu_milli"],
                "usedCpuMilli": node["used_cpu_milli"],
                **({} if by_node is None else {"pods": by_node.get(node["name"], [])}),
            }
            for node in brief["nodes"]
        ],
        "queue": {
            lane: {"count": head["count"], "pods": [item["pod"] for item in head["items"]]}
            for lane, head in brief["queue"].items()
        },
    }


def _of_now(cluster: Any) -> dict[str, Any]:
    uses = node_uses(cluster)
    by_node = running_by_node(cluster) if len(uses) <= WITH_PODS else {}
    return {
        "cycle": None,
        "at": format_time_ns(virtual_now_ns(cluster)),
        "nPods": count_pods(cluster),
        "nodes": [
            {
                "name": use.name,
                "zone": use.labels.get("topology.kubernetes.io/zone", ""),
                "ready": use.ready,
                "unschedulable": use.unschedulable,
                "cpuMilli": use.cpu_milli,
                "usedCpuMilli": use.used_cpu_milli,
                **({"pods": by_node.get(use.name, [])} if len(uses) <= WITH_PODS else {}),
            }
            for use in uses
        ],
        "queue": {
            lane: {"count": len(items), "pods": [item.pod for item in items[:WITH_PODS]]}
            for lane, items in queue_view(cluster).items()
        },
    }


def _then(where: str, cycle: int, last: int, **of: Any) -> Response:
    """The board after a cycle, or 202 while a worker makes it."""
    if cycle > last:
        raise NotFound(f"cycle {cycle} not found", kind="Cycle", name=str(cycle))
    state, note = selectors.moment(cycle=cycle, **of)
    if state is not None:
        return Response(_of_state(state, cycle))
    if note:
        raise Conflict(note, kind="Cycle", name=str(cycle))
    services.request_moment(cycle=cycle, **of)
    return accepted({"state": "queued"}, where)


class ClusterBoard(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Nodes, what is requested on them, their pods, and the heads of the queue's lanes.

        202: a worker goes back to that cycle; ask again in a moment. 409: it cannot be made again.
        """
        cluster = self.cluster(cluster_id)
        cycle = whole_number(request, "cycle", least=1)
        if cycle is None:
            return Response(_of_now(cluster))
        return _then(request.get_full_path(), cycle, cluster.next_cycle - 1, cluster=cluster)


class ScenarioBoard(Reads):
    def get(self, request: Request, scenario_id: str) -> Response:
        """As of a cluster; without `cycle` after the last one."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        cycle = whole_number(request, "cycle", default=max(1, scenario.n_cycles), least=1) or 1
        return _then(request.get_full_path(), cycle, scenario.n_cycles, scenario=scenario)


class ScenarioCycles(Reads):
    def get(self, request: Request, scenario_id: str) -> Response:
        """Oldest first, one line each."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        limit = whole_number(request, "limit", default=50, least=1, most=500) or 50
        after = whole_number(request, "after", default=0) or 0
        rows = list(scenario.cycles.filter(number__gt=after).defer("trace").order_by("number")[: limit + 1])
        items = [representations.recorded_cycle(row, scenario) for row in rows[:limit]]
        more = items[-1]["cycle"] if len(rows) > limit else None
        return Response({"items": items, "next": next_page(request, after=more)})


class ScenarioCycle(Reads):
    def get(self, request: Request, scenario_id: str, number: int) -> Response:
        """What was recorded of it; `full: false` where only the summary is kept (POST `whole`). 409: this engine cannot
        read the record.
        """
        _, document = selectors.recorded_cycle(selectors.get_scenario(scenario_id, request.user), number)
        if document is None:
            raise Conflict("the record cannot be read by this engine", kind="Cycle", name=str(number))
        return Response(document)


class WholeCycle(Reads):
    def post(self, request: Request, scenario_id: str, number: int) -> Response:
        """A worker keeps every verdict and score of it, if it is the decision that was recorded; read it then."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        row, document = selectors.recorded_cycle(scenario, number)
        state = "done" if is_whole(document) else "queued"
        if state == "queued":
            services.request_whole_cycle(scenario=scenario, number=row.number)
        where = f"/api/v1/scenarios/{scenario.public_id}/cycles/{number}/"
        return accepted({"state": state}, where)
