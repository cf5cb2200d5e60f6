"""A branch beside its parent, as both are now: who is elsewhere, and which decisions differ. Runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from playground.clusters.models import Cluster, Cycle, Node, Pod
from playground.scenarios.services.proof import readable
from scheduler_core.scenario.difference import Beside, beside, no_decision, partings, why

MOST_DECISIONS: Final = 20_000
"""Of each side, from the branch on."""
KINDS: Final = ("newly pending", "moved", "newly placed", "gone", "new")
"""In the order in which they are told."""


@dataclass(frozen=True, slots=True)
class PodDifference:
    """A pod that is not where it is in the parent.

    Attributes
    ----------
    kind
        One of `KINDS`.
    was, now
        Its node in the parent and in the branch; empty for none.
    cycle
        The branch's last decision about it; None if it made none.
    """

    kind: str
    namespace: str
    name: str
    was: str
    now: str
    cycle: int | None


@dataclass(frozen=True, slots=True)
class Parting:
    """One decision that differs.

    Attributes
    ----------
    place, n_places
        Which of how many, from 1.
    cycles
        The parent's and the branch's; None where one made no such decision.
    clusters
        Whose these cycles are: one from before the branch is the parent's.
    notes
        What became of the pod where there is no decision.
    nodes
        Candidates with their points and what rejects them, a side: those that either side chose first.
    """

    pair: Beside[Any]
    place: int
    n_places: int
    why: str
    cycles: tuple[Cycle | None, Cycle | None]
    clusters: tuple[Cluster, Cluster]
    notes: tuple[str, str]
    nodes: tuple[list[dict[str, Any]], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class BranchDifference:
    """What a branch came to.

    Attributes
    ----------
    counts
        Kind -> pods.
    n_same, n_decisions
        Decisions of both that are alike, and all that were made on either side, from the branch on.
    n_reworded
        Of those that are alike, the ones with another message.
    n_untried
        Pods of the parent that wait for their first attempt: it was not run since.
    """

    changes: list[PodDifference]
    counts: Mapping[str, int]
    n_same: int
    n_decisions: int
    n_reworded: int
    n_untried: int
    parting: Parting | None


def difference(*, branch: Cluster, parent: Cluster, place: int = 1) -> BranchDifference:
    """Compare a branch with its parent, pod by pod and attempt by attempt. Nine queries at most.

    Parameters
    ----------
    place
        Which of the decisions that differ is told in full.
    """
    before, after = _places(parent), _places(branch)
    since = Q(number__gt=branch.parent_cycle or 0)
    sides = (_decisions(parent, since), _decisions(branch, Q()))
    shared = _decisions(parent, ~since)
    last = {one.pod: one.number for one in sides[1]}
    changes = []
    for pod in sorted({*before, *after}):
        kind = _kind_of(before.get(pod), after.get(pod))
        if kind:
            namespace, _, name = pod.partition("/")
            changes.append(
                PodDifference(
                    kind, namespace, name, before.get(pod) or "", after.get(pod) or "", last.get(pod)
                )
            )
    changes.sort(key=lambda change: KINDS.index(change.kind))
    pairs = beside(sides, (before, after), shared)
    parted = partings(pairs, (before, after))
    untried = Pod.objects.filter(cluster=parent, lane=Pod.Lane.ACTIVE).count()
    parting = None
    if parted:
        place = min(max(1, place), len(parted))
        pair = parted[place - 1]
        clusters = (parent, parent if pair.decisions[1] in shared else branch)
        ends = (before.get(pair.pod), after.get(pair.pod))
        parting = _parting(pair, place, len(parted), clusters, ends)
    return BranchDifference(
        changes,
        Counter(change.kind for change in changes),
        sum(pair.is_same for pair in pairs),
        len(pairs),
        sum(pair.is_same and not pair.says_same for pair in pairs),
        untried,
        parting,
    )


def _kind_of(was: str | None, now: str | None) -> str:
    if was == now:
        return ""
    if now is None:
        return "gone"
    if was is None:
        return "new"
    if was and now:
        return "moved"
    return "newly pending" if was else "newly placed"


def _places(cluster: Cluster) -> dict[str, str]:
    """``namespace/name`` -> node, of pods that have not ended."""
    rows = Pod.objects.filter(cluster=cluster).exclude(phase__in=["Succeeded", "Failed"])
    found = rows.values_list("namespace", "name", "node_name")
    return {f"{namespace}/{name}": node for namespace, name, node in found.iterator(chunk_size=5000)}


def _decisions(cluster: Cluster, which: Q) -> list[Any]:
    """The last `MOST_DECISIONS` of them, in order."""
    rows = (
        Cycle.objects.filter(which, cluster=cluster)
        .order_by("-number")
        .only("cluster", "number", *Cycle.TOLD)
    )
    return list(rows[:MOST_DECISIONS])[::-1]


def _parting(
    pair: Beside[Any],
    place: int,
    n_places: int,
    clusters: tuple[Cluster, Cluster],
    ends: tuple[str | None, str | None],
) -> Parting:
    cycles = pair.decisions
    told = [
        readable(bytes(row.trace)) if row is not None and row.trace is not None else None for row in cycles
    ]
    names = ("the parent", "the branch")
    words = why(pair, (told[0], told[1]), names, ends)
    chosen = [one.node for one in pair.decisions if one is not None and one.node]
    chosen += [node for node in ends if node]
    there = [
        set(Node.objects.filter(cluster=cluster, name__in=chosen).values_list("name", flat=True))
        for cluster in clusters
    ]
    nodes = [
        _candidates(document, row, list(dict.fromkeys(chosen)), known)
        for document, row, known in zip(told, cycles, there, strict=True)
    ]
    notes = (no_decision(ends[0]), no_decision(ends[1]))
    return Parting(
        pair, place, n_places, words, (cycles[0], cycles[1]), clusters, notes, (nodes[0], nodes[1])
    )


def _candidates(
    document: Mapping[str, Any] | None, cycle: Cycle | None, chosen: list[str], there: set[str]
) -> list[dict[str, Any]]:
    """The chosen nodes and the best others, with points, or with what rejects them."""
    document = document or {}
    totals: dict[str, int] = document.get("total") or {}
    verdicts = document.get("filter") or {}
    best = sorted(totals, key=lambda node: (-totals[node], node))
    rows = []
    for node in list(dict.fromkeys([*chosen, *best]))[: len(chosen) + 3]:
        verdict = verdicts.get(node)
        rejected = f"{verdict.get('plugin')}: {'; '.join(verdict.get('reasons') or ())}" if verdict else ""
        if node in chosen and node not in there:
            rejected = "there is no such node here"
        rows.append(
            {
                "name": node,
                "total": totals.get(node),
                "rejected": rejected,
                "is_chosen": cycle is not None and cycle.node == node,
            }
        )
    return rows
