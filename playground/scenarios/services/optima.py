"""How far one pod at a time is from the best placement of all: asked for here, solved by a worker."""

from __future__ import annotations

import time
from typing import Any, Final

from django.db import transaction

from playground.clusters.errors import ClusterError, Conflict, InvalidInput, NotFound
from playground.clusters.models import Cluster, Cycle
from playground.engine.joint import Unsolvable, best_placement
from playground.engine.scenarios import RunStopped, ScenarioProblem, run_fresh
from playground.scenarios import wake
from playground.scenarios.models import Optimum, Scenario
from playground.scenarios.services.moments import past_of

MAX_NODES: Final = 200
MAX_PODS: Final = 1000
MAX_LIMIT_S: Final = 120


def request_optimum(
    *,
    cluster: Cluster | None = None,
    scenario: Scenario | None = None,
    cycle: int | None = None,
    time_limit_s: int = 30,
) -> Optimum:
    """Ask for the best joint placement of the pods there were after a cycle (the last one).

    Raises
    ------
    InvalidInput, NotFound, Conflict
    """
    if not 1 <= time_limit_s <= MAX_LIMIT_S:
        raise InvalidInput(f"the limit is 1 to {MAX_LIMIT_S} s", field="time_limit_s", value=time_limit_s)
    if cluster is not None:
        last, n_nodes, n_pods = cluster.next_cycle - 1, cluster.nodes.count(), cluster.pods.count()
    else:
        assert scenario is not None
        last, n_nodes, n_pods = scenario.n_cycles, scenario.n_nodes, scenario.n_pods
    if n_nodes > MAX_NODES or n_pods > MAX_PODS:
        raise Conflict(
            f"the best joint placement is looked for up to {MAX_NODES} nodes and {MAX_PODS} pods;"
            f" here are {n_nodes:,} and {n_pods:,}"
        )
    number = cycle or last
    if not 1 <= number <= last:
        raise NotFound("there was no such cycle", kind="Cycle", name=str(number))
    with transaction.atomic():
        optimum = Optimum.objects.create(
            cluster=cluster,
            scenario=scenario,
            cycle=number,
            generation=cluster.generation if cluster else 0,
            time_limit_s=time_limit_s,
        )
        wake.on_commit(wake.OPTIMUM, optimum_id=optimum.pk)
    return optimum


def solve_optimum(*, optimum_id: int) -> None:
    """Solve it and write down what was found. Twice is once: only an open one is written."""
    rows = Optimum.objects.filter(pk=optimum_id, state__in=Optimum.OPEN)
    if not rows.update(state=Optimum.State.RUNNING, step="reading the cluster"):
        return
    optimum = rows.select_related("cluster", "scenario").get()
    began = time.monotonic()

    def told(step: str, share: float) -> None:
        rows.update(step=step, progress=0.1 + 0.9 * share)

    try:
        config, release, manifests, movable = _problem_of(optimum)
        result = best_placement(
            manifests,
            config,
            movable,
            release=release,
            time_limit_s=optimum.time_limit_s,
            progress=told,
        )
    except (ClusterError, Unsolvable, ScenarioProblem, RunStopped, ValueError) as error:
        rows.update(state=Optimum.State.FAILED, problem=str(error), step="")
    else:
        result["tookS"] = round(time.monotonic() - began, 2)
        rows.update(state=Optimum.State.DONE, result=result, progress=1.0, step="")


def _problem_of(optimum: Optimum) -> tuple[Any, Any, list[dict[str, Any]], frozenset[str]]:
    """Configuration, release, objects, and the pods the scheduler itself placed or could not place."""
    if optimum.cluster is not None:
        config, release, _, manifests, _ = past_of(optimum.cluster, optimum.cycle)
        rows: Any = Cycle.objects.filter(cluster=optimum.cluster, number__lte=optimum.cycle)
    else:
        assert optimum.scenario is not None
        run = run_fresh(bytes(optimum.scenario.document), objects_at=optimum.cycle)
        past = run.objects
        if past is None:
            raise NotFound("there was no such cycle", kind="Cycle")
        config, release, manifests = past["config"], past["release"], list(past["manifests"])
        rows = optimum.scenario.cycles.filter(number__lte=optimum.cycle)
    tried = rows.values_list("pod_namespace", "pod_name").distinct()
    return config, release, manifests, frozenset(f"{namespace}/{name}" for namespace, name in tried)
