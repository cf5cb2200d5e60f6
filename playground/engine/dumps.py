"""What a dump of a cluster shows before anything is made of it: its figures, and what becomes of its pods."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from playground.engine.batch import collector_paused
from playground.engine.columns import FINISHED, node_columns, pod_columns, with_uses
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import group_of
from scheduler_core.framework.record import CycleTrace
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.types import API_VERSION, KIND
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.controllers.deployment import deployment_behind
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fix import fix

Manifest = Mapping[str, Any]
Report = Callable[[int, int, str], None]
OWNERS: Final[list[str]] = table_beside(__package__, "tables.yaml")["owners"]
MOST_GROUPS: Final = 60
"""Of pending pods and of nodes that are told; of the rest only how many there are."""
MOST_SECONDS: Final = 60.0
"""Processor time spent on pending pods; how many were left is said."""
REASONS_A_GROUP: Final = 3


def facts_of_dump(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """What is in a dump, in figures.

    Parameters
    ----------
    manifests
        Admitted ones.

    Returns
    -------
    dict
        ``nodes``, ``placed``, ``pending``, ``finished`` (counts), ``groups`` (pending pods by owner, the largest first:
        kind, namespace, name, pods, count, requests, gated), ``moreGroups``, ``pools`` (nodes by pool and instance
        type: zones, allocatable and requested amounts), ``morePools``, ``zones`` (name -> nodes),
        ``budgets``, ``claimsMissing`` (claims pods name that are not here), ``saidUnschedulable`` (pods for
        which the dump says that a scheduler found no node), ``uses`` (each node with what is requested on it).
    """
    nodes = [
        {"name": str(m["metadata"]["name"]), **node_columns(m)} for m in manifests if m["kind"] == "Node"
    ]
    pods = [(m, pod_columns(m)) for m in manifests if m["kind"] == "Pod"]
    placed = [(m, row) for m, row in pods if row["node_name"] and row["phase"] not in FINISHED]
    waiting = [(m, row) for m, row in pods if not row["node_name"] and row["phase"] not in FINISHED]
    groups = _pending_groups(manifests, waiting)
    uses = with_uses(nodes, (row for _, row in placed))
    pools = _pools(uses)
    claims = {
        (m["metadata"].get("namespace", "default"), m["metadata"]["name"])
        for m in manifests
        if m["kind"] == "PersistentVolumeClaim"
    }
    wanted = {claim for m, _ in (*placed, *waiting) for claim in _claims(m)}
    return {
        "nodes": len(nodes),
        "placed": len(placed),
        "pending": len(waiting),
        "finished": len(pods) - len(placed) - len(waiting),
        "groups": groups[:MOST_GROUPS],
        "moreGroups": max(0, len(groups) - MOST_GROUPS),
        "pools": pools[:MOST_GROUPS],
        "morePools": max(0, len(pools) - MOST_GROUPS),
        "zones": dict(sorted(Counter(row["zone"] for row in nodes).items())),
        "budgets": sum(m["kind"] == "PodDisruptionBudget" for m in manifests),
        "claimsMissing": len(wanted - claims),
        "saidUnschedulable": [key_of(m) for m, _ in waiting if _is_said_unschedulable(m)],
        "uses": uses,
    }


def _is_said_unschedulable(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") == "PodScheduled"
        and one.get("status") == "False"
        and one.get("reason") == "Unschedulable"
        for one in conditions
    )


def _claims(pod: Manifest) -> list[tuple[str, str]]:
    namespace = pod["metadata"].get("namespace", "default")
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [
        (namespace, str(volume["persistentVolumeClaim"].get("claimName")))
        for volume in volumes
        if isinstance(volume.get("persistentVolumeClaim"), Mapping)
    ]


def key_of(pod: Manifest) -> str:
    """``namespace/name``."""
    meta = pod["metadata"]
    return f"{meta.get('namespace', 'default')}/{meta['name']}"


def _pending_groups(
    manifests: Sequence[Manifest], waiting: Sequence[tuple[Manifest, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    above = {
        str(m["metadata"].get("uid")): next(
            (r for r in m["metadata"].get("ownerReferences") or () if r.get("controller")), None
        )
        for m in manifests
        if m["kind"] in OWNERS
    }
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for manifest, row in waiting:
        kind, name = _top_owner(manifest, row, above)
        namespace = manifest["metadata"].get("namespace", "default")
        requests = {"cpu": row["cpu_milli"], "memory": row["memory_bytes"], **row["extended"]}
        of = (kind, namespace, name, row["priority_class"], tuple(sorted(requests.items())))
        group = found.setdefault(
            of,
            {
                "kind": kind,
                "namespace": namespace,
                "name": name,
                "priorityClass": row["priority_class"],
                "requests": requests,
                "gated": bool((manifest.get("spec") or {}).get("schedulingGates")),
                "count": 0,
                "pods": [],
            },
        )
        group["count"] += 1
        group["pods"].append(key_of(manifest))
    return sorted(found.values(), key=lambda one: (-one["count"], one["namespace"], one["name"]))


def _top_owner(
    pod: Manifest, row: Mapping[str, Any], above: Mapping[str, Manifest | None]
) -> tuple[str, str]:
    """(kind, name) of the workload: the owner's owner where that is here, a Deployment by its pods' hash otherwise."""
    kind, name = row["owner_kind"], row["owner_name"]
    if not kind:
        return "Pod", pod["metadata"]["name"]
    references = pod["metadata"].get("ownerReferences") or ()
    uid = next((str(one.get("uid")) for one in references if one.get("controller")), "")
    for _ in range(3):
        upper = above.get(uid)
        if upper is None:
            break
        kind, name, uid = str(upper["kind"]), str(upper["name"]), str(upper.get("uid"))
    return deployment_behind(kind, name, row["labels"])


def _pools(uses: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Nodes by pool and instance type, the largest first. Amounts in millicores, bytes and counts."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in uses:
        of = group_of(row["labels"])
        pool = found.setdefault(
            (of.name, of.shape),
            {
                "pool": of.name,
                "type": of.shape,
                "nodes": 0,
                "zones": Counter(),
                "has": Counter(),
                "used": Counter(),
            },
        )
        pool["nodes"] += 1
        pool["zones"][row["zone"]] += 1
        pool["has"].update(
            {
                "cpu": row["cpu_milli"],
                "memory": row["memory_bytes"],
                "pods": row["max_pods"],
                **row["extended"],
            }
        )
        pool["used"].update(
            {
                "cpu": row["used_cpu_milli"],
                "memory": row["used_memory_bytes"],
                "pods": row["n_pods"],
                **row["used_extended"],
            }
        )
    made = [{**pool, **{key: dict(pool[key]) for key in ("zones", "has", "used")}} for pool in found.values()]
    return sorted(made, key=lambda one: (-one["nodes"], one["pool"], one["type"]))


# ---- what becomes of pending pods


class _Enough(Exception):
    """The time is over."""


@dataclass
class _Decided:
    """What was decided so far."""

    report: Report
    total: int
    until_s: float
    n: int = 0
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    _causes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def look(self, simulation: Simulation) -> None:
        """After each cycle."""
        for trace in simulation.drain_cycles():
            self.n += 1
            self.evicted.update(trace.victims)
            self.outcomes[trace.pod] = {
                "node": trace.node or "",
                "message": trace.message or "",
                "causes": [] if trace.node else self._causes_of(trace),
            }
        self.report(min(self.n, self.total), self.total, "deciding pending pods")
        if time.process_time() > self.until_s:
            raise _Enough

    def _causes_of(self, trace: CycleTrace) -> list[dict[str, Any]]:
        """Reasons that keep a pod off nodes, with counts; read once for all pods with the same message."""
        told = trace.message or ""
        if told not in self._causes:
            verdicts = (trace.explain().get("filter") or {}).values() if trace.is_full else ()
            counts = Counter(reason for one in verdicts if one for reason in one["reasons"])
            common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:REASONS_A_GROUP]
            self._causes[told] = [{"reason": reason, "nodes": n} for reason, n in common]
        return self._causes[told]


def decide_pending(
    manifests: Sequence[Manifest],
    *,
    release: str,
    n_pending: int,
    report: Report = lambda done, total, what: None,
) -> dict[str, Any]:
    """Have the scheduler decide the pending pods of a dump, on a copy that is thrown away.

    Controllers do nothing here: nothing is made, so the pods are those of the dump. Pods that were not reached within
    `MOST_SECONDS` have no outcome.

    Parameters
    ----------
    manifests
        Admitted ones.
    n_pending
        For the progress.
    Returns
    -------
    dict
        ``pods``: ``namespace/name`` -> node, message and causes (reason, nodes) of its last attempt; ``evicted``: pods
        that would have to go; ``problem``: why nothing could be decided, else empty.
    """
    decided = _Decided(report, n_pending, time.process_time() + MOST_SECONDS)
    problem = ""
    try:
        pods_alone = [m for m in manifests if m["kind"] not in OWNERS]
        _run(pods_alone, release, full_traces=True, after_cycle=decided.look)
    except _Enough:
        pass
    except ScenarioError as error:
        problem = str(error.problems[0])
    except InvalidObject as error:
        problem = str(error)
    return {"pods": decided.outcomes, "evicted": sorted(decided.evicted), "problem": problem}


def fix_of_dump(
    manifests: Sequence[Manifest],
    *,
    release: str,
    report: Report = lambda done, total, what: None,
) -> dict[str, Any] | None:
    """What places all pods that wait once the dump is a cluster (`scheduler_core.whatif.fix`); None where it is none.

    Controllers do their part here, as in the cluster that is made of it.
    """
    report(0, 0, "looking for the best fix")
    try:
        run = _run(manifests, release, full_traces=False)
    except (ScenarioError, InvalidObject):
        return None
    return fix(run.simulation, {}, report=report).document()


def _run(manifests: Sequence[Manifest], release: str, **how: Any) -> ScenarioRun:
    """Run a scenario of these objects until idle."""
    head = {"apiVersion": API_VERSION, "kind": KIND, "kubernetesRelease": release}
    with collector_paused():
        scenario = load_scenario(head | {"objects": list(manifests), "steps": [{"run": "idle"}]})
        return run_scenario(scenario, **how)
