"""Expectations: what must hold of a run, each answered in words that name the cycle to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from scheduler_core.errors import InvalidObject
from scheduler_core.fork import Fork
from scheduler_core.framework.record import PREEMPTING, UNSCHEDULABLE, sentence
from scheduler_core.objects.duration import format_duration
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.form import did_you_mean
from scheduler_core.scenario.mock_extender import carries
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.record import Finding, PodFacts, budget_violations
from scheduler_core.scenario.run import run
from scheduler_core.scenario.types import (
    FITTING,
    Bounds,
    Draining,
    Expectation,
    Fitting,
    Survival,
    UpgradeSelection,
)
from scheduler_core.scenario.upgrade import preview
from scheduler_core.whatif import take_away
from scheduler_core.whatif.headroom import headroom
from scheduler_core.whatif.judge import UNKNOWN, share_of_agreement
from scheduler_core.whatif.take_away import names_of, taken_away_verdict, without_label
from scheduler_core.whatif.workloads import template_of

ZONE = "topology.kubernetes.io/zone"
_KINDS = dict(zip(FITTING, ("Deployment", "StatefulSet", "Pod"), strict=True))


def survives(run: ScenarioRun, wanted: Survival, path: str) -> Finding:
    """Whether each loss leaves no more pods without a node than allowed."""
    fork = Fork(run.simulation.scheduler, transport=run.scenario.transport(), seed=0)
    labels = [(ZONE, "zone")] if wanted.any_zone else []
    labels += [(wanted.any_of, wanted.any_of)] if wanted.any_of else []
    losses: list[tuple[str, list[take_away.TakenAway]]] = []
    if wanted.any_one_node:
        losses.append(("node", list(take_away.lose_any(fork))))
    losses += [(noun, [answer for _, answer in take_away.lose_each(fork, label)]) for label, noun in labels]
    for noun, answers in losses:
        if not answers:
            label = {noun: label for label, noun in labels}.get(noun)
            missing = f"no node carries {label}" if label else "there is no node"
            return Finding(path, False, f"A loss was to be survived, but {missing}.")
    total = len(fork.nodes_in_order())
    bare = [without_label(label, take_away.nodes_without(fork, label), total) for label, _ in labels]
    told = "".join(f" {said}" for said in bare if said)
    noun, worst = max(
        ((noun, answer) for noun, answers in losses for answer in answers),
        key=lambda item: item[1].count(take_away.PENDING),
    )
    found = worst.of(take_away.PENDING)
    pending, allowed, named = len(found), wanted.max_pending, _lost_words(noun, worst)
    if pending <= allowed:
        counts = " and any of ".join(f"{len(answers)} by {noun}" for noun, answers in losses)
        most = f"; {pending} pods find no node at most, without {named}" if pending else ""
        return Finding(path, True, f"any of {counts} can be lost{most}{'.' if told else ''}{told}")
    return Finding(
        path,
        False,
        f"The loss of {named} leaves {pending} pod{'' if pending == 1 else 's'} without a node, more than {allowed}:"
        f" {names_of(found)}. {found[0].pod}: {found[0].reason}{told}",
    )


def _lost_words(noun: str, answer: take_away.TakenAway) -> str:
    """What was lost: a node by its name, others by the first of their nodes."""
    if noun == "node":
        return f"node {answer.nodes[0]}"
    more = f" and {len(answer.nodes) - 1} more" if len(answer.nodes) > 1 else ""
    return f"the {noun} of {answer.nodes[0]}{more}"


def fits(run: ScenarioRun, wanted: Fitting, path: str) -> Finding:
    """Whether so many more pods find a node.

    Raises
    ------
    ScenarioError
        The workload is not there, or its template makes no pod.
    """
    field, kind, key = next(
        (name, _KINDS[name], value)
        for name, value in zip(FITTING, (wanted.deployment, wanted.stateful_set, wanted.pod), strict=True)
        if value
    )
    namespace, _, name = key.partition("/")
    try:
        template = template_of(run.simulation, kind, namespace, name)
    except KeyError as error:
        raise ScenarioError([Problem(f"{path}.fits.{field}", str(error.args[0]))]) from None
    except InvalidObject as error:
        raise ScenarioError(
            [Problem(f"{path}.fits.{field}: {error.path}", error.reason, error.value)]
        ) from None
    if template.scheduler_name not in run.simulation.scheduler.profiles:
        said = f"waits for the scheduler {template.scheduler_name}, which is not here"
        return Finding(path, False, f"{kind} {key} {said}.")
    fork = Fork(run.simulation.scheduler, transport=run.scenario.transport(), seed=0)
    found = headroom(fork, template, max_copies=wanted.at_least)
    if found.replicas >= wanted.at_least:
        return Finding(path, True, f"{wanted.at_least} more of {kind} {key} fit")
    why = f" The next one: {found.stop}" if found.stop else ""
    return Finding(
        path,
        False,
        f"{wanted.at_least} more of {kind} {key} were to fit, but {found.replicas} do.{why}",
    )


def drains(run: ScenarioRun, wanted: Draining, path: str) -> Finding:
    """Whether nodes can be drained, in the time there is.

    Raises
    ------
    ScenarioError
        A node is not there.
    """
    fork = Fork(run.simulation.scheduler, transport=run.scenario.transport(), seed=0)
    try:
        answer = take_away.taken_away(fork, take_away.DRAIN, wanted.nodes)
    except take_away.UnknownNodes as error:
        known = run.simulation.world.node
        unknown = next(place for place, name in enumerate(wanted.nodes) if known(name) is None)
        raise ScenarioError([Problem(f"{path}.drain.nodes[{unknown}]", str(error))]) from None
    named = ", ".join(wanted.nodes)
    held = answer.of(take_away.BLOCKED)
    if held or answer.of(take_away.LOST) or answer.count(take_away.PENDING) > wanted.max_pending:
        first = next((item.reason for item in (*answer.of(take_away.PENDING), *held) if item.reason), "")
        return Finding(
            path, False, f"{named} cannot be drained: {taken_away_verdict(answer)} {first}".rstrip()
        )
    if wanted.within_ns is None:
        return Finding(path, True, f"{named} can be drained: {taken_away_verdict(answer)}")
    done = take_away.drain_in_time(
        run.simulation, wanted.nodes, wanted.within_ns, transport=run.scenario.transport()
    )
    limit = format_duration(wanted.within_ns)
    if not done.left and len(done.waiting) <= wanted.max_pending:
        return Finding(path, True, f"{named} can be drained in {format_duration(done.took_ns)}")
    if done.left:
        first_left = done.left[0]
        more = f" and {len(done.left) - 1} more" if len(done.left) > 1 else ""
        why = done.refused.get(first_left, "It is ending.")
        said = f"after that time {first_left}{more} stays there. {why}"
        return Finding(path, False, f"{named} cannot be drained within {limit}: {said}")
    return Finding(
        path,
        False,
        f"{named} cannot be drained within {limit}: {', '.join(done.waiting[:3])} has no node yet.",
    )


def check(expectations: Iterable[Expectation], run: ScenarioRun, path: str) -> list[Finding]:
    """Look whether each expectation holds at this moment.

    Raises
    ------
    ScenarioError
        An expectation names a pod that never was, or a cycle that never came.
    """
    checker = _Checker(run)
    return [checker.check(item, f"{path}[{index}]") for index, item in enumerate(expectations)]


run_scenario: Final = partial(run, check=check)
"""Run a scenario from its beginning and check its expectations: `run.run`, which says what may be given besides."""


class _Checker:
    def __init__(self, run: ScenarioRun) -> None:
        self.run = run
        self._pods: dict[str, PodFacts] | None = None
        self._metrics: dict[str, float] | None = None

    @property
    def pods(self) -> dict[str, PodFacts]:
        if self._pods is None:
            self._pods = self.run.pods()
        return self._pods

    def check(self, item: Expectation, path: str) -> Finding:
        if item.pod:
            return self._pod(item, path)
        if item.pods is not None:
            return self._selection(item, path)
        if item.cycle is not None:
            return self._cycle(item, item.cycle, path)
        if item.cycles is not None:
            n_cycles = len(self.run.cycles)
            return self._number(path, "the number of cycles", n_cycles, item.cycles.problem_of(n_cycles))
        if item.order:
            return self._order(item, path)
        if item.budgets:
            return self._budgets(path)
        if item.upgrade is not None:
            return self._upgrade(item, item.upgrade, path)
        if item.survives is not None:
            return survives(self.run, item.survives, path)
        if item.fits is not None:
            return fits(self.run, item.fits, path)
        if item.drain is not None:
            return drains(self.run, item.drain, path)
        if item.agreement is not None:
            return self._agreement(item.agreement, path)
        return self._metric(item, path)

    def _agreement(self, bounds: Bounds, path: str) -> Finding:
        verdicts = [found.verdict for found in self.run.verdicts()]
        share = share_of_agreement(verdicts)
        if share is None:
            return Finding(path, False, "no other scheduler decided anything that could be judged")
        n_judged = sum(verdict != UNKNOWN for verdict in verdicts)
        told = f"the agreement with other schedulers, in per cent of {n_judged:,} decisions,"
        return self._number(path, told, round(share, 4), bounds.problem_of(round(share, 4)))

    # ---- one pod

    def _known(self, pod: str, path: str) -> PodFacts:
        found = self.pods.get(pod)
        if found is None:
            raise ScenarioError([Problem(path, f"there never was a pod {pod}{_nearest(pod, self.pods)}")])
        return found

    def _pod(self, item: Expectation, path: str) -> Finding:
        facts = self._known(item.pod, f"{path}.pod")
        wrong, wanted = self._wrong_with(item, facts)
        if wrong is None:
            return Finding(path, True, f"{facts.key} is {wanted.removeprefix('to be ')}", facts.cycle or None)
        said = f"{facts.key} {wanted} was expected, but {wrong}.{self._why(facts)}"
        return Finding(path, False, said, facts.cycle or None)

    def _wrong_with(self, item: Expectation, facts: PodFacts) -> tuple[str | None, str]:
        """What does not hold (None when all does), and what was expected, in words."""
        node_labels = self._labels_of(facts.node)
        attempts = item.attempts.problem_of(facts.attempts) if item.attempts is not None else None
        where = _where(facts)
        carried = {key: node_labels.get(key, "(none)") for key in item.node_labels}
        labelled, off = item.node_labels, item.not_node_labels
        unlike = f"{where}, which carries {_words(carried)}" if facts.node else where
        last = (
            f'the last thing said was "{facts.message}"'
            if facts.message
            else f"{where}, and nothing was said"
        )
        is_off = not any(node_labels.get(key) == value for key, value in off.items())
        victims, evicted = _names(item.victims or ()), f"evicted for it were {_names(facts.victims)}"
        same_victims = sorted(item.victims or ()) == sorted(facts.victims)
        # Whether it is asked for, whether it holds, what was expected, and what is said where it does not hold.
        tests: list[tuple[object, bool, str, str]] = [
            (item.state, facts.state == item.state, f"to be {item.state}", where),
            (item.node, facts.node == item.node, f"on {item.node}", where),
            (item.node_in, facts.node in item.node_in, f"on one of {', '.join(item.node_in)}", where),
            (labelled, carries(node_labels, labelled), f"on a node labelled {_words(labelled)}", unlike),
            (off, is_off, f"off nodes labelled {_words(off)}", where),
            (item.reason, item.reason in facts.message, f'unschedulable because "{item.reason}"', last),
            (item.victims is not None, same_victims, f"with the victims {victims}", evicted),
            (item.nominated, facts.nominated == item.nominated, f"nominated to {item.nominated}", where),
            (item.attempts, not attempts, f"tried {_bound_words(item.attempts)}", f"the number of attempts {attempts}"),
        ]  # fmt: skip
        asked = [test[1:] for test in tests if test[0]]
        wrong = next((said for holds, _, said in asked if not holds), None)
        return wrong, " and ".join(words for _, words, _ in asked)

    def _labels_of(self, node: str) -> Mapping[str, str]:
        stored = self.run.simulation.world.get("Node", "", node) if node else None
        return {} if stored is None else stored.typed.labels

    def _why(self, facts: PodFacts) -> str:
        trace = self.run.cycle(facts.cycle) if facts.cycle else None
        return f" Cycle {facts.cycle}: {sentence(trace)}" if trace is not None else " It was never tried."

    # ---- several pods

    def _selection(self, item: Expectation, path: str) -> Finding:
        wanted = item.pods
        assert wanted is not None
        chosen = [
            facts
            for key, facts in sorted(self.pods.items())
            if carries(facts.labels, wanted.labels)
            and (not wanted.namespace or key.startswith(f"{wanted.namespace}/"))
        ]
        named = f"pods of {wanted.namespace or 'all namespaces'}"
        if wanted.labels:
            named = f"pods labelled {_words(wanted.labels)}"
        if not chosen and item.count is None:
            raise ScenarioError([Problem(f"{path}.pods", f"there never was one of the {named}")])
        answers = [(facts, *self._wrong_with(item, facts)) for facts in chosen]
        failing = [(facts, wrong, words) for facts, wrong, words in answers if wrong is not None]
        n_right = len(chosen) - len(failing)
        if item.count is not None:
            problem = item.count.problem_of(n_right)
            words = answers[0][2] if answers else ""
            cycle = failing[0][0].cycle or None if problem and failing else None
            said = f"{n_right} of {len(chosen)} {named} {words}".rstrip()
            if problem:
                said = f"The number of {named} {words} {problem}.".replace("  ", " ")
                if failing:
                    said += f" {failing[0][0].key}: {failing[0][1]}.{self._why(failing[0][0])}"
            return Finding(path, problem is None, said, cycle)
        if not failing:
            return Finding(
                path, True, f"all {len(chosen)} {named} are {answers[0][2].removeprefix('to be ')}"
            )
        facts, wrong, words = failing[0]
        said = f"All {len(chosen)} {named} were expected {words}, but {facts.key}: {wrong}"
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        return Finding(path, False, f"{said}{more}.{self._why(facts)}", facts.cycle or None)

    # ---- cycles

    def _cycle(self, item: Expectation, number: int, path: str) -> Finding:
        trace = self.run.cycle(number)
        if trace is None:
            n_cycles = len(self.run.cycles)
            raise ScenarioError(
                [Problem(f"{path}.cycle", f"there is no cycle {number}, the run had {n_cycles}")]
            )
        node = trace.node or trace.nominated_node or ""
        victims, wanted = sorted(trace.victims), item.victims or ()
        feasible = item.feasible.problem_of(trace.n_feasible) if item.feasible is not None else None
        was_tie, evicted = trace.tie is not None, f"its victims were {_names(victims)}"
        tests: list[tuple[object, bool, str]] = [
            (item.of, trace.pod == item.of, f"it is about {trace.pod}, not {item.of}"),
            (item.outcome, trace.outcome == item.outcome, f"it ended {trace.outcome}, not {item.outcome}"),
            (item.node, node == item.node, f"it chose {node or 'no node'}, not {item.node}"),
            (item.reason, item.reason in (trace.message or ""), f'nothing in it says "{item.reason}"'),
            (item.victims is not None, victims == sorted(wanted), f"{evicted}, not {_names(wanted)}"),
            (item.tie is False, not was_tie, "it hung on a draw among equals"),
            (item.tie, was_tie, "it did not hang on a draw among equals"),
            (item.feasible, not feasible, f"the number of feasible nodes {feasible}"),
        ]  # fmt: skip
        wrong = next((words for asked, holds, words in tests if asked and not holds), None)
        said = f"Cycle {number}: {sentence(trace)}"
        if wrong is None:
            return Finding(path, True, said, number)
        return Finding(path, False, f"Of cycle {number} something else was expected: {wrong}. {said}", number)

    # ---- the whole run

    def _order(self, item: Expectation, path: str) -> Finding:
        place: dict[str, int] = {}
        cycles: dict[str, int] = {}
        for index, placed in enumerate(self.run.placements):
            place.setdefault(placed.pod, index)
            cycles.setdefault(placed.pod, placed.cycle)
        for pod in item.order:
            facts = self._known(pod, f"{path}.order")
            if pod not in place:
                return Finding(path, False, f"{pod} never got a node.{self._why(facts)}", facts.cycle or None)
        for first, second in zip(item.order, item.order[1:], strict=False):
            if place[first] > place[second]:
                said = f"{first} was expected to get a node before {second}, but {second} got its in cycle"
                return Finding(
                    path, False, f"{said} {cycles[second]}, {first} in {cycles[first]}.", cycles[second]
                )
        return Finding(path, True, f"{' before '.join(item.order)}")

    def _budgets(self, path: str) -> Finding:
        for trace in self.run.cycles:
            number = budget_violations(trace)
            if number:
                noun = "eviction violates" if number == 1 else "evictions violate"
                said = f"No budget was to be violated, but in cycle {trace.number} {number} {noun} one."
                return Finding(path, False, f"{said} {sentence(trace)}", trace.number)
        return Finding(path, True, "no eviction violated a PodDisruptionBudget")

    def _upgrade(self, item: Expectation, wanted: UpgradeSelection, path: str) -> Finding:
        run = self.run
        found = preview(run.scenario, run.release, wanted.release, first_of_ties=run.first_of_ties)
        prefix = f"{wanted.namespace}/" if wanted.namespace else ""
        of_whom = f" of namespace {wanted.namespace}" if wanted.namespace else ""
        moved = [one for one in found.differences if one.ends_elsewhere and one.pod.startswith(prefix)]
        what = f"the number of pods{of_whom} that {wanted.release.title} leaves elsewhere"
        problem = (item.count or Bounds(at_most=0)).problem_of(len(moved))
        if problem is None:
            return Finding(path, True, f"{what} is {len(moved)}")
        first = moved[0] if moved else None
        causes = [cause.name for cause in found.causes if first in cause.differences]
        why = f" {first.pod}: {first.before} on {run.release.name}, then {first.after}" if first else ""
        because = f", because of {causes[0]}." if causes else ""
        return Finding(path, False, f"{what} {problem}.{why}{because}", first.cycle if first else None)

    def _metric(self, item: Expectation, path: str) -> Finding:
        if self._metrics is None:
            self._metrics = self.run.metrics()
        number = self._metrics[item.metric]
        assert item.count is not None
        problem = item.count.problem_of(number)
        cycle = None
        if problem is not None and item.metric == "pending":
            failed = [trace for trace in self.run.cycles if trace.outcome in (UNSCHEDULABLE, PREEMPTING)]
            cycle = failed[0].number if failed else None
        return self._number(path, item.metric, number, problem, cycle)

    def _number(
        self, path: str, name: str, number: float, problem: str | None, cycle: int | None = None
    ) -> Finding:
        if problem is None:
            return Finding(path, True, f"{name} is {number:g}")
        trace = self.run.cycle(cycle) if cycle is not None else None
        why = f" The first pod without a place: cycle {cycle}: {sentence(trace)}" if trace is not None else ""
        return Finding(path, False, f"{name} {problem}.{why}", cycle)


def _bound_words(bounds: Bounds | None) -> str:
    if bounds is None:
        return ""
    if bounds.exactly is not None:
        return f"{bounds.exactly:g} time{'' if bounds.exactly == 1 else 's'}"
    low = f"at least {bounds.at_least:g}" if bounds.at_least is not None else ""
    high = f"at most {bounds.at_most:g}" if bounds.at_most is not None else ""
    return f"{' and '.join(filter(None, (low, high)))} times"


_STATES = {
    "gone": "it is gone",
    "waiting": "it waits at Permit, holding {}",
    "binding": "it is assumed on {} until its Binding is heard of",
    "expired": "it was assumed on a node, and expired",
    "gated": "it is held back by a scheduling gate",
}


def _where(facts: PodFacts) -> str:
    if facts.state in _STATES:
        return _STATES[facts.state].format(facts.node)
    if facts.node:
        return f"it is on {facts.node}"
    return f"it is pending, nominated to {facts.nominated}" if facts.nominated else "it is pending"


def _words(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _names(pods: Iterable[str]) -> str:
    return ", ".join(pods) or "none"


def _nearest(pod: str, known: Mapping[str, object]) -> str:
    near = did_you_mean(pod, known)
    return near if "did you mean" in near else ""
