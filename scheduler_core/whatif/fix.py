"""`fix`: why pods wait, and what places them: of one pod, of a workload, of all that is pending.

One search (`fix_search`) for pods that ask for the same serves all three, so that they cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from scheduler_core.errors import CannotAnswer, InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.fork import Fork, Report, silent
from scheduler_core.objects.defaults import PriorityClass, priority_class_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.prices import PriceList, price_list_from, shipped_prices
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import workloads
from scheduler_core.whatif.backlog import NodeChoice, cheapest_nodes, kinds_for, names_of_nodes
from scheduler_core.whatif.fix_search import (
    NODES_WHO,
    Search,
    Trial,
    bound_words,
    cost_of,
    limits_of,
    make,
    nodes_words,
)
from scheduler_core.whatif.fixes import (
    KEEPS,
    PENDING,
    POD,
    WORKLOAD,
    Fix,
    FixAnswer,
    Stage,
    counted,
    draft,
    harmed,
    price_words,
)
from scheduler_core.whatif.patches import patch_of

MOST_WORKLOADS: Final = 40
"""Workloads that are looked at, those with the most waiting pods first."""
MOST_LUCK: Final = 6_000
"""Decisions that the other seeds of the combination may cost."""
MOST_DECISIONS: Final = 16_000
"""Decisions that looking for fixes of all that is pending may cost: a count, so that each machine answers the same."""


# ---- the question


class NotPending(CannotAnswer):
    """The pod is not there, or waits for no cycle here; the message says which."""


def pending_pod(simulation: Simulation, namespace: str, name: str) -> Pod:
    """A pod that waits for a scheduler of this cluster.

    Raises
    ------
    NotPending
    """
    pod = _waiting_pod(simulation, namespace, name)
    if pod.scheduler_name not in simulation.scheduler.profiles:
        raise NotPending(f"{pod.key} waits for the scheduler {pod.scheduler_name}, which is not here.")
    return pod


def _waiting_pod(simulation: Simulation, namespace: str, name: str) -> Pod:
    pod = simulation.world.pod(namespace, name)
    if pod is None:
        raise NotPending(f"There is no pod {namespace}/{name}.")
    if pod.node_name and not workloads.passes_by(simulation, pod):
        raise NotPending(f"{pod.key} runs on {pod.node_name} already.")
    if simulation.scheduler.cache.is_assumed(pod.uid):
        raise NotPending(f"{pod.key} has its node already and is being bound.")
    return pod


def fix_question(document: Mapping[str, Any]) -> dict[str, Any]:
    """The normal form of a question: `pod` or `workload` (neither: all that is pending), and `prices`.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name == "prices":
            found[name] = price_list_from(value, "prices").document()
        elif name not in (POD, WORKLOAD):
            raise InvalidObject(str(name), None, "says nothing about fix, which takes pod, workload, prices")
        elif value:
            if not isinstance(value, str) or len(value) > 700 or value.count("/") != 1:
                raise InvalidObject(name, value, "must be NAMESPACE/NAME" if name == POD else _WORKLOAD_FORM)
            if name == WORKLOAD and value.count(" ") != 1:
                raise InvalidObject(name, value, _WORKLOAD_FORM)
            found[name] = value
    if POD in found and WORKLOAD in found:
        raise InvalidObject(POD, found[POD], "give a workload or a pod, not both")
    return found


_WORKLOAD_FORM: Final = "must be KIND NAMESPACE/NAME"


def fix(
    simulation: Simulation,
    document: Mapping[str, Any],
    *,
    transport: Transport = no_transport,
    report: Report = silent,
    partly: Callable[[FixAnswer], object] = lambda answer: None,
) -> FixAnswer:
    """Say why pods wait, and what places them.

    Parameters
    ----------
    simulation : Simulation
        Read, never changed.
    document : mapping
        As `fix_question` reads it.
    partly : callable
        Given what is known of several workloads after each of them.

    Raises
    ------
    InvalidObject
        The question cannot be read, or no pod of the workload waits.
    NotPending
    """
    asked = fix_question(document)
    prices = price_list_from(asked["prices"], "prices") if "prices" in asked else shipped_prices()
    report(0, 0, "copying the cluster")
    fork = Fork(simulation.scheduler, transport=transport, seed=0)
    counsel = _Counsel(simulation, fork, prices, report, partly)
    if POD in asked:
        namespace, _, name = asked[POD].partition("/")
        pod = _waiting_pod(simulation, namespace, name)
        found = counsel.of(workloads.alike_pending(simulation, pod), pod).answer
        return replace(found, subject=POD, name=pod.key)
    pods = workloads.waiting_pods(simulation)
    if WORKLOAD not in asked:
        return counsel.of_all(pods, PENDING, "")
    named = asked[WORKLOAD]
    own = [pod for pod in pods if named in (counsel.workload_of(pod), f"Pod {pod.key}")]
    if not own:
        raise InvalidObject(WORKLOAD, named, "has no pending pod")
    if len(workloads.classes_of(own)) == 1:
        return replace(counsel.of(tuple(own)).answer, subject=WORKLOAD, name=named)
    return counsel.of_all(own, WORKLOAD, named)


@dataclass(frozen=True, slots=True)
class _Found:
    """The answer about pods that ask for the same, and the change that its best fix is."""

    pods: workloads.Alike
    answer: FixAnswer
    best: Trial | None


@dataclass(frozen=True, eq=False)
class _Counsel:
    """Answers about one cluster."""

    simulation: Simulation
    fork: Fork
    prices: PriceList
    report: Report
    partly: Callable[[FixAnswer], object]

    @cached_property
    def classes(self) -> list[PriorityClass]:
        """The cluster's priority classes."""
        stored = self.simulation.world.all("PriorityClass")
        return [priority_class_from(one.manifest) for one in stored]

    def workload_of(self, pod: Pod) -> str:
        kind, name = workloads.owner_of(self.simulation, pod)
        return f"{kind} {pod.namespace}/{name}"

    def of(self, alike: workloads.Alike, pod: Pod | None = None) -> _Found:
        """Of pods that ask for the same; the first of them is tried where none is named."""
        # The first, for each of them: what is said of a workload is what is said of each of its pods.
        pod = alike[0]
        with self.fork.changes():
            left, words = self._left_of_group(alike)
            search = Search(
                self.fork,
                left,
                template=workloads.spec_of_owner(self.simulation, pod),
                owner=workloads.top_owner(self.simulation, pod),
                priority_classes=self.classes,
                prices=self.prices,
                limits=limits_of(self.simulation.scheduler),
                simulation=self.simulation,
                report=self.report,
            )
            answer = search.answer()
        if words:
            keys = tuple(one.key for one in alike)
            answer = replace(answer, headline=f"{words} {answer.headline}", pods=keys)
        workload = "" if pod.meta.controller is None else self.workload_of(pod)
        answer = replace(answer, name=workload or f"Pod {pod.key}", workload=workload)
        return _Found(alike, answer, search.best)

    def _members(self, pod: Pod) -> tuple[list[Pod], int]:
        """The pending members of a pod's gang, and how many more it needs before any is tried."""
        fork, key = self.fork, (pod.namespace, pod.scheduling_group)
        group = fork.cache.listers.get("PodGroup", *key)
        if group is None or not fork.scheduler.pod_groups.are_scheduled or not group.min_count:
            return [], 0
        waiting, running = (
            [one for one in pods if (one.namespace, one.scheduling_group) == key]
            for pods in (workloads.waiting_pods(self.simulation), fork.cache.pods_in_order())
        )
        return waiting, max(0, group.min_count - len(waiting) - len(running))

    def _left_of_group(self, alike: workloads.Alike) -> tuple[workloads.Alike, str]:
        """Those of a gang's members that find no node once the others have theirs, which stay on the copy, and why."""
        fork = self.fork
        members, lacking = self._members(alike[0])
        begin = f"The pods of the group {alike[0].scheduling_group} start together"
        if lacking:
            return alike, f"{begin}, and {lacking:,} more of them must be there first."
        mark = fork.mark()
        left = [one for one in members if fork.place(one, preempt=False).node is None]
        if own := tuple(one for one in alike if one in left):
            return own, f"{begin}, and {len(members) - len(left)} of {len(members)} find a node."
        fork.back_to(mark)
        return alike, f"{begin}, and {counted(len(left), 'pod')} of it find no node." if left else ""

    # ---- all that is pending

    def of_all(self, pods: Sequence[Pod], subject: str, name: str) -> FixAnswer:
        """Of several workloads: each by itself, and the best fixes of all together."""
        fork, began = self.fork, self.fork.n_decisions
        classes = sorted(workloads.classes_of(pods), key=lambda alike: -len(alike))
        parts: list[_Found] = []
        limit = ""
        for number, alike in enumerate(classes):
            if number == MOST_WORKLOADS or fork.n_decisions - began >= MOST_DECISIONS:
                n_left = sum(map(len, classes[number:]))
                what = (
                    f"{MOST_WORKLOADS} workloads"
                    if number == MOST_WORKLOADS
                    else f"{MOST_DECISIONS:,} decisions"
                )
                limit = f"{n_left:,} pods were not looked at: the limit of {what} was reached."
                break
            self.report(number, len(classes), alike[0].key)
            parts.append(self.of(alike))
            words = f"{counted(len(pods), 'pod')} wait: {len(parts)} of {counted(len(classes), 'group')} looked at"
            keys = tuple(pod.key for pod in pods)
            found = tuple(part.answer for part in parts)
            self.partly(FixAnswer(subject, name, "", keys, f"{words} so far.", workloads=found))
        parts.sort(key=lambda part: _order_of(part.answer))
        # A gated pod is not the scheduler's yet: nothing is bought for it.
        groups = {(pod.namespace, pod.scheduling_group): pod for pod in pods}
        lacking = {group for group, pod in groups.items() if self._members(pod)[1]}
        few = {pod.uid for pod in pods if (pod.namespace, pod.scheduling_group) in lacking}
        ready = [pod for pod in pods if not pod.scheduling_gates and pod.uid not in few]
        best, stages, bound = self._together(
            ready,
            [part for part in parts if not part.pods[0].scheduling_gates and part.pods[0].uid not in few],
        )
        reasons = len({part.answer.groups[:1] or part.answer.headline for part in parts})
        are = "is" if len(pods) == 1 else "are"
        held = workloads.left_out_words(sum(bool(pod.scheduling_gates) for pod in pods))
        held += f"; {counted(len(few), 'pod')} must wait for more of their group" if few else ""
        headline = f"{counted(len(pods), 'pod')} {are} pending, for {counted(reasons, 'reason')}{held}."
        refused = tuple(workloads.refused_pods(self.simulation)) if subject == PENDING else ()
        return FixAnswer(
            subject,
            name,
            "",
            tuple(pod.key for pod in pods),
            headline if pods else " ".join(("No pod is pending.", *refused[:1])),
            causes=refused,
            n_nodes=len(fork.snapshot.order),
            fixes=() if best is None else (best,),
            best=best,
            bound=bound,
            bound_words=bound_words(best, bound),
            workloads=tuple(part.answer for part in parts),
            stages=stages,
            tried=sum(part.answer.tried for part in parts),
            untried=len(classes) - len(parts),
            limit=limit,
            decisions=fork.n_decisions - began,
        )

    def _together(
        self, pods: Sequence[Pod], parts: Sequence[_Found]
    ) -> tuple[Fix | None, tuple[Stage, ...], float | None]:
        """The best fixes of all workloads at once, and what is to be bought then; proved by one run."""
        fork = self.fork
        free = _apart(part for part in parts if part.best is not None and _is_free(part.best.fix))
        edit_of = {pod.uid: part.best for part in free if part.best is not None for pod in part.pods}
        changes = [part.best for part in free if part.best is not None]
        stages = [Stage("Now", len(pods), "no cost", "nothing moves")]
        with fork.changes():
            n_left = len(pods) - self._n_placed([pod for pod in pods if pod.uid not in edit_of])
            for part in free:
                if (change := part.best) is not None:
                    make(fork, change)
                    n_left -= self._n_placed([change.of(pod) for pod in part.pods])
                    self._place_moved([change])
                    stages.append(Stage(change.fix.title, n_left, change.fix.price, change.fix.harm))
        landed, left = self._run(pods, changes, edit_of)
        nodes: list[NodeChoice] = []
        bound: float | None = None
        if left:
            with fork.changes():
                for change in changes:
                    make(fork, change)
                for pod, node in landed:
                    fork.put_pod(pod, node)
                kinds = {
                    (one.name, one.zone, one.price): one
                    for alike in workloads.classes_of(left)[:MOST_WORKLOADS]
                    for one, _ in kinds_for(fork, alike[0], self.prices, len(alike))
                }
                if kinds:
                    plan = cheapest_nodes(fork, left, list(kinds.values()), most=2_000, report=self.report)
                    nodes, bound = plan.nodes, plan.bound
        cost = cost_of(nodes)
        if nodes:
            title = f"Add {nodes_words(nodes)}"
            named = zip(names_of_nodes(fork, nodes), nodes, strict=True)
            new = tuple(one.node(name) for name, one in named)
            write = {"write": [dict(node.manifest) for node in new]}
            patch = patch_of(write, lambda kind, namespace, name: None)
            fix = draft("add-node", title=title, cost=cost, who=NODES_WHO, change=write, patch=patch)
            bought = Trial(fix, nodes=new)
            changes = [*changes, bought]
            landed, left = self._run(pods, changes, edit_of)
            stages.append(Stage(title, len(left), price_words(cost), "nothing moves"))
        if not changes:
            return None, tuple(stages), None
        whole = draft(
            "together",
            title=_sum_words([change.fix for change in changes], len(nodes)),
            cost=cost,
            price=price_words(cost),
            decides=max((change.fix.decides for change in changes), key=("owner", "nodes", "others").index),
            who="; ".join(dict.fromkeys(change.fix.who for change in changes if change.fix.who)),
            change=_merged([change.fix.change for change in changes]),
            patch="\n".join(change.fix.patch for change in changes if change.fix.patch),
            placed=len(landed),
            of=len(pods),
            lands={pod.key: node for pod, node in landed},
            note=nodes_words(nodes) if nodes else "",
        )
        whole = harmed(whole, tuple(one for change in changes for one in change.fix.displaced))
        seeds, holds = fork.luck(
            len(pods), lambda: len(self._run(pods, changes, edit_of)[0]) >= len(landed), MOST_LUCK
        )
        return replace(whole, seeds=seeds, holds=holds), tuple(stages), bound if cost is not None else None

    def _run(
        self, pods: Sequence[Pod], changes: Sequence[Trial], edit_of: Mapping[str, Trial]
    ) -> tuple[list[tuple[Pod, str]], list[Pod]]:
        """Decide all pods in their order with the changes made: where each lands, and who finds no node."""
        fork, landed, left = self.fork, list[tuple[Pod, str]](), list[Pod]()
        made = {id(change) for change in changes}
        with fork.changes():
            for change in changes:
                make(fork, change)
            for pod in pods:
                mine = edit_of.get(pod.uid)
                edited = mine.of(pod) if mine is not None and id(mine) in made else pod
                if edited.scheduler_name not in fork.scheduler.profiles:
                    left.append(edited)
                    continue
                node = fork.place(edited, preempt=False).node
                if node is None:
                    left.append(edited)
                else:
                    landed.append((edited, node))
            self._place_moved(changes)
        return landed, left

    def _n_placed(self, pods: Sequence[Pod]) -> int:
        """How many of the pods find a node, one after the other."""
        fork = self.fork
        known = (pod for pod in pods if pod.scheduler_name in fork.scheduler.profiles)
        return sum(fork.place(pod, preempt=False).node is not None for pod in known)

    def _place_moved(self, changes: Sequence[Trial]) -> None:
        moves = (change for change in changes if change.fix.what == "move-pods")
        self._n_placed([self.fork.anew(pod) for change in moves for pod in change.gone])


def _apart(parts: Iterable[_Found]) -> list[_Found]:
    """Those whose fixes can be made together: a pod moves once."""
    gone: set[str] = set()
    found = []
    for part in parts:
        going = {pod.uid for pod in part.best.gone} if part.best is not None else set()
        if gone.isdisjoint(going):
            gone |= going
            found.append(part)
    return found


def _is_free(fix: Fix) -> bool:
    return fix.kind == KEEPS and fix.cost == 0 and not fix.lost


def _order_of(answer: FixAnswer) -> tuple[Any, ...]:
    """Workloads in the order in which they are fixed: what costs nothing first."""
    best = answer.best
    if best is None:
        return (2, 0, 0.0, -len(answer.pods), answer.name)
    return (int(not _is_free(best)), best.restarts, best.cost or 0.0, -len(answer.pods), answer.name)


def _merged(changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for change in changes:
        for name, items in change.items():
            found.setdefault(name, []).extend(items)
    return found


def _sum_words(fixes: Sequence[Fix], n_nodes: int) -> str:
    """`Correct one selector, move 6 pods and add 13 nodes`."""
    words: list[str] = []
    by_what: dict[str, list[Fix]] = {}
    for one in fixes:
        by_what.setdefault("correct" if one.what.startswith("correct-") else one.what, []).append(one)
    for what, alike in by_what.items():
        if what == "add-node" and n_nodes:
            words.append(f"add {counted(n_nodes, 'node')}")
        elif what == "move-pods":
            words.append(f"move {counted(sum(len(one.displaced) for one in alike), 'pod')}")
        elif len(alike) == 1:
            words.append(alike[0].title[:1].lower() + alike[0].title[1:])
        else:
            words.append(f"{_PLURALS.get(what, 'make {} edits').format(len(alike))}")
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return text[:1].upper() + text[1:]


_PLURALS: Final[Mapping[str, str]] = {
    "correct": "correct {} mistakes",
    "label-node": "label {} nodes",
    "uncordon": "uncordon {} nodes",
    "create-claim": "create claims of {} workloads",
}
