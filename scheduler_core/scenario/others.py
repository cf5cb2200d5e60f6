"""What other schedulers decide within a run, for a judge: steps with `by`, and all that happens between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.objects.pod import Pod
from scheduler_core.sim.simulation import Simulation
from scheduler_core.sim.world import Stored
from scheduler_core.whatif.judge import BIND, NO_NODE, PREEMPT, Asked, Judgement, Start, judged

Manifest = Mapping[str, Any]
LONGEST_BURST = 64


@dataclass(frozen=True, slots=True)
class Happened:
    """A change of an object, or of the configuration, as a log entry tells it."""

    seq: int
    kind: str
    payload: Mapping[str, Any]


@dataclass(slots=True)
class Others:
    """Decisions of other schedulers, in order.

    Parameters
    ----------
    simulation : Simulation
        Watched from here on.
    """

    simulation: Simulation
    _start: Start = field(init=False)
    _happened: list[Happened] = field(default_factory=list)
    _asked: list[tuple[Asked, str]] = field(default_factory=list)
    _evicted: list[tuple[str, str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        simulation = self.simulation
        self._start = Start(config=simulation.config, release=simulation.release.document())
        simulation.world.watcher = self._changed

    def _changed(self, kind: str, old: Stored | None, new: Stored | None) -> None:
        seq = len(self._happened) + 1
        if new is not None:
            self._happened.append(Happened(seq, "write", {"manifest": new.manifest}))
        elif old is not None:
            meta = old.manifest.get("metadata") or {}
            place = {"kind": kind, "namespace": meta.get("namespace") or "", "name": meta.get("name")}
            self._happened.append(Happened(seq, "delete", {**place, "manifest": old.manifest}))

    def configured(self, document: Manifest | None, release: Mapping[str, Any] | None = None) -> None:
        """The cluster goes on with another configuration, or as another release."""
        payload = {"document": document} if release is None else {"document": document, "release": release}
        self._happened.append(Happened(len(self._happened) + 1, "config", payload))

    def bound(self, pod: Pod, node: str, by: str) -> None:
        """A Binding is about to be posted."""
        self._decided(BIND, pod, node, by)

    def patched(self, pod: Pod, after: Manifest, by: str) -> None:
        """A pod is about to be changed: it found no node, or was nominated to one."""
        before, status = pod.manifest.get("status") or {}, after.get("status") or {}
        conditions = [item for item in status.get("conditions") or () if item.get("type") == "PodScheduled"]
        if pod.node_name or not any(item.get("reason") == "Unschedulable" for item in conditions):
            return
        node = str(status.get("nominatedNodeName") or "")
        is_news = node and node != (before.get("nominatedNodeName") or "")
        self._decided(PREEMPT if is_news else NO_NODE, pod, node if is_news else "", by)

    def evicted(self, pod: Pod, by: str) -> None:
        """A pod is about to be deleted: for the one nominated to its node, or that will be."""
        if not pod.node_name or pod.is_terminating:
            return
        for place in range(len(self._asked) - 1, -1, -1):
            asked, author = self._asked[place]
            if author == by and asked.kind == PREEMPT and asked.node == pod.node_name:
                self._asked[place] = (replace(asked, victims=(*asked.victims, pod.key)), author)
                return
        self._evicted.append((by, pod.node_name, pod.key, len(self._happened) + 1))

    def _decided(self, kind: str, pod: Pod, node: str, by: str) -> None:
        seq = first = len(self._happened) + 1
        victims: tuple[str, ...] = ()
        if kind == PREEMPT:
            own = [item for item in self._evicted if item[:2] == (by, node)]
            self._evicted = [item for item in self._evicted if item[:2] != (by, node)]
            victims, first = tuple(item[2] for item in own), min([seq, *(item[3] for item in own)])
        last, author = self._asked[-1] if self._asked else (None, "")
        burst = first
        if last is not None and author == by and PREEMPT not in (kind, last.kind):
            n_together = sum(item.burst == last.burst for item, _ in self._asked[-LONGEST_BURST:])
            burst = last.burst if n_together < LONGEST_BURST else first
        asked = Asked(
            first, len(self._asked), burst, self.simulation.now_ns, kind, pod.namespace, pod.name, pod.uid,
            node, victims,
        )  # fmt: skip
        self._asked.append((asked, by))

    def verdicts(self, seed: int) -> Iterator[Judgement]:
        """Each decision beside ours, by the configuration that the run began with and those it went on with."""
        asked = sorted((item for item, _ in self._asked), key=_seq)
        yield from judged(self._start, self._happened, asked, seed=seed)


def _seq(asked: Asked) -> int:
    return asked.seq
