"""Running the scheduler and what came of it: runs, cycles, the queue, a pod's story, Permit, the board."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from django.http import HttpResponse

from playground.api import representations
from playground.api.representations import shown
from playground.api.views.base import Call, accepted
from playground.clusters.board.nodes import node_uses
from playground.clusters.board.pods import count_pods, running_by_node
from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive.extender_calls import calls_of_cycle
from playground.clusters.drive.runs import cancel_run, decide_permit, request_run
from playground.clusters.errors import Conflict, NotFound
from playground.clusters.foreign.following import live_gauges
from playground.clusters.history.controllers import controller_run, controller_runs, controllers_now
from playground.clusters.history.cycles import CycleSearch, cycle_explanation, cycles
from playground.clusters.history.queue import queue_view
from playground.clusters.history.redecide import request_trace
from playground.clusters.history.story import cluster_timeline, pod_story
from playground.clusters.metrics import metrics_text
from playground.clusters.objects.queries import get_run, list_runs
from playground.clusters.row_types import Cluster, Run
from playground.engine.columns import FINISHED
from playground.scenarios import selectors
from playground.scenarios.row_types import Scenario
from playground.scenarios.services import moments, proof
from playground.scenarios.services.proof import is_whole
from playground.scenarios.services.recording import brief_of
from scheduler_core.objects.fields import format_time_ns


def cycles_list(call: Call, cluster: Cluster) -> Any:
    """Newest first, one line each."""
    pod, limit = call.query("pod"), call.query("limit", 50)
    search = CycleSearch(f"default/{pod}" if pod and "/" not in pod else pod, call.query("outcome"))
    found = cycles(cluster, search, before=call.query("before"), after=call.query("after"), limit=limit + 1)
    return call.page(found, limit, lambda row: representations.cycle(row, cluster.public_id), before="cycle")


def cycles_read(call: Call, cluster: Cluster, number: int) -> Any:
    """Everything that was recorded: why each node was refused, what each plugin scored, what came of it.

    An extender's call has `durationMs`, which the cluster's own time went on by, and `tookMs` by the wall clock;
    a bind call is made after the decision and is shown once it was made.

    202 means that only the summary is kept: a worker decides the cycle again, ask once more in a moment.
    """
    row, document = cycle_explanation(cluster, number, full=call.query("full"))
    facts = {"repeats": row.repeats} | ({"traceNote": row.trace_note} if row.trace_note else {})
    if document is not None:
        told = document.get("extenders") or []
        calls = representations.extender_calls(told, calls_of_cycle(cluster, number))
        return document | {"extenders": calls} | facts
    summary = representations.cycle(row, cluster.public_id)
    if request_trace(cluster=cluster, number=number):
        return accepted(summary, call.request.get_full_path())
    return summary | facts


def queue_read(call: Call, cluster: Cluster) -> Any:
    """Every lane, each in its own order, as of the engine's last commit."""
    lanes = queue_view(cluster)
    return {lane: [shown("QueueItem", item) for item in items] for lane, items in lanes.items()}


def controllers_read(call: Call, cluster: Cluster) -> Any:
    """Which programs run beside the scheduler, whether they are at rest, and a sentence for each node by each of them.

    They are turned on, changed and turned off by annotations of the namespace kube-system (PATCH of that object).
    """
    now = controllers_now(cluster)
    nodes = [shown("NodeSentence", one) for one in now.outlook.nodes]
    pods = [shown("PodSentence", one) for one in now.outlook.pods]
    return shown("Controllers", now, programs=dict(now.settings), nodes=nodes, pods=pods)


def controllers_runs(call: Call, cluster: Cluster) -> Any:
    """Newest first. A run that did nothing for the same reasons as the one before is no record."""
    limit = call.query("limit", 50)
    asked = {"controller": call.query("controller", ""), "about": call.query("about", "")}
    found = controller_runs(cluster, before=call.query("before"), limit=limit + 1, **asked)
    return call.page(found, limit, lambda row: representations.controller_run(row, cluster), before="id")


def controllers_run(call: Call, cluster: Cluster, number: int) -> Any:
    """What it did, in order, and why it left the rest."""
    return representations.controller_run(controller_run(cluster, number), cluster)


def timeline_read(call: Call, cluster: Cluster) -> Any:
    """The lanes of the timeline's page: every stay of a pod in a state, in virtual time, and its cycles."""
    found, q = cluster_timeline(cluster), call.query("q", "")
    lanes = [lane for lane in found.pods if lane.is_named(q)]
    return shown("Timeline", found, pods=[shown("TimelinePod", lane) for lane in lanes])


def clusters_metrics(call: Call, cluster: Cluster) -> Any:
    """In the Prometheus text format, under upstream's names; what /metrics sums over all clusters."""
    text = metrics_text(cluster)
    if cluster.is_followed:
        text += "\n".join([*live_gauges(cluster), ""])
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


def pods_story(call: Call, cluster: Cluster, namespace: str, pod: str) -> Any:
    """Everything that happened to one pod, oldest first, and where it waits now; also of a pod that is gone."""
    return representations.story(pod_story(cluster, namespace, pod))


def permits_decide(call: Call, cluster: Cluster, namespace: str, pod: str) -> Any:
    """The answer is an input of the log; the engine acts on it when it next looks."""
    entry = decide_permit(cluster=cluster, namespace=namespace, name=pod, **call.body)
    where = f"/api/v1/clusters/{cluster.public_id}/pods/{namespace}/{pod}/story"
    return accepted({"resourceVersion": str(entry.seq)}, where)


def runs_start(call: Call, cluster: Cluster) -> Any:
    """Ask for one cycle, cycles until idle, or a duration of virtual time; a worker runs them.

    Poll the run at its `url` (`Location`) until its `state` is done, cancelled or failed.
    """
    run = request_run(cluster=cluster, until=call.body["until"], max_cycles=call.body["maxCycles"])
    return representations.run(run, cluster.public_id)


def runs_list(call: Call, cluster: Cluster) -> Any:
    """Newest first."""
    limit, before = call.query("limit", 20), call.query("before")
    last = get_run(cluster, before) if before else None
    found = list_runs(cluster, before=last, limit=limit + 1)
    return call.page(found, limit, lambda run: representations.run(run, cluster.public_id), before="id")


def runs_read(call: Call, cluster: Cluster, run: Run) -> Any:
    """State, cycles done, progress; when it is done, why it stopped."""
    return representations.run(run, cluster.public_id)


def runs_cancel(call: Call, cluster: Cluster, run: Run) -> Any:
    """It stops after its present batch; what it has done stays done. Cancelling twice is cancelling once."""
    return representations.run(cancel_run(run=run), cluster.public_id)


# ---- the board: nodes with their pods and the queue, now or after a cycle

WITH_PODS: Final = 200
"""Nodes up to which each is told with the names of its pods."""


def _of_state(state: Mapping[str, Any], cycle: int) -> dict[str, Any]:
    """A moment (`engine.moments`), or its brief."""
    brief = brief_of(state) if "pods" in state else state
    pods_of: dict[str, list[str]] | None = None
    if "pods" in state and len(state["nodes"]) <= WITH_PODS:
        pods_of = {}
        for pod in sorted(state["pods"], key=lambda pod: (pod["namespace"], pod["name"])):
            node = pod["node_name"] or pod.get("reserved")
            if node and pod["phase"] not in FINISHED:
                pods_of.setdefault(node, []).append(f"{pod['namespace']}/{pod['name']}")
    return {
        "cycle": cycle,
        "at": format_time_ns(state["clock_ns"]),
        "nPods": brief["n_pods"],
        "nodes": [_node(SimpleNamespace(**node), node["zone"], pods_of) for node in brief["nodes"]],
        "queue": {
            lane: {"count": head["count"], "pods": [item["pod"] for item in head["items"]]}
            for lane, head in brief["queue"].items()
        },
    }


def _node(row: Any, zone: str, pods_of: Mapping[str, list[str]] | None) -> dict[str, Any]:
    pods = {} if pods_of is None else {"pods": pods_of.get(row.name, [])}
    return shown("BoardNode", row, zone=zone, **pods)


def _of_now(cluster: Any) -> dict[str, Any]:
    uses = node_uses(cluster)
    pods_of = running_by_node(cluster) if len(uses) <= WITH_PODS else None
    return {
        "cycle": None,
        "at": format_time_ns(virtual_now_ns(cluster)),
        "nPods": count_pods(cluster),
        "nodes": [_node(use, use.labels.get("topology.kubernetes.io/zone", ""), pods_of) for use in uses],
        "queue": {
            lane: {"count": len(items), "pods": [item.pod for item in items[:WITH_PODS]]}
            for lane, items in queue_view(cluster).items()
        },
    }


def _then(call: Call, cycle: int, last: int, **of: Any) -> Any:
    """The board after a cycle, or 202 while a worker makes it."""
    if cycle > last:
        raise NotFound(f"cycle {cycle} not found", kind="Cycle", name=str(cycle))
    state, note = selectors.moment(cycle=cycle, **of)
    if state is not None:
        return _of_state(state, cycle)
    if note:
        raise Conflict(note, kind="Cycle", name=str(cycle))
    moments.request_moment(cycle=cycle, **of)
    return accepted({"state": "queued"}, call.request.get_full_path())


def clusters_board(call: Call, cluster: Cluster) -> Any:
    """Nodes, what is requested on them, their pods, and the heads of the queue's lanes.

    202: a worker goes back to that cycle; ask again in a moment. 409: it cannot be made again.
    """
    cycle = call.query("cycle")
    if cycle is None:
        return _of_now(cluster)
    return _then(call, cycle, cluster.next_cycle - 1, cluster=cluster)


def scenarios_board(call: Call, scenario: Scenario) -> Any:
    """As of a cluster; without `cycle` after the last one."""
    cycle = call.query("cycle", max(1, scenario.n_cycles))
    return _then(call, cycle, scenario.n_cycles, scenario=scenario)


def scenarios_cycles(call: Call, scenario: Scenario) -> Any:
    """Oldest first, one line each."""
    limit = call.query("limit", 50)
    rows = scenario.cycles.filter(number__gt=call.query("after", 0)).defer("trace").order_by("number")
    found = list(rows[: limit + 1])
    return call.page(found, limit, lambda row: representations.recorded_cycle(row, scenario), after="cycle")


def scenarios_cycle(call: Call, scenario: Scenario, number: int) -> Any:
    """What was recorded of it; `full: false` where only the summary is kept (POST `whole`). 409: this engine cannot
    read the record.
    """
    _, document = selectors.recorded_cycle(scenario, number)
    if document is None:
        raise Conflict("the record cannot be read by this engine", kind="Cycle", name=str(number))
    return document


def scenarios_whole_cycle(call: Call, scenario: Scenario, number: int) -> Any:
    """A worker keeps every verdict and score of it, if it is the decision that was recorded; read it then."""
    row, document = selectors.recorded_cycle(scenario, number)
    state = "done" if is_whole(document) else "queued"
    if state == "queued":
        proof.request_whole_cycle(scenario=scenario, number=row.number)
    return accepted({"state": state}, f"/api/v1/scenarios/{scenario.public_id}/cycles/{number}/")
