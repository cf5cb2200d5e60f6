"""Questions that runs of a whole scenario answer: model, joint placement, upgrade, loops, luck of a share.

They join the kinds that `clusters.questions` asks, keeps and answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.text import slugify

from playground.clusters.drive.config import checked_release
from playground.clusters.errors import Conflict, InvalidInput, NotFound
from playground.clusters.jobs import reporting
from playground.clusters.luck import answer_of, drawn_in
from playground.clusters.models import Cluster, Cycle, Question
from playground.clusters.questions import KINDS, AnsweredKind, checked_seeds
from playground.engine.scenarios import ScenarioError, ask_process, asked, load, run_fresh
from playground.engine.seeds import SeedRun
from playground.scenarios.models import Scenario
from playground.scenarios.services.forking import fork, make_text
from playground.scenarios.services.moments import past_of
from playground.scenarios.services.shares import Shared, as_error, share
from playground.scenarios.services.verdicts import objects_of
from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import CannotAnswer
from scheduler_core.releases import release_from
from scheduler_core.scenario import types
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.optimum import Unsolvable, joint_problem, optimum_document, solve

MAX_NODES: Final = 200
MAX_PODS: Final = 1000
"""Of a joint placement."""
MAX_LIMIT_S: Final = 120
MOST_CYCLES_TOLD: Final = 2000
"""Cycles whose verdicts are kept: those first of which there is something to tell."""
HORIZON_NS: Final = 2 * 3600 * SECOND_NS
"""Of virtual time in which a loop is looked for."""
MOST_TOLD: Final = 500
"""Differences of each cause of an upgrade that are kept; all are counted."""


def _last_cycle(of: Cluster | Scenario, what: str) -> int:
    last = of.next_cycle - 1 if isinstance(of, Cluster) else of.n_cycles
    if not last:
        raise Conflict(f"no cycle was run yet, so there is nothing to {what}", kind="Question")
    return last


def _share_of(question: Question) -> Scenario:
    return Scenario.objects.get(public_id=question.share)


def _document(question: Question, cluster: Cluster | None) -> str | bytes:
    """What is run: the share, or the cluster as a scenario."""
    if cluster is None:
        return bytes(_share_of(question).document)
    return make_text(cluster=cluster, cycle=question.params["cycle"]).text


# ---- formal model


def _check_model(of: Cluster | Scenario, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"cycle": _last_cycle(of, "check")}


def _model(question: Question, cluster: Cluster | None, memory: object) -> dict[str, Any]:
    found = asked("model", _document(question, cluster), dict[str, Any])
    cycles = found["cycles"]
    found["nCycles"] = len(cycles)
    if len(cycles) > MOST_CYCLES_TOLD:
        cycles.sort(key=lambda cycle: all(verdict["status"] == "holds" for verdict in cycle["verdicts"]))
        found["cycles"] = sorted(cycles[:MOST_CYCLES_TOLD], key=lambda cycle: cycle["cycle"])
    return found


# ---- joint placement


def _check_optimum(of: Cluster | Scenario, params: Mapping[str, Any]) -> dict[str, Any]:
    limit_s, cycle = params.get("time_limit_s", 30), params.get("cycle")
    if not 1 <= limit_s <= MAX_LIMIT_S:
        raise InvalidInput(f"the limit is 1 to {MAX_LIMIT_S} s", field="time_limit_s", value=limit_s)
    if isinstance(of, Cluster):
        last, n_nodes, n_pods = of.next_cycle - 1, of.nodes.count(), of.pods.count()
    else:
        last, n_nodes, n_pods = of.n_cycles, of.n_nodes, of.n_pods
    if n_nodes > MAX_NODES or n_pods > MAX_PODS:
        raise Conflict(
            f"the best joint placement is looked for up to {MAX_NODES} nodes and {MAX_PODS} pods;"
            f" here are {n_nodes:,} and {n_pods:,}"
        )
    number = cycle or last
    if not 1 <= number <= last:
        raise NotFound("there was no such cycle", kind="Cycle", name=str(number))
    return {"cycle": number, "time_limit_s": limit_s}


def _optimum(question: Question, cluster: Cluster | None, memory: object) -> dict[str, Any]:
    cycle, report = question.params["cycle"], reporting(question)
    began = time.monotonic()
    report(0, 1, "reading the cluster")
    rows: Any
    if cluster is not None:
        config, release, _, manifests, _ = past_of(cluster, cycle)
        rows = Cycle.objects.filter(cluster=cluster)
    else:
        scenario = _share_of(question)
        past = run_fresh(bytes(scenario.document), objects_at=cycle).objects
        if past is None:
            raise CannotAnswer("there was no such cycle")
        config, release, manifests = past["config"], past["release"], list(past["manifests"])
        rows = scenario.cycles

    def told(step: str, share: float) -> None:
        report(round(100 + 900 * share), 1000, step)

    tried = rows.filter(number__lte=cycle).values_list("pod_namespace", "pod_name").distinct()
    movable = frozenset(f"{namespace}/{name}" for namespace, name in tried)
    try:
        problem = joint_problem(manifests, config, movable, release_from(release))
        found = solve(problem, time_limit_s=question.params["time_limit_s"], progress=told)
    except (Unsolvable, ValueError) as error:
        raise CannotAnswer(str(error)) from None
    took_s = round(time.monotonic() - began, 2)
    return optimum_document(problem, manifests, found) | {"tookS": took_s}


# ---- upgrade


def _check_upgrade(of: Cluster | Scenario, params: Mapping[str, Any]) -> dict[str, Any]:
    """``name`` and ``gates`` of the other release -> ``before`` and ``after``."""
    after = checked_release(params.get("name", ""), params.get("gates"))
    if isinstance(of, Cluster):
        before = {"name": of.kubernetes_release, "switched": of.feature_gates}
    else:
        try:
            opened = load(bytes(of.document)).release.document()
        except ScenarioError as problem:
            raise as_error(problem) from None
        before = {"name": opened["name"], "switched": opened.get("switched", {})}
    last = _last_cycle(of, "decide again")
    if after == before:
        raise Conflict(
            "the cluster follows this release already: choose another release or gate", kind="Question"
        )
    return {"cycle": last, "before": before, "after": after}


def _upgrade(question: Question, cluster: Cluster | None, memory: object) -> dict[str, Any]:
    report, params = reporting(question), question.params
    report(0, 1, "making the run again")
    watched = partial(ask_process, told=lambda step, share: report(round(1000 * share), 1000, step))
    how = {"before": params["before"], "after": params["after"], "limit": MOST_TOLD}
    return asked("upgrade", _document(question, cluster), dict[str, Any], ask=watched, **how)


def share_upgrade(*, upgrade: Question, owner: Any = None) -> Shared:
    """Share the answer: the cluster's run so far as a share, with the findings.

    Raises
    ------
    Conflict
        There is no answer yet.
    InvalidManifest, QuotaExceeded
    """
    if upgrade.state != Question.State.DONE:
        raise Conflict("there is no answer yet to share", kind="Question")
    with transaction.atomic():
        shared = share(document=_document(upgrade, upgrade.cluster), owner=owner)
        same = ("kind", "params", "key", "state", "done", "total", "engine_version", "took_ms", "answer")
        Question.objects.get_or_create(
            share=shared.scenario.public_id,
            key=upgrade.key,
            defaults={name: getattr(upgrade, name) for name in same},
        )
    return shared


def branch_of_upgrade(*, upgrade: Question, owner: Any = None) -> Cluster:
    """A new cluster that begins as the previewed run on the other release; its steps wait to be done.

    Raises
    ------
    Conflict
        There is no answer yet.
    ClusterError
    """
    with transaction.atomic():
        shared = share_upgrade(upgrade=upgrade, owner=owner)
        after = upgrade.params["after"]
        name = f"{shared.scenario.words[:80]} on {after['name']}"
        return fork(scenario=shared.scenario, owner=owner, name=name, release=after)


# ---- loops of controllers


def _check_loops(of: Cluster | Scenario, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"seq": of.last_seq} if isinstance(of, Cluster) else {}


def _loops(question: Question, cluster: Cluster | None, memory: object) -> dict[str, Any]:
    document: str | bytes
    if cluster is None:
        document = _document(question, None)
    else:
        now = types.Scenario(
            name=slugify(cluster.name) or "cluster",
            kubernetes_release=cluster.kubernetes_release,
            feature_gates=cluster.feature_gates,
            seed=cluster.seed,
            start_ns=cluster.now_ns,
            scheduler=cluster.config,
            objects=tuple(objects_of(cluster)),
        )
        document = dump_scenario(now)
    return asked("loops", document, dict[str, Any], horizon_ns=HORIZON_NS)


# ---- luck


def _check_luck(scenario: Scenario, params: Mapping[str, Any]) -> dict[str, Any]:
    if scenario.state != Scenario.State.RECORDED:
        raise Conflict("the scenario was not run yet", kind="Scenario", name=scenario.public_id)
    return checked_seeds(params, scenario.seed, scenario.n_cycles)


def _luck(question: Question, cluster: Cluster | None, memory: object) -> dict[str, Any]:
    cycles = _share_of(question).cycles
    answer = answer_of(list(question.seeds.order_by("seed")), lambda pod: drawn_in(cycles, pod))
    return answer | {"engine": ENGINE_VERSION}


def _run_share(
    question: Question, seeds: Sequence[int], keep: Callable[[int, str, Mapping[str, Any]], None]
) -> None:
    document = bytes(_share_of(question).document)
    for one in asked("seeds", document, list[SeedRun], seeds=list(seeds)):
        keep(one.seed, one.digest, one.end)


KINDS.update(
    {
        Question.Kind.MODEL: AnsweredKind(_check_model, _model, is_long=True),
        Question.Kind.OPTIMUM: AnsweredKind(_check_optimum, _optimum, is_long=True),
        Question.Kind.UPGRADE: AnsweredKind(_check_upgrade, _upgrade, is_long=True, is_alone=True),
        Question.Kind.LOOPS: AnsweredKind(_check_loops, _loops, is_long=True, is_alone=True),
        Question.Kind.LUCK: AnsweredKind(_check_luck, _luck, _run_share, is_long=True),
    }
)


@receiver(post_delete, sender=Scenario)
def _forget_questions(instance: Scenario, **_: Any) -> None:
    """What was asked about a share goes with it."""
    Question.objects.filter(share=instance.public_id).delete()
