"""The formal model of scheduling, checked on every cycle of a run: order, placement, minimal casualty.

Order: the pod taken is the first of those that wait. Placement: the node taken is feasible, and viable, that is, of the
highest score among the feasible; where none is, no pod is placed. Minimal casualty: no other set of lower pods, on any
node, would make room at a smaller loss; losses are compared as Kubernetes compares candidates: budgets violated, the
highest priority among the victims, the sum of priorities, how many, and how early the most important of them started.
Kubernetes leaves the model in places on purpose (`DEPARTURES`). What is checked here is evaluated one node and one pod
at a time from the objects, not from the columns and kept answers the decision came from.

Source: pkg/scheduler/framework/preemption/preemption.go pickOneNodeForPreemption,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode, v1.34
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.objects.pod import PREEMPTED_BY_SCHEDULER, Pod
from scheduler_core.releases import Release
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import model_filters
from scheduler_core.whatif.model_filters import (
    ACTIVE,
    BACKOFF,
    CASUALTY,
    FAILS,
    GATED,
    HOLDS,
    LEAVES,
    NOT_COMPUTED,
    ORDER,
    OTHER,
    PLACEMENT,
    PROPERTIES,
    STATUSES,
    Feasibility,
    Moment,
    Place,
    PropertyVerdict,
    Rules,
    Waiting,
    ports_of,
)

DEPARTURES: Final[Mapping[str, str]] = table_beside(__package__, "departures.yaml")
"""Where Kubernetes leaves the model on purpose: key -> why."""
_order, _placement, _casualty = (partial(PropertyVerdict, name) for name in (ORDER, PLACEMENT, CASUALTY))
_WHY = {BACKOFF: "backoff", GATED: "gated", OTHER: "otherScheduler"}
_WORDS = {
    "backoff": "waits for the end of its backoff",
    "gated": "is gated",
    "otherScheduler": "is another scheduler's",
    "hints": "waits for something that could help it",
}


def check_order(uid: str, moment: Moment, queue_sort: str) -> PropertyVerdict:
    """Check a cycle about the pod of a uid."""
    taken = moment.pod(uid)
    if taken is None:
        return _order(FAILS, "The pod taken did not wait for a node.")
    if queue_sort != "PrioritySort":
        return _order(NOT_COMPUTED, f"{queue_sort} orders the queue, not PrioritySort.")
    key = taken.pod.key
    if taken.lane == ACTIVE:
        first = min((item for item in moment.waiting if item.lane == ACTIVE), key=_rank)
        if _rank(first) < _rank(taken):
            return _order(
                FAILS,
                f"{key} (priority {taken.pod.priority}) was taken before {first.pod.key} (priority"
                f" {first.pod.priority}), which was ready and comes first.",
                counterexample={"pod": first.pod.key, "priority": first.pod.priority},
            )
    elif taken.lane != BACKOFF or any(item.lane == ACTIVE for item in moment.waiting):
        return _order(FAILS, f"{key} was taken and was not ready ({taken.lane}).")
    above = [item for item in moment.waiting if item.pod.priority > taken.pod.priority]
    if above:
        first = max(above, key=lambda item: item.pod.priority)
        why = _WHY.get(first.lane, "hints")
        return _order(
            LEAVES,
            f"{key} (priority {taken.pod.priority}) goes first, since {first.pod.key} (priority"
            f" {first.pod.priority}) {_WORDS[why]}.",
            why,
            {"pod": first.pod.key, "priority": first.pod.priority},
        )
    if taken.lane == BACKOFF:
        said = f"{key} was taken out of backoffQ before its time, as activeQ was empty."
        return _order(LEAVES, said, "popFromBackoff")
    return _order(HOLDS, f"No pod that waits is more important than {key}.")


def _rank(item: Waiting) -> tuple[int, int]:
    return -item.pod.priority, item.timestamp_ns


# ---- placement


def check_placement(
    cycle: Mapping[str, Any], moment: Moment, asked: Feasibility, args: Mapping[str, Any]
) -> PropertyVerdict:
    """Check what a cycle decided.

    Parameters
    ----------
    cycle : mapping
        The cycle's whole explanation (`framework.record.CycleTrace.explain`).
    args : mapping
        Arguments of the profile's plugins by name.
    """
    if cycle["error"] and not cycle["node"]:
        return _placement(NOT_COMPUTED, f"The cycle ended in an error: {cycle['error']}")
    if cycle["filter"] is None and cycle["preFilter"]["plugin"] not in (None, *model_filters.EVALUATED):
        said = f"{cycle['preFilter']['plugin']} rejected all nodes; the model takes its word."
        return _placement(NOT_COMPUTED, said)
    recorded: Mapping[str, Any] = cycle["filter"] or {}
    others = _taken_as_recorded(cycle, recorded)
    wrong = _disagreement(cycle, recorded, asked)
    if wrong is not None:
        return wrong
    chosen, feasible = cycle["node"], list(cycle["feasible"])
    if not chosen and feasible:
        return _placement(
            FAILS,
            f"{feasible[0]} is feasible, and the pod was placed nowhere.",
            counterexample={"node": feasible[0]},
        )
    if chosen and chosen not in feasible:
        return _placement(FAILS, f"The pod was placed on {chosen}, which is not feasible.")
    if len(feasible) > 1:
        wrong = _not_viable(cycle, asked, args, moment.release)
        if wrong is not None:
            return wrong
    return _left(cycle, recorded, asked) or _placement(HOLDS, _words(cycle, others))


def _words(cycle: Mapping[str, Any], others: str) -> str:
    counts = f"{cycle['nNodes']} possible, {len(cycle['feasible'])} feasible, {cycle['nViable']} viable"
    if not cycle["node"]:
        return f"No node is feasible ({counts}).{others}"
    why = (
        "none of the feasible scores higher" if len(cycle["feasible"]) > 1 else "it is the only feasible one"
    )
    return f"{cycle['node']} is feasible, and {why} ({counts}).{others}"


def _taken_as_recorded(cycle: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    skipped = set(cycle["skippedFilter"])
    names = [
        name for name in cycle["filterPlugins"] if name not in model_filters.EVALUATED and name not in skipped
    ]
    said = {verdict["plugin"] for verdict in recorded.values() if verdict}
    names = [name for name in names if name in said]
    return f" What {', '.join(names)} said is taken as recorded." if names else ""


def _judged_elsewhere(cycle: Mapping[str, Any], name: str, verdict: Mapping[str, Any] | None) -> bool:
    """Whether a node's verdict came from an extender or from a plugin the model does not evaluate."""
    if verdict is None:
        return bool(cycle["extenders"]) and name not in cycle["feasible"]
    if verdict["plugin"] is None:
        # An extender's word, or a node that PreFilter left out.
        return bool(cycle["extenders"]) or "VolumeBinding" not in cycle["skippedFilter"]
    return verdict["plugin"] not in model_filters.EVALUATED


def _is_nominated(cycle: Mapping[str, Any]) -> bool:
    """Whether the pod took the node it was nominated to, without a look at any other."""
    return bool(cycle["node"]) and cycle["nodesEvaluated"] == 1 and cycle["nNodes"] > 1


def _disagreement(
    cycle: Mapping[str, Any], recorded: Mapping[str, Any], asked: Feasibility
) -> PropertyVerdict | None:
    """A node the model judges otherwise than the cycle did."""
    for place in asked.places:
        name = place.node.name
        if cycle["filter"] is None:
            passes, by = False, cycle["preFilter"]["plugin"] or "PreFilter"
        elif name in recorded and not _judged_elsewhere(cycle, name, recorded[name]):
            verdict = recorded[name]
            passes, by = verdict is None, (verdict or {}).get("plugin") or "PreFilter"
        else:
            continue
        if _is_nominated(cycle) and name != cycle["node"]:
            continue
        refusal = asked.verdict(place)
        if passes == (refusal is None):
            continue
        said = (
            f"{name} is feasible, and {by} rejected it."
            if refusal is None
            else f"{name} is not feasible ({refusal.plugin}), and passed every filter."
        )
        right = "feasible" if refusal is None else refusal.plugin
        return _placement(FAILS, said, counterexample={"node": name, "model": right})
    return None


def _not_viable(
    cycle: Mapping[str, Any], asked: Feasibility, args: Mapping[str, Any], release: Release
) -> PropertyVerdict | None:
    """A feasible node that scores higher than the chosen one, or points that were not summed or given rightly."""
    total: Mapping[str, int] | None = cycle["total"]
    if not total:
        # Neither a score plugin nor an extender: all nodes are equal.
        return None
    feasible = set(cycle["feasible"])
    places = [place for place in asked.places if place.node.name in feasible]
    given: Mapping[str, Mapping[str, int]] = cycle["scores"]
    for plugin, by_node in given.items():
        right = (
            model_filters.points(plugin, asked.pod, places, args.get(plugin), release)
            if len(places) == len(feasible)
            else None
        )
        for name in sorted(right or ()):
            if right is not None and by_node.get(name) != right[name]:
                said = f"{plugin} gave {name} {by_node.get(name)} points; they are {right[name]}."
                return _placement(FAILS, said, counterexample={"node": name, "points": right[name]})
    if not cycle["extenders"]:
        weights = cycle["weights"]
        for name in sorted(total):
            summed = sum(by_node[name] * weights[plugin] for plugin, by_node in given.items())
            if summed != total[name]:
                said = f"The points of {name} sum up to {summed}, not {total[name]}."
                return _placement(FAILS, said, counterexample={"node": name, "total": summed})
    best = max(total.values())
    if total[cycle["node"]] != best:
        name = min(name for name in total if total[name] == best)
        return _placement(
            FAILS,
            f"{cycle['node']} ({total[cycle['node']]} points) was taken, and {name} ({best}) is viable.",
            counterexample={"node": name, "total": best},
        )
    return None


def _left(
    cycle: Mapping[str, Any], recorded: Mapping[str, Any], asked: Feasibility
) -> PropertyVerdict | None:
    """Where Kubernetes left the model on purpose: a feasible node that was out of the question."""
    for place in asked.places:
        name = place.node.name
        if name in cycle["feasible"] or cycle["filter"] is None or asked.refusal(place) is not None:
            continue
        if _is_nominated(cycle):
            return _leaves("nominated", place, f"and only {cycle['node']}, where room was made, was asked")
        if name not in recorded:
            return _leaves("sampling", place, f"and only {cycle['nodesEvaluated']} nodes were looked at")
        if _judged_elsewhere(cycle, name, recorded[name]):
            if cycle["extenders"]:
                return _leaves("extender", place, "and an extender left it out")
            continue
        if asked.verdict(place) is not None:
            return _leaves("nominatedRoom", place, "and its room counts as a nominated pod's")
    if cycle["extenders"] and cycle["node"] and len(cycle["feasible"]) > 1:
        said = "Extenders had a say about the nodes and their points."
        return _placement(LEAVES, said, "extender")
    return None


def _leaves(why: str, place: Place, words: str) -> PropertyVerdict:
    name = place.node.name
    return _placement(LEAVES, f"{name} is feasible, {words}.", why, {"node": name})


# ---- minimal casualty

MAX_SETS = 1 << 14
"""Sets of pods that are compared in one cycle, over all nodes."""

NEVER_STARTED = 2**63 - 1
_OFFSET = 2**31

Loss = tuple[int, int, int, int, int]
"""(budgets violated, highest priority, sum of priorities, pods, minus the start of the most important one)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and pods of it whose eviction makes room."""

    node: str
    victims: tuple[Pod, ...]
    loss: Loss

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        violations, highest, total, count, start = self.loss
        return {
            "node": self.node,
            "victims": [pod.key for pod in self.victims],
            "loss": {
                "budgetViolations": violations,
                "highestPriority": highest,
                "prioritySum": total - count * _OFFSET,
                "pods": count,
                "earliestStart": None if -start == NEVER_STARTED else format_time_ns(-start),
            },
        }


class Casualties:
    """What making room for one pod costs, on every node of a moment."""

    def __init__(self, moment: Moment, asked: Feasibility) -> None:
        self.asked = asked
        self.pod = asked.pod
        self._budgets = moment.budgets
        self._lower = {place.node.name: self._lower_pods(place) for place in asked.places}
        self._violating = {name: self._violated(pods) for name, pods in self._lower.items()}

    @property
    def n_sets(self) -> int:
        """How many sets of pods there are."""
        return sum((1 << len(pods)) - 1 for pods in self._lower.values())

    def _lower_pods(self, place: Place) -> list[Pod]:
        """The most important first."""
        return sorted((pod for pod in place.pods if pod.priority < self.pod.priority), key=_importance)

    def _violated(self, pods: Sequence[Pod]) -> frozenset[str]:
        """Uids of those whose eviction would violate a budget, were all evicted in this order."""
        allowed = [budget.disruptions_allowed for budget in self._budgets]
        violating = []
        for pod in pods:
            over = False
            for index, budget in enumerate(self._budgets):
                if not pod.labels or budget.meta.namespace != pod.namespace:
                    continue
                if budget.selector.is_everything or not budget.selector.matches(pod.labels):
                    continue
                if pod.name in budget.disrupted_pods:
                    continue
                allowed[index] -= 1
                over = over or allowed[index] < 0
            if over:
                violating.append(pod.uid)
        return frozenset(violating)

    def candidate(self, place: Place, victims: Sequence[Pod]) -> Candidate:
        """What it costs to evict these pods of a node, one at least."""
        ordered = tuple(sorted(victims, key=_importance))
        highest = ordered[0].priority
        start = min(_start(pod) for pod in ordered if pod.priority == highest)
        loss = (
            sum(pod.uid in self._violating[place.node.name] for pod in ordered),
            highest,
            sum(pod.priority + _OFFSET for pod in ordered),
            len(ordered),
            -start,
        )
        return Candidate(place.node.name, ordered, loss)

    def reprieved(self, place: Place) -> Candidate | None:
        """What Kubernetes finds on a node: all lower pods go, then as many as possible come back, one by one."""
        lower = self._lower[place.node.name]
        if not lower or self.asked.verdict(place, without=lower) is not None:
            return None
        violating = self._violating[place.node.name]
        gone = list(lower)
        # Who comes back takes its ports again, also one that another pod which left gave up.
        ports = self.asked.ports_without(place, lower)
        for pod in sorted(lower, key=lambda item: item.uid not in violating):
            rest = [other for other in gone if other is not pod]
            ports |= ports_of(pod)
            if self.asked.verdict(place, without=rest, ports=ports) is None:
                gone = rest
            else:
                ports -= ports_of(pod)
        return self.candidate(place, gone) if gone else None

    def sets(self, place: Place) -> Iterator[tuple[Pod, ...]]:
        """Every set of lower pods of a node but the empty one."""
        lower = self._lower[place.node.name]
        for bits in range(1, 1 << len(lower)):
            yield tuple(pod for index, pod in enumerate(lower) if bits >> index & 1)

    def least(self, than: Loss | None) -> Candidate | None:
        """The set of smallest loss that makes room, if one is smaller than `than`."""
        best: Candidate | None = None
        for place in self.asked.places:
            lower = self._lower[place.node.name]
            # Without pod affinity a node that is empty of lower pods is as good as it gets.
            if not self.pod.required_affinity and (
                not lower or self.asked.refusal(place, without=lower) is not None
            ):
                continue
            for victims in self.sets(place):
                found = self.candidate(place, victims)
                bound = best.loss if best is not None else than
                if (bound is None or found.loss < bound) and self.asked.refusal(
                    place, without=victims
                ) is None:
                    best = found
        return best


def check_casualty(
    cycle: Mapping[str, Any], moment: Moment, asked: Feasibility, preempts: bool
) -> PropertyVerdict | None:
    """Check the preemption of a cycle; None for a cycle that placed its pod or ended in an error.

    Parameters
    ----------
    cycle : mapping
        The cycle's whole explanation.
    preempts : bool
        Whether the profile runs DefaultPreemption.
    """
    if cycle["node"] or cycle["error"]:
        return None
    unknown = _beyond_the_model(cycle)
    if unknown:
        return _casualty(NOT_COMPUTED, f"{unknown} had a say, which the model does not evaluate.")
    if any(call.get("verb") == "preempt" for call in cycle["extenders"]):
        return _casualty(LEAVES, "Extenders had a say about nodes and victims.", "extender")
    casualties = Casualties(moment, asked)
    if not cycle["victims"]:
        return _no_victims(cycle, casualties, asked, preempts)
    place = next((item for item in asked.places if item.node.name == cycle["nominatedNode"]), None)
    pods = [] if place is None else [pod for pod in place.pods if pod.key in cycle["victims"]]
    if place is None or len(pods) != len(cycle["victims"]):
        return _casualty(FAILS, f"The victims are not all on {cycle['nominatedNode']}.")
    above = next((pod for pod in pods if pod.priority >= asked.pod.priority), None)
    if above is not None:
        return _casualty(FAILS, f"{above.key} (priority {above.priority}) is no lower pod.")
    chosen = casualties.candidate(place, pods)
    return _against_kubernetes(chosen, place, cycle, casualties) or _against_all(chosen, casualties)


def _beyond_the_model(cycle: Mapping[str, Any]) -> str:
    """Filter plugins that are at work for this pod and that the model does not evaluate."""
    skipped = set(cycle["skippedFilter"])
    said = {verdict["plugin"] for verdict in (cycle["filter"] or {}).values() if verdict}
    names = [
        name
        for name in cycle["filterPlugins"]
        if name not in model_filters.EVALUATED
        and (name in said or (name not in skipped and name.startswith("Volume")))
    ]
    return ", ".join(names)


def _against_kubernetes(
    chosen: Candidate, place: Place, cycle: Mapping[str, Any], casualties: Casualties
) -> PropertyVerdict | None:
    """What Kubernetes' own rules say: the reprieve on that node, and the best of the candidates that were tried."""
    refusal = casualties.asked.verdict(place, without=chosen.victims)
    if refusal is not None:
        said = f"Without its victims {chosen.node} is still not feasible ({refusal.plugin})."
        return _casualty(FAILS, said)
    own = casualties.reprieved(place)
    if own is None or {pod.uid for pod in own.victims} != {pod.uid for pod in chosen.victims}:
        names = "none" if own is None else _names(own.victims)
        said = f"On {chosen.node} the reprieve leaves {names} to be evicted, not {_names(chosen.victims)}."
        example = {} if own is None else own.document()
        return _casualty(FAILS, said, counterexample=example)
    tried = {entry["node"] for entry in (cycle["preemption"] or {}).get("candidates", ())}
    recorded = cycle["filter"] or {}
    untried: Candidate | None = None
    for other in casualties.asked.places:
        found = None if other is place else casualties.reprieved(other)
        if found is None or found.loss >= chosen.loss:
            continue
        verdict = recorded.get(found.node)
        if verdict is None or verdict["code"] != "Unschedulable":
            said = f"{found.node} was not tried; evicting {_names(found.victims)} there would have lost less."
            return _casualty(LEAVES, said, "unresolvable", found.document())
        if found.node in tried:
            said = f"{found.node} loses less: {_names(found.victims)} instead of {_names(chosen.victims)}."
            return _casualty(FAILS, said, counterexample=found.document())
        untried = found if untried is None or found.loss < untried.loss else untried
    if untried is None:
        return None
    sampling = (cycle["preemption"] or {}).get("sampling") or {}
    if sampling.get("tried", 0) >= sampling.get("potential", 0):
        if len(tried) < sampling.get("wanted", 0):
            said = f"{untried.node} was tried and is no candidate, and evicting {_names(untried.victims)} makes room."
            return _casualty(FAILS, said, counterexample=untried.document())
        # Those that violate a budget have a list of their own: it is full, and the search goes on for others.
        said = (
            f"As many candidates that violate a budget are kept as are wanted; {untried.node}, which came later, would"
            f" lose less: {_names(untried.victims)}."
        )
        return _casualty(LEAVES, said, "candidates", untried.document())
    said = (
        f"{sampling['tried']} of {sampling['potential']} nodes were tried; {untried.node}, which was not, would lose"
        f" less: {_names(untried.victims)}."
    )
    return _casualty(LEAVES, said, "candidates", untried.document())


def _against_all(chosen: Candidate, casualties: Casualties) -> PropertyVerdict:
    """What the model says: no set on any node loses less."""
    if casualties.n_sets > MAX_SETS:
        return _casualty(
            NOT_COMPUTED,
            f"The victims are what Kubernetes' reprieve finds; {casualties.n_sets:,} sets of pods are too many to"
            f" compare (at most {MAX_SETS:,}).",
        )
    better = casualties.least(chosen.loss)
    if better is not None:
        said = f"Evicting {_names(better.victims)} on {better.node} would lose less than {_names(chosen.victims)}."
        why = "reprieve"
        place = next(item for item in casualties.asked.places if item.node.name == better.node)
        if casualties.asked.verdict(place, without=better.victims) is not None:
            why, said = "nominatedRoom", f"{said} The room there counts as a nominated pod's."
        return _casualty(LEAVES, said, why, better.document())
    n_sets = f"{casualties.n_sets:,} compared"
    said = f"No set of lower pods on any node loses less than {_names(chosen.victims)} ({n_sets})."
    return _casualty(HOLDS, said, "budgets" if chosen.loss[0] else "", chosen.document())


def _no_victims(
    cycle: Mapping[str, Any], casualties: Casualties, asked: Feasibility, preempts: bool
) -> PropertyVerdict:
    """No pod was evicted: none could be, or Kubernetes does not want to."""
    pod = asked.pod
    if pod.required_affinity and casualties.n_sets > MAX_SETS:
        said = f"{casualties.n_sets:,} sets of pods are too many to compare (at most {MAX_SETS:,})."
        return _casualty(NOT_COMPUTED, said)
    found = _some_room(casualties, asked)
    if found is None:
        return _casualty(HOLDS, "Evicting lower pods would not make room on any node.")
    names = f"{_names(found.victims)} on {found.node}"
    if not preempts:
        return _casualty(LEAVES, f"Evicting {names} would make room.", "noPreemption", found.document())
    if pod.preemption_policy == "Never":
        said = f"Evicting {names} would make room; its preemptionPolicy is Never."
        return _casualty(LEAVES, said, "preemptionPolicy", found.document())
    place = next((item for item in asked.places if item.node.name == pod.nominated_node_name), None)
    if place is not None and any(
        other.priority < pod.priority
        and other.is_terminating
        and other.disruption_target_reason == PREEMPTED_BY_SCHEDULER
        for other in place.pods
    ):
        said = f"Evicting {names} would make room; victims on {place.node.name} are still terminating."
        return _casualty(LEAVES, said, "terminating", found.document())
    verdict = (cycle["filter"] or {}).get(found.node)
    if verdict is None or verdict["code"] != "Unschedulable":
        said = f"Evicting {names} would make room; {found.node} was not tried."
        return _casualty(LEAVES, said, "unresolvable", found.document())
    at = next(item for item in asked.places if item.node.name == found.node)
    if casualties.reprieved(at) is None:
        counted = asked.verdict(at, without=found.victims) is not None
        said = f"Evicting {names} would make room" + (
            "; it counts as a nominated pod's." if counted else ", though not evicting all lower pods there."
        )
        return _casualty(LEAVES, said, "nominatedRoom" if counted else "reprieve", found.document())
    said = f"No pod was evicted, and evicting {names} would make room."
    return _casualty(FAILS, said, counterexample=found.document())


def _some_room(casualties: Casualties, asked: Feasibility) -> Candidate | None:
    """Some set that makes room, one Kubernetes would find first."""
    for place in asked.places:
        found = casualties.reprieved(place)
        if found is not None:
            return found
    return casualties.least(None)


def _start(pod: Pod) -> int:
    return NEVER_STARTED if pod.start_ns is None else pod.start_ns


def _importance(pod: Pod) -> tuple[int, int]:
    return -pod.priority, _start(pod)


def _names(pods: Sequence[Pod]) -> str:
    return ", ".join(pod.key for pod in pods)


# ---- the report


@dataclass(frozen=True, slots=True)
class CheckedCycle:
    """One cycle; a property that has nothing to say of it has no verdict."""

    number: int
    pod: str
    outcome: str
    counts: Mapping[str, int]
    """`possible`, `feasible` and `viable` nodes."""
    verdicts: tuple[PropertyVerdict, ...]

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "cycle": self.number,
            "pod": self.pod,
            "outcome": self.outcome,
            **self.counts,
            "verdicts": [verdict.document() for verdict in self.verdicts],
        }


@dataclass(slots=True)
class ModelReport:
    """All cycles of a run."""

    cycles: list[CheckedCycle] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing fails; what Kubernetes does on purpose is no failure."""
        return not any(verdict.status == FAILS for cycle in self.cycles for verdict in cycle.verdicts)

    def counts(self) -> dict[str, dict[str, int]]:
        """Property -> status -> cycles."""
        found = {name: dict.fromkeys(STATUSES, 0) for name in PROPERTIES}
        for cycle in self.cycles:
            for verdict in cycle.verdicts:
                found[verdict.property][verdict.status] += 1
        return found

    def with_status(self, status: str) -> list[tuple[CheckedCycle, PropertyVerdict]]:
        """Verdicts of one kind, in order of cycles."""
        return [(cycle, item) for cycle in self.cycles for item in cycle.verdicts if item.status == status]

    def departures(self) -> list[dict[str, Any]]:
        """Where Kubernetes left the model: each kind with its sentence, how often, and its first cycle."""
        found: dict[str, dict[str, Any]] = {}
        for cycle, verdict in self.with_status(LEAVES):
            entry = found.setdefault(
                verdict.departure,
                {
                    "departure": verdict.departure,
                    "property": verdict.property,
                    "why": DEPARTURES[verdict.departure],
                    "count": 0,
                    "first": {"cycle": cycle.number, "sentence": verdict.sentence},
                },
            )
            entry["count"] += 1
        return list(found.values())

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        n_cycles = len(self.cycles)
        if not n_cycles:
            return "No cycle was run, so there is nothing to check."
        failing = sorted({cycle.number for cycle, _ in self.with_status(FAILS)})
        of = "the only cycle" if n_cycles == 1 else f"all {n_cycles:,} cycles"
        if failing:
            which = "cycle" if len(failing) == 1 else "cycles"
            numbers = ", ".join(map(str, failing[:5])) + (" and others" if len(failing) > 5 else "")
            return f"The model is violated in {len(failing):,} of {n_cycles:,} cycles ({which} {numbers})."
        leaving = {cycle.number for cycle, _ in self.with_status(LEAVES)}
        if not leaving:
            return f"The model holds in {of}."
        if len(leaving) == n_cycles:
            return f"Kubernetes leaves the model on purpose in {of}; nothing is violated."
        return (
            f"The model holds in {n_cycles - len(leaving):,} of {n_cycles:,} cycles;"
            f" in {len(leaving):,} Kubernetes leaves it on purpose."
        )

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "status": "holds" if self.holds else "fails",
            "sentence": self.sentence,
            "counts": self.counts(),
            "departures": self.departures(),
            "violations": [
                {"cycle": cycle.number, "pod": cycle.pod, **verdict.document()}
                for cycle, verdict in self.with_status(FAILS)
            ],
            "cycles": [cycle.document() for cycle in self.cycles],
        }


# ---- the run

MAX_OBJECTS = 3000
"""Nodes and pods on them, up to which a cycle is evaluated anew; above, only its order is checked."""


class Checker:
    """Looks at a simulation before and after each cycle."""

    def __init__(self, *, max_objects: int = MAX_OBJECTS) -> None:
        self.report = ModelReport()
        self._max_objects = max_objects
        self._before: Moment | None = None

    def before_cycle(self, simulation: Simulation) -> None:
        """Take down the cluster as the cycle finds it."""
        self._before = Moment.of(simulation, self._max_objects)

    def after_cycle(self, simulation: Simulation) -> None:
        """Judge what was decided."""
        moment, self._before = self._before, None
        scheduler = simulation.scheduler
        if moment is None or scheduler.cycle == moment.cycle:
            return
        trace = next(item for item in reversed(scheduler.traces) if item.number == scheduler.cycle)
        self.report.cycles.append(self._judge(simulation, moment, trace))

    def _judge(self, simulation: Simulation, moment: Moment, trace: CycleTrace) -> CheckedCycle:
        scheduler = simulation.scheduler
        framework = scheduler.profiles[trace.profile]
        verdicts = [check_order(trace.uid, moment, framework.queue_sort.name)]
        taken = moment.pod(trace.uid)
        cycle = trace.explain()
        if taken is not None:
            if moment.places is None:
                said = (
                    f"{moment.n_objects:,} nodes and pods are too many to be evaluated one by one (at most"
                    f" {self._max_objects:,})."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
                if not cycle["node"] and not cycle["error"]:
                    verdicts.append(PropertyVerdict(CASUALTY, NOT_COMPUTED, said))
            elif scheduler.cycle > moment.cycle + 1:
                # What the members before this one took is not in the moment.
                said = (
                    "The members of a pod group are placed one after the other before any of them is bound;"
                    " the model looks at single pods."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            elif not trace.is_full:
                said = f"The cycle ended in an error: {cycle['error']}"
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            else:
                plan = next(item for item in scheduler.loaded.plans if item.scheduler_name == trace.profile)
                rules = Rules.of((plugin.name for plugin in framework.filter), plan.args)
                deduced = scheduler.cache.snapshot().matching.default_selectors.of(taken.pod)
                asked = Feasibility(taken.pod, moment, rules, deduced)
                verdicts.append(check_placement(cycle, moment, asked, plan.args))
                preempts = any(plugin.name == "DefaultPreemption" for plugin in framework.post_filter)
                casualty = check_casualty(cycle, moment, asked, preempts)
                verdicts += [casualty] if casualty is not None else []
        counts = {"possible": trace.n_nodes, "feasible": trace.n_feasible, "viable": trace.n_viable}
        return CheckedCycle(trace.number, trace.pod, trace.outcome, counts, tuple(verdicts))
