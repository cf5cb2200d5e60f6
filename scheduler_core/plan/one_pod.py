"""What would it take to place one pending pod: the whole answer, as page, REST and command line tell it."""

from __future__ import annotations

from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.advice.why_not import causes_of, distances
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.objects.defaults import priority_class_from
from scheduler_core.objects.pod import Pod
from scheduler_core.plan.edits import advise, limits_of
from scheduler_core.plan.headroom import Report, silent
from scheduler_core.plan.pending import alike_pending
from scheduler_core.plan.workloads import edited_in, spec_of_owner
from scheduler_core.sim.simulation import Simulation


class NotPending(LookupError):
    """The pod is not there, or waits for no cycle here; the message says which."""


def pending_pod(simulation: Simulation, namespace: str, name: str) -> Pod:
    """A pod that waits for a scheduler of this cluster.

    Raises
    ------
    NotPending
    """
    pod = simulation.world.pod(namespace, name)
    if pod is None:
        raise NotPending(f"There is no pod {namespace}/{name}.")
    if pod.node_name:
        raise NotPending(f"{pod.key} runs on {pod.node_name} already.")
    if pod.scheduler_name not in simulation.scheduler.profiles:
        raise NotPending(f"{pod.key} waits for the scheduler {pod.scheduler_name}, which is not here.")
    if simulation.scheduler.cache.is_assumed(pod.uid):
        raise NotPending(f"{pod.key} has its node already and is being bound.")
    return pod


def edits_document(
    simulation: Simulation, pod: Pod, *, transport: Transport = no_transport, report: Report = silent
) -> dict[str, Any]:
    """Every edit that places `pod`, the cheapest first, and how far the nearest nodes are from taking it; JSON-able.

    It is about the cluster's own next cycle: where several nodes are as good, the one that would be drawn is told.
    """
    report(0, 9, "copying the cluster")
    sandbox = Sandbox(simulation.scheduler, transport=transport)
    classes = [priority_class_from(stored.manifest) for stored in simulation.world.all("PriorityClass")]
    alike = alike_pending(simulation, pod)
    advice = advise(
        sandbox,
        pod,
        alike,
        template=spec_of_owner(simulation, pod),
        priority_classes=classes,
        limits=limits_of(simulation.scheduler),
        report=lambda done, total, what: report(done + 1, total + 1, what),
    )
    near, n_nodes = distances(sandbox, pod)
    return advice.document() | {
        "causes": causes_of(sandbox, pod) if not advice.node else [],
        "editedIn": edited_in(simulation, pod),
        "nAlike": len(alike.pods),
        "distances": [item.document() for item in near],
        "nNodes": n_nodes,
        "requests": dict(pod.requests),
        "priority": pod.priority,
    }
