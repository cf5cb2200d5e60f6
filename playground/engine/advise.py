"""Questions about decisions, as the workers ask them: an engine in, plain data out.

The engine is read and never changed: every answer comes from a copy of its scheduler (`scheduler_core.whatif`).
"""

import gc
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from playground.engine.batch import Engine
from playground.engine.entries import Entry
from playground.engine.extender_answers import answer_of
from playground.engine.seeds import Beginning, SeedRun, run_seed
from scheduler_core.errors import CannotAnswer as CannotAnswer
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest, Transport
from scheduler_core.fork import Fork, Report
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.randomness import Randomness
from scheduler_core.releases import release_from
from scheduler_core.scenario.make import make_scenario
from scheduler_core.schedule_one import TIE_STREAM, Recorded
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.causes import every_node
from scheduler_core.whatif.fix import fix, pending_pod
from scheduler_core.whatif.headroom import place_copies
from scheduler_core.whatif.pod_group import group_story
from scheduler_core.whatif.tries import try_pod
from scheduler_core.whatif.weights import CycleWeights, PluginWeights, weights_document
from scheduler_core.whatif.why_not import devices_of, why_not

N_SEEDS_SHOWN: Final = 12
N_SEEDS_COUNTED: Final = 50
MOST_PROVEN: Final = 24
"""Whole weights that are run again at most, in one answer."""


Ask = Callable[..., dict[str, Any]]
"""Answers a question's parameters on a copy of a simulation; raises `CannotAnswer`."""


def _pending(simulation: Simulation, params: Mapping[str, Any]) -> Pod:
    return pending_pod(simulation, params["namespace"], params["name"])


def fix_for(
    simulation: Simulation,
    params: Mapping[str, Any],
    transport: Transport,
    report: Report,
    *,
    partly: Callable[[dict[str, Any]], object],
) -> dict[str, Any]:
    """Why a pod, a workload or all that is pending waits, and what places it (`scheduler_core.whatif.fix`)."""
    return fix(
        simulation,
        params,
        transport=transport,
        report=report,
        partly=lambda answer: partly(answer.document()),
    ).document()


def why_not_now(
    simulation: Simulation, params: Mapping[str, Any], transport: Transport, report: Report
) -> dict[str, Any]:
    """Why a cycle for a pending pod, run now, would not choose a node; without one, what every node says."""
    pod = _pending(simulation, params)
    if not params["node"]:
        try:
            return every_node(Fork(simulation.scheduler, transport=transport), pod)
        except (KeyError, PluginFailure) as failure:
            raise CannotAnswer(f"The cycle of {pod.name} ends in an error: {failure}") from None
    return why_not(Fork(simulation.scheduler, transport=transport), pod, params["node"]).document()


def group_of(
    simulation: Simulation, params: Mapping[str, Any], transport: Transport, report: Report
) -> dict[str, Any]:
    """Who of a pod group fits where, how far it is from being scheduled, and what was proved to place it."""
    return group_story(simulation.scheduler, params["namespace"], params["name"], transport=transport)


def try_manifest(
    simulation: Simulation, params: Mapping[str, Any], transport: Transport, report: Report
) -> dict[str, Any]:
    """The cycle a pod would have now; its manifest is admitted and not in the cluster.

    Of several ``copies``, too, how many ``of`` them are ``placed`` without preemption, on which ``nodes`` (those that
    take most first, and how many), and the ``message`` of the first that finds none.
    """
    scheduler, pod, copies = simulation.scheduler, pod_from(params["manifest"]), params.get("copies", 1)
    found = try_pod(scheduler, pod, transport=transport).document()
    if copies > 1 and found["cycle"] is not None:
        counts, stopped = place_copies(Fork(scheduler, transport=transport, seed=0), pod, copies)
        found["copies"] = {
            "of": copies,
            "placed": counts.total(),
            "nodes": [[name, n] for name, n in counts.most_common() if name],
            "message": "" if stopped is None else stopped.message or "",
        }
    return found


class PastCycle(NamedTuple):
    """The moment just before a cycle.

    Attributes
    ----------
    fork
        Extenders answer in it as they did in that cycle.
    pod
        The cycle's own.
    """

    fork: Fork
    pod: Pod


def _answering_again(answers: Sequence[dict[str, Any]]) -> Transport:
    """Gives recorded answers of extenders again, by URL and verb."""

    def transport(requests: Sequence[ExtenderRequest]) -> Sequence[ExtenderAnswer]:
        found = []
        for request in requests:
            asked = (request.url, request.verb)
            payload = next(
                (one for one in answers if (one["call"]["url"], one["call"]["verb"]) == asked), None
            )
            if payload is None:
                raise CannotAnswer(f"{request.verb} at {request.url} was not asked in that cycle.")
            found.append(answer_of(payload))
        return found

    return transport


def before_cycle(
    engine: Engine, entries: Iterable[Entry], number: int, uid: str, *, recorded: Recorded | None = None
) -> PastCycle:
    """Go through a stretch of log as `Engine.replay` does, up to just before a cycle.

    Parameters
    ----------
    entries
        Up to the `ran` entry of the cycle's batch, included.
    uid
        Of the cycle's pod.

    Raises
    ------
    CannotAnswer
        The stretch does not come to that cycle, or the pod is not there.
    """
    answers = engine.go_before(entries, number, recorded=recorded)
    if answers is None:
        raise CannotAnswer(f"Cycle {number} cannot be decided again by this engine.")
    scheduler = engine.simulation.scheduler
    pod = scheduler.pods.get(uid)
    if pod is None:
        raise CannotAnswer(f"The pod of cycle {number} is not there just before it.")
    return PastCycle(Fork(scheduler, transport=_answering_again(answers)), pod)


def why_not_then(past: PastCycle, node: str) -> dict[str, Any]:
    """Why a recorded cycle did not choose a node.

    Raises
    ------
    CannotAnswer
    """
    return why_not(past.fork, past.pod, node).document()


def devices_then(past: PastCycle, trace_bytes: bytes, node: str) -> dict[str, Any]:
    """How a recorded cycle looked for its pod's devices; empty `node` = where it went, or the first.

    Raises
    ------
    CannotAnswer
    """
    trace = CycleTrace.from_bytes(trace_bytes)
    found = devices_of(past.fork, past.pod, node or trace.node or "")
    if found is None:
        raise CannotAnswer(f"{trace.pod} asks for no devices.")
    return found | {"cycle": trace.number, "bound": trace.node}


def weights_of(trace_bytes: bytes, changed: Mapping[str, int] | None = None) -> dict[str, Any] | None:
    """Switch points of a recorded cycle, from its trace alone; None where no scores were compared.

    Parameters
    ----------
    changed
        Weights set otherwise than they were, by plugin.
    """
    found = CycleWeights.of(CycleTrace.from_bytes(trace_bytes))
    if found is None:
        return None
    known = {name: weight for name, weight in (changed or {}).items() if name in found.weights}
    totals = found.totals(known).tolist()
    recorded = found.totals().tolist()
    order = sorted(range(len(totals)), key=lambda place: -totals[place])[:20]
    before = sorted(recorded, reverse=True)
    return weights_document(found, known) | {
        "set": {**found.weights, **known},
        "nodes": [
            {
                "node": found.names[place],
                "total": totals[place],
                "recorded": recorded[place],
                "rank": 1 + sum(total > totals[place] for total in totals),
                "tied": totals.count(totals[place]) > 1,
                "recordedRank": 1 + before.index(recorded[place]),
            }
            for place in order
        ],
        "nNodes": len(totals),
        "settle": _settling(found),
    }


def _settling(found: CycleWeights) -> dict[str, Any] | None:
    """The nearest whole weight that leaves one winner where several tie; None without a tie or a way."""
    if len(found.winners()) < 2:
        return None
    best: tuple[int, str, int, str] | None = None
    for plugin, weight in found.weights.items():
        for other in range(1, 11):
            winners = found.winners({plugin: other})
            if len(winners) == 1:
                way = (abs(other - weight), plugin, other, winners[0])
                best = way if best is None else min(best, way)
    return None if best is None else {"plugin": best[1], "weight": best[2], "winner": best[3]}


def prove_weights(past: PastCycle, trace_bytes: bytes, *, report: Report) -> dict[str, Any]:
    """Switch points of a recorded cycle; the whole weights on either side are run again.

    Returns
    -------
    dict
        `weights_of`, and `proofs`: plugin, weight, winners as computed and as decided again, and whether they
        agree; `same`: whether deciding the cycle again with the weights it had gives what was recorded; `draw`.
    """
    trace = CycleTrace.from_bytes(trace_bytes)
    document = weights_of(trace_bytes)
    if document is None:
        raise CannotAnswer("No scores were compared in this cycle: fewer than two nodes were feasible.")
    found = CycleWeights.of(trace)
    assert found is not None
    fork, pod = past
    again = fork.decide(pod)
    wanted = [
        (plugin, weight)
        for plugin in found.all_plugins()
        for weight in _whole_weights(plugin)
    ][:MOST_PROVEN]  # fmt: skip
    proofs = []
    for done, (plugin, weight) in enumerate(wanted):
        report(done, len(wanted), f"{plugin.plugin} × {weight}")
        decided = set(fork.decide(pod, weights={plugin.plugin: weight}).ties)
        computed = plugin.winners_at(weight)
        proofs.append(
            {
                "plugin": plugin.plugin,
                "weight": weight,
                "winners": list(computed[:20]),
                "agrees": decided == set(computed),
            }
        )
    return document | {
        "proofs": proofs,
        "same": again.node_name == trace.node
        and set(again.ties) == set((trace.body.best if trace.body else None) or ()),
        "draw": _draw(fork.randomness, trace, again.ties),
    }


def _whole_weights(plugin: PluginWeights) -> list[int]:
    """Weights to run again: on both sides of each switch point, as far as a configuration can have them."""
    wanted = [weight for switch in plugin.switches for weight in (switch.below, switch.above)]
    return sorted({weight for weight in wanted if 1 <= weight <= 100})


def _draw(state: Mapping[str, Any], trace: CycleTrace, tied: Sequence[str]) -> dict[str, Any] | None:
    """How the tie was settled, and how other seeds would have settled it from the same state of all streams."""
    if len(tied) < 2:
        return None
    counter = int(state["streams"].get(TIE_STREAM, 0))

    def drawn(seed: int) -> str:
        other = Randomness(seed)
        other.restore({"seed": seed, "streams": {TIE_STREAM: counter}})
        return tied[other.stream(TIE_STREAM).below(len(tied))]

    seed = int(state["seed"])
    chosen = [drawn(seed + step) for step in range(N_SEEDS_COUNTED)]
    counts = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
    return {
        "stream": TIE_STREAM,
        "number": counter,
        "tied": list(tied[:50]),
        "nTied": len(tied),
        "chosen": trace.node,
        "place": list(tied).index(trace.node) if trace.node is not None and trace.node in tied else None,
        "seed": seed,
        "seeds": [{"seed": seed + step, "node": chosen[step]} for step in range(N_SEEDS_SHOWN)],
        "counts": dict(sorted(counts.items(), key=lambda item: -item[1])[:12]),
        "nCounted": N_SEEDS_COUNTED,
    }


# ---- luck


def run_seeds(
    entries: Iterable[Entry],
    seeds: Sequence[int],
    *,
    own: int,
    config: Mapping[str, Any] | None,
    release: Mapping[str, Any] | None = None,
    start_ns: int,
    each: Callable[[SeedRun], None],
    beginning: Beginning | None = None,
) -> None:
    """Run a cluster's whole log with other seeds: its inputs, never its outcomes.

    Parameters
    ----------
    entries
        The whole log, in order; with a `beginning`, what came after it.
    own
        The cluster's own seed: its run tells what hung on chance besides.
    each
        Told of every seed as it is done.
    beginning
        Where all seeds' runs are still the same, if the engine was kept there.

    Raises
    ------
    ScenarioError
        The log cannot be run again by itself.
    """
    if beginning is None:
        made = make_scenario(
            entries, config=config, release=release_from(release), seed=own, start_ns=start_ns
        )
    else:
        now_ns = beginning.simulation["nowNs"]
        made = make_scenario(entries, seed=own, start_ns=now_ns, initial=beginning.objects, goes_on=True)
    for done, seed in enumerate(seeds):
        if done:
            gc.collect()  # for a caller that paused the collector: a simulation is large, and full of cycles
        each(run_seed(made.scenario, seed, beginning))


def question_key(kind: str, text: str) -> str:
    """A short name for a question, equal for equal ones."""
    return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()[:40]
