"""What is run again with many seeds; and from their ends to an answer: which there are, what each draw decided."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from django.db.models import Q

from playground.clusters.log.entries import entries_of
from playground.clusters.models import Checkpoint, Cluster, Cycle, LogEntry
from playground.engine import advise
from playground.engine.entries import Entry
from playground.engine.seeds import Beginning, beginning_of

logger = logging.getLogger(__name__)

SHOWN_STATES: Final = 7
SHOWN_DIFFERENCES: Final = 12


class End(Protocol):
    """How one seed ended; `end` is what `engine.seeds.end_of` gave."""

    seed: int
    digest: str
    end: Mapping[str, Any]


RecordedTie = Callable[[str], tuple[int, bytes] | None]
"""Number and trace of the recorded cycle in which a pod's node was drawn, if it is kept."""


def run_again(cluster: Cluster, seq: int) -> tuple[Beginning | None, Iterator[Entry]]:
    """The log up to `seq` as every seed runs it: from the newest checkpoint that all of them come by, or whole."""
    log = LogEntry.objects.filter(cluster=cluster, seq__lte=seq)
    beginning, ran_seq = _beginning(cluster, seq)
    if beginning is not None:
        log = log.filter(Q(source=LogEntry.Source.API, seq__gt=beginning.read_seq) | Q(seq__gt=ran_seq))
    return beginning, entries_of(log)


def _beginning(cluster: Cluster, seq: int) -> tuple[Beginning | None, int]:
    """The newest checkpoint from before anything was decided or drawn, and its `ran` entry."""
    first = Cycle.objects.filter(cluster=cluster).order_by("number").values_list("ran_seq", flat=True).first()
    before = seq if first is None else min(seq, first - 1)
    checkpoints = Checkpoint.objects.filter(cluster=cluster, engine_seq__lte=before)
    for checkpoint in checkpoints.order_by("-engine_seq")[:3]:
        try:
            found = beginning_of(bytes(checkpoint.data))
        except ValueError:
            logger.exception("checkpoint cannot be read", extra={"cluster": cluster.public_id})
            continue
        if found is not None:
            return found, checkpoint.engine_seq
    return None, 0


def drawn_in(rows: Any, pod: str) -> tuple[int, bytes] | None:
    """The cycle among recorded ones in which a pod's node was drawn; its trace must be kept."""
    namespace, _, name = pod.partition("/")
    cycle = rows.filter(pod_namespace=namespace, pod_name=name, n_viable__gt=1, trace__isnull=False).first()
    return None if cycle is None else (cycle.number, bytes(cycle.trace))


def answer_of(ends: Sequence[End], recorded: RecordedTie) -> dict[str, Any]:
    """Which end states there are, how often each occurs, and what each draw decided.

    Parameters
    ----------
    ends
        In order of their seeds; that of the run's own seed tells what hung on chance.
    """
    own: Mapping[str, Any] = next((end.end for end in ends if end.end.get("nMarks")), {})
    by_digest: dict[str, list[End]] = {}
    for end in ends:
        by_digest.setdefault(end.digest, []).append(end)
    ranked = sorted(by_digest.values(), key=lambda alike: (-len(alike), alike[0].seed))
    moved: dict[str, str] = {}
    for end in ends:
        moved |= _left(end)
    places = {end.seed: _places(end, moved) for end in ends}
    varying = _varying(list(places.values()))
    states = [
        {
            "letter": chr(ord("A") + index),
            "n": len(alike),
            "seeds": [end.seed for end in alike],
            "bound": len(alike[0].end["placement"]) + _n_stayed(alike[0]),
            "pending": alike[0].end["pending"][:SHOWN_DIFFERENCES],
            "nPending": len(alike[0].end["pending"]),
            "differs": [
                {
                    "pod": pod,
                    "node": places[alike[0].seed].get(pod, ""),
                    "gone": pod not in places[alike[0].seed],
                }
                for pod in varying[:SHOWN_DIFFERENCES]
            ],
        }
        for index, alike in enumerate(ranked[:SHOWN_STATES])
    ]
    rest = ranked[SHOWN_STATES:]
    return {
        "nSeeds": len(ends),
        "first": ends[0].seed if ends else 0,
        "nStates": len(ranked),
        "states": states,
        "rest": {"nStates": len(rest), "n": sum(map(len, rest))},
        "nVarying": len(varying),
        "byRunning": _by_running(ends),
        "nPods": len({pod for place in places.values() for pod in place}) + _never_moved(ends, moved),
        "nCycles": ends[0].end["cycles"] if ends else 0,
        "sometimesPending": _sometimes_pending(ends),
        "sometimesGone": _sometimes_gone(list(places.values())),
        "ties": _ties(recorded, ends, places, varying),
        "path": _path(ends),
        "marks": own.get("marks", []),
        "nMarks": own.get("nMarks", {}),
    }


def _places(end: End, moved: Mapping[str, str]) -> dict[str, str]:
    """Pod -> node; empty for pending ones. Without those that no seed moved from where they were at the beginning.

    Parameters
    ----------
    moved
        Pod -> node at the beginning, of those that some seed moved.
    """
    left = _left(end)
    stayed = {pod: node for pod, node in moved.items() if pod not in left}
    return {**stayed, **end.end["placement"], **dict.fromkeys(end.end["pending"], "")}


def _never_moved(ends: Sequence[End], moved: Mapping[str, str]) -> int:
    """How many pods are where they were at the beginning, whatever the seed."""
    return _n_stayed(ends[0]) + len(_left(ends[0])) - len(moved) if ends else 0


def _left(end: End) -> Mapping[str, str]:
    left: Mapping[str, str] = end.end["left"]
    return left


def _n_stayed(end: End) -> int:
    return int(end.end.get("stayed", 0))


def _varying(places: Sequence[dict[str, str]]) -> list[str]:
    """Pods that do not end on the same node in every seed; those that are sometimes pending first."""
    ends: dict[str, set[str]] = {}
    for place in places:
        for pod in ends.keys() | place.keys():
            ends.setdefault(pod, set()).add(place.get(pod, "gone"))
    varying = [pod for pod, nodes in ends.items() if len(nodes) > 1]
    return sorted(varying, key=lambda pod: ("" not in ends[pod], pod))


def _by_running(ends: Sequence[End]) -> list[dict[str, Any]]:
    """End states grouped by the pods left pending, the most frequent first."""
    counts = Counter(tuple(end.end["pending"]) for end in ends)
    return [
        {
            "n": number,
            "nPending": len(pending),
            "pending": list(pending[:SHOWN_DIFFERENCES]),
            "hidden": max(0, len(pending) - SHOWN_DIFFERENCES),
        }
        for pending, number in counts.most_common(SHOWN_STATES)
    ]


def _sometimes_pending(ends: Sequence[End]) -> list[dict[str, Any]]:
    """Pods that run in some seeds and not in others, with the number of seeds in which they run."""
    counts = Counter(pod for end in ends for pod in end.end["pending"])
    return [
        {"pod": pod, "runs": len(ends) - number}
        for pod, number in sorted(counts.items())
        if number < len(ends)
    ][:SHOWN_DIFFERENCES]


def _sometimes_gone(places: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Pods that are evicted in some seeds and not in others, with the number of seeds in which they stay."""
    counts = Counter(pod for place in places for pod in place)
    return [{"pod": pod, "stays": number} for pod, number in sorted(counts.items()) if number < len(places)][
        :SHOWN_DIFFERENCES
    ]


def _ties(
    recorded: RecordedTie, ends: Sequence[End], places: dict[int, dict[str, str]], varying: Sequence[str]
) -> list[dict[str, Any]]:
    """Decisions that hung on a draw, the ones that decide most first."""
    drawn: dict[str, dict[int, str]] = {}
    cycles: dict[str, int] = {}
    equals: dict[str, int] = {}
    for end in ends:
        for number, pod, node, count in end.end["draws"]:
            drawn.setdefault(pod, {})[end.seed] = node
            cycles.setdefault(pod, number)
            equals[pod] = max(count, equals.get(pod, 0))
    found: list[dict[str, Any]] = []
    for pod, nodes in drawn.items():
        counts = Counter(nodes.values())
        others = [other for other in varying if other != pod and other not in drawn]
        decides = [other for other in others if _follows(other, nodes, places)]
        found.append(
            {
                "cycle": cycles[pod],
                "pod": pod,
                "nEqual": equals[pod],
                "nDrawn": len(nodes),
                "counts": [{"node": node, "n": number} for node, number in counts.most_common(8)],
                "decides": decides[:6],
                "nDecides": len(decides),
            }
        )
    found.sort(key=lambda item: (-item["nDecides"], item["cycle"]))
    _add_settling(recorded, found[:20])
    return found[:50]


def _follows(pod: str, drawn: dict[int, str], places: dict[int, dict[str, str]]) -> bool:
    """Whether where a pod ends is settled by this draw alone, and not the same whatever is drawn."""
    if len(drawn) < len(places):
        return False
    ends: dict[str, set[str]] = {}
    for seed, node in drawn.items():
        ends.setdefault(node, set()).add(places[seed].get(pod, "gone"))
    return (
        all(len(nodes) == 1 for nodes in ends.values()) and len({min(nodes) for nodes in ends.values()}) > 1
    )


def _add_settling(recorded: RecordedTie, ties: list[dict[str, Any]]) -> None:
    """What would settle a tie without luck, from the trace of the recorded cycle where it is kept."""
    for tie in ties:
        found = recorded(tie["pod"])
        tie["recorded"] = found[0] if found else None
        document = advise.weights_of(found[1]) if found else None
        if document is not None:
            tie["tied"] = document["winners"]
            tie["settle"] = document["settle"]


def _path(ends: Sequence[End]) -> list[dict[str, Any]]:
    """How the seeds part, tie by tie: at each level the seeds grouped by all they drew so far, in one order."""
    if not ends:
        return []
    pods = list(dict.fromkeys(draw[1] for end in ends for draw in end.end["draws"]))
    common = [pod for pod in pods if all(any(d[1] == pod for d in end.end["draws"]) for end in ends)][:4]
    drawn = {end.seed: {draw[1]: (draw[0], draw[2]) for draw in end.end["draws"]} for end in ends}
    levels = []
    for depth in range(1, len(common) + 1):
        taken = common[:depth]
        groups = Counter(tuple(drawn[end.seed][pod][1] for pod in taken) for end in ends)
        # Siblings stand below their parents: by the parents' sizes, then by their own.
        order = sorted(
            groups,
            key=lambda path: [
                (-sum(n for other, n in groups.items() if other[: at + 1] == path[: at + 1]), path[at])
                for at in range(depth)
            ],
        )
        if len(order) > 24:
            break
        levels.append(
            {
                "cycle": min(drawn[end.seed][taken[-1]][0] for end in ends),
                "pod": taken[-1],
                "parts": [{"node": path[-1], "n": groups[path]} for path in order],
            }
        )
    return levels
