"""Runs of controllers in words, and what their newest runs say: why each node stays or goes, which group helps a pod.

Runs hold values; the words are in `outlook.yaml`. Page, REST, command line and plans show these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.objects.duration import format_duration
from scheduler_core.records import Documented
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.changes import ControllerRun

Facts = Mapping[str, Any]
"""Why something was left: its `reason`, or the `text` of the program, and what its words name."""

_TABLE: Final = table_beside(__package__ or __name__, "outlook.yaml")
_NODES: Final[Mapping[str, Sequence[str]]] = {**_TABLE["nodes"], **_TABLE["kept"]}
_PODS: Final[Mapping[str, str]] = _TABLE["pods"]
ACTS, TAKES, LOOKS = "acts", "takes", "looks"
_OF_PODS: Final = {ACTS: "resizes", TAKES: "evicts", LOOKS: "would evict"}
LEAVING: Final = ("NotUnneededLongEnough", "ScaleDownInCooldown", "NoRoomForMore", "CurrentlyBeingDeleted")
"""Reasons of nodes that stay only for now."""


# ---- words


def effect_of(run: ControllerRun) -> str:
    """Whether a run takes something away, else acts, else looks and changes nothing."""
    effects = {act.effect for act in run.did}
    return next((effect for effect in (TAKES, ACTS) if effect in effects), LOOKS)


def brief_words(run: ControllerRun) -> str:
    """A run in two or three words: what most of its acts are."""
    effect = effect_of(run)
    acts = [act for act in run.did if act.effect == effect]
    if not acts:
        return LOOKS
    if len(acts) == 1 and len(str(acts[0])) <= 26:
        return str(acts[0])
    first = acts[0].about[0].kind if acts[0].about else ""
    objects = {one.key for act in acts for one in act.about if one.kind == first}
    noun = f"{len(objects)} {first.lower()}{'' if len(objects) == 1 else 's'}"
    if first == "Pod":
        return f"{_OF_PODS[effect]} {noun}"
    if first == "Node" and effect == TAKES:
        return f"removes {noun}"
    return "grows" if effect == ACTS else "shrinks"


def mentioned(run: ControllerRun) -> list[str]:
    """Objects that a run acted on, the pods that groups grow for among them, and those it left for a new reason."""
    acted = [str(one) for act in run.did for one in act.about]
    grown = [f"Pod {key}" for act in run.did for key in act.facts.get("pods", ())]
    return list(dict.fromkeys([*acted, *grown, *run.news, *filter(None, [run.subject])]))


def reason_words(facts: Facts, began_ns: int = 0) -> str:
    """Why one object was left, without a full stop; times count from `began_ns`."""
    reason = str(facts.get("reason") or "")
    if reason == "BlockedByPod":
        return _PODS.get(str(facts["podReason"]), "{pod} keeps it").format(**facts)
    if "refused" in facts and "text" not in facts:
        return _groups_words(facts)
    if reason not in _NODES:
        return str(facts.get("text") or reason)
    since = facts.get("sinceNs")
    return _NODES[reason][1].format(
        **{**facts, "since": "" if since is None else format_duration(since - began_ns)}
    )


def group_words(facts: Facts) -> str:
    """Why several objects with one reason were left."""
    reason = str(facts.get("reason") or "")
    if reason == "BlockedByPod":
        return _PODS.get(str(facts["podReason"]), "{pod} keeps them").format(pod="a pod")
    return _NODES[reason][0] if reason in _NODES else reason_words(facts)


def group_key(facts: Facts) -> str:
    """The same for objects that were left for one reason."""
    reason = str(facts.get("reason") or "")
    if reason == "BlockedByPod":
        return f"{reason} {facts['podReason']}"
    return reason if reason in _NODES else reason_words(facts)


def node_words(facts: Facts, began_ns: int = 0) -> str:
    """The sentence of a node that stays, perhaps not for long."""
    words, leaves_ns = reason_words(facts, began_ns), facts.get("leavesNs")
    if leaves_ns is not None:
        return f"Goes at {format_duration(leaves_ns - began_ns)} at the earliest: {words}."
    return f"{'Goes later' if facts.get('reason') in LEAVING else 'Stays'}: {words}."


def run_lines(run: ControllerRun, began_ns: int = 0) -> Iterator[str]:
    """A run as text: what it did, then what it left, objects of one reason together."""
    yield from map(str, run.did)
    groups: dict[str, list[tuple[str, Facts]]] = {}
    for name, facts in run.why_not.items():
        groups.setdefault(group_key(facts), []).append((name, facts))
    for some in groups.values():
        names, facts = [name for name, _ in some], some[0][1]
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        words = reason_words(facts, began_ns) if len(names) == 1 else group_words(facts)
        yield f"{', '.join(names[:3])}{more}: {words}"


# ---- what the newest runs say


@dataclass(frozen=True, slots=True)
class NodeSentence(Documented):
    """Why a node stays or goes, by one controller.

    Attributes
    ----------
    goes : bool
        It is to be removed, if nothing changes.
    reason : str
        The controller's name of the reason.
    group : str
        The words of the reason for several nodes.
    """

    node: str
    controller: str
    goes: bool
    reason: str
    group: str
    text: str


@dataclass(frozen=True, slots=True)
class PodSentence(Documented):
    """Which node groups would help a pending pod, and what keeps the others from it.

    Attributes
    ----------
    refused : mapping of str to list of str
        Requirement -> the groups that it rules out.
    """

    pod: str
    helps: tuple[str, ...]
    refused: Mapping[str, Sequence[str]]
    text: str


@dataclass(slots=True)
class Outlook(Documented):
    """What the newest runs say."""

    nodes: list[NodeSentence] = field(default_factory=list)
    pods: list[PodSentence] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """For the command line: nodes of one sentence, and pods, together."""
        nodes: dict[tuple[str, str], list[str]] = {}
        for one in self.nodes:
            nodes.setdefault((one.controller, one.text), []).append(one.node)
        for (controller, text), names in nodes.items():
            yield f"{_named(names)}: {text} ({controller})"
        pods: dict[str, list[str]] = {}
        for pod in self.pods:
            pods.setdefault(pod.text, []).append(pod.pod)
        for text, names in pods.items():
            yield f"{_named(names)}: {text}"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def newest_of(runs: Iterable[ControllerRun]) -> dict[tuple[str, str], ControllerRun]:
    """Controller and subject -> its newest run, of runs in order."""
    return {(run.controller, run.subject): run for run in runs}


def outlook_of(runs: Iterable[ControllerRun], began_ns: int) -> Outlook:
    """What the newest runs of each controller say of nodes and pending pods, both by name.

    Parameters
    ----------
    runs
        In order, the oldest first.
    began_ns : int
        From when times are counted.
    """
    found = Outlook()
    for run in newest_of(runs).values():
        for name, facts in run.why_not.items():
            kind, _, own = name.partition(" ")
            if kind == "Node":
                reason = str(facts.get("reason") or "")
                found.nodes.append(
                    NodeSentence(
                        own, run.controller, reason in LEAVING, reason, group_words(facts),
                        node_words(facts, began_ns),
                    )
                )  # fmt: skip
            elif kind == "Pod" and "refused" in facts:
                words = f"{_groups_words(facts)}."
                found.pods.append(PodSentence(own, tuple(facts["helps"]), facts["refused"], words))
    found.nodes.sort(key=lambda one: (one.node, one.controller))
    found.pods.sort(key=lambda one: one.pod)
    return found


def _groups_words(facts: Facts) -> str:
    helps = facts["helps"]
    verb = "helps" if len(helps) == 1 else "help"
    parts = [f"{', '.join(helps)} {verb}" if helps else "no group helps"]
    return "; ".join([*parts, *(f"{', '.join(names)}: {why}" for why, names in facts["refused"].items())])
