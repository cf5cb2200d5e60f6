"""Judging other schedulers' decisions over a stretch of log: objects as they were written, decisions between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Protocol

from scheduler_core.advice.judge import ForeignDecision, Judge, Judgement
from scheduler_core.releases import release_from
from scheduler_core.version import ENGINE_VERSION

Manifest = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""

NOT_THERE: Final = "the pod is not there"


class Entry(Protocol):
    """An entry of a log: `write`, `delete` or `config`, with the payload it has in a cluster's log."""

    @property
    def seq(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def payload(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Start:
    """A cluster at some moment of its log.

    Attributes
    ----------
    seq
        Entries after it are not in it, but inputs after `read_seq` are not either.
    """

    seq: int = 0
    read_seq: int = 0
    config: Mapping[str, Any] | None = None
    release: Mapping[str, Any] | None = None
    objects: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision to judge, taken just before the entry `seq`.

    Attributes
    ----------
    burst
        Decisions of the same number were taken one after another by one author, in an order that their entries may not
        have.
    """

    seq: int
    key: int
    burst: int
    at_ns: int
    kind: str
    namespace: str
    name: str
    uid: str
    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict as plain data, and our cycle's trace."""

    key: int
    verdict: str
    outcome: str
    node: str = ""
    points: int | None = None
    our_points: int | None = None
    n_tied: int = 0
    n_feasible: int = 0
    plugin: str = ""
    score: int | None = None
    our_score: int | None = None
    reasons: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    trace: bytes | None = None
    engine: str = ""


def judged(
    start: Start,
    entries: Iterable[Entry],
    asked: Iterable[Asked],
    *,
    seed: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Judged]:
    """Judge decisions in the order of the log.

    Parameters
    ----------
    entries
        Writes, deletes and configurations after the start, in order: inputs after `read_seq`, outcomes after `seq`.
    asked
        By seq; bursts whole.
    goes_on
        Asked after each burst; False ends it early.
    """
    following = _Following(start, iter(entries), seed)
    for _, burst in groupby(asked, key=lambda item: item.burst):
        yield from following.burst(list(burst))
        if not goes_on():
            return


class _Following:
    """A judge that goes through a log."""

    def __init__(self, start: Start, entries: Iterator[Entry], seed: int) -> None:
        self._config, self._release = start.config, start.release
        self._judge = Judge(
            start.config, release=release_from(start.release), objects=start.objects, seed=seed
        )
        self._entries = entries
        self._next = next(entries, None)

    def burst(self, asked: list[Asked]) -> Iterator[Judged]:
        """Judge decisions that one author took one after another.

        In the order of their entries; and where that does not agree, in the orders a scheduler's queue may have had. If
        more of them agree so, that is how they were decided.
        """
        while asked:
            self._take_until(asked[0].seq)
            # A pod that came later, or a cluster that changed under them, begins another burst.
            together, held, rest = [asked[0]], [list[Entry]()], list[Entry]()
            for item in asked[1:]:
                if self._pod(item) is None:
                    break
                between = self._held(item.seq)
                if not all(map(_changes_no_room, between)):
                    rest = between
                    break
                together.append(item)
                held.append(between)
            yield from self._together(together, held)
            for entry in rest:
                self._take(entry)
            asked = asked[len(together) :]

    def _together(self, asked: list[Asked], held: list[list[Entry]]) -> list[Judged]:
        """Verdicts on decisions before each of which these entries came, all about pods that were there."""
        judge = self._judge
        pods = {item.key: self._pod(item) for item in asked}
        touched: dict[Key, Manifest | None] = {}
        arrived = []
        for item, between in zip(asked, held, strict=True):
            for entry in between:
                key = _key(entry)
                touched.setdefault(key, judge.manifest(*key))
                self._take(entry)
            arrived.append(self._verdict(item))
        if len(asked) == 1 or all(item.verdict in ("agree", "tie", "unknown") for item in arrived):
            return arrived
        present = {key: judge.manifest(*key) for key in touched}
        best = arrived
        for queued in self._orders(asked, pods):
            if queued == asked or _n_agreed(best) == len(best):
                continue
            _put(judge, touched)
            found = {}
            bound: dict[Key, Manifest | None] = {}
            for item in queued:
                found[item.key] = self._verdict(item)
                pod = pods[item.key]
                if item.kind == "bind" and pod is not None:
                    bound["Pod", item.namespace, item.name] = pod
                    judge.write({**pod, "spec": {**pod["spec"], "nodeName": item.node}})
            _put(judge, {**bound, **present})
            if _n_agreed(found.values()) > _n_agreed(best):
                best = [found[item.key] for item in asked]
        return best

    def _orders(self, asked: list[Asked], pods: Mapping[int, Manifest | None]) -> Iterator[list[Asked]]:
        """Orders in which a queue gives these pods out (PrioritySort): as they were created, and as an API server lists
        them to who comes later, by namespace and name."""
        turns = {key: turn for turn, key in enumerate(self._judge.keys("Pod"))}

        def priority(item: Asked) -> int:
            spec = (pods[item.key] or {}).get("spec") or {}
            return int(spec.get("priority") or 0)

        yield sorted(asked, key=lambda item: (-priority(item), turns.get((item.namespace, item.name), 0)))
        yield sorted(asked, key=lambda item: (-priority(item), item.namespace, item.name))

    def _pod(self, asked: Asked) -> Manifest | None:
        """The pod that was decided about, as it is now."""
        pod = self._judge.manifest("Pod", asked.namespace, asked.name)
        return None if pod is None or pod["metadata"].get("uid") != asked.uid else pod

    def _verdict(self, asked: Asked) -> Judged:
        judge = self._judge
        judge.at(asked.at_ns)
        manifest = self._pod(asked)
        if manifest is None:
            return Judged(asked.key, "unknown", "", reasons=(NOT_THERE,), engine=ENGINE_VERSION)
        decision = ForeignDecision(asked.kind, asked.node, asked.victims)
        return _plain(asked.key, judge.judge(manifest, decision, number=asked.seq))

    def _held(self, seq: int) -> list[Entry]:
        found = []
        while self._next is not None and self._next.seq < seq:
            found.append(self._next)
            self._next = next(self._entries, None)
        return found

    def _take_until(self, seq: int) -> None:
        for entry in self._held(seq):
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        payload = entry.payload
        if entry.kind == "config":
            if payload.get("release") is not None:
                self._release = payload["release"]
            else:
                self._config = payload["document"]
            self._judge.configure(self._config, release_from(self._release))
        elif entry.kind == "delete" and payload.get("gone", True):
            self._judge.delete(payload["kind"], payload.get("namespace") or "", payload["name"])
        elif entry.kind in ("write", "delete"):
            self._judge.write(payload["manifest"])


def _key(entry: Entry) -> Key:
    meta = entry.payload["manifest"]["metadata"]
    return (str(entry.payload["manifest"]["kind"]), str(meta.get("namespace") or ""), str(meta["name"]))


def _changes_no_room(entry: Entry) -> bool:
    """Whether it is a change of a pod that stays: a Binding, a status."""
    return entry.kind == "write" and entry.payload["manifest"]["kind"] == "Pod"


def _put(judge: Judge, objects: Mapping[Key, Manifest | None]) -> None:
    for key, manifest in objects.items():
        if manifest is None:
            judge.delete(*key)
        else:
            judge.write(manifest)


def _n_agreed(verdicts: Iterable[Judged]) -> int:
    return sum(item.verdict in ("agree", "tie") for item in verdicts)


def _plain(key: int, found: Judgement) -> Judged:
    return Judged(
        key,
        found.verdict,
        found.outcome,
        found.node,
        found.points,
        found.our_points,
        found.n_tied,
        0 if found.trace is None else found.trace.n_feasible,
        found.plugin,
        found.score,
        found.our_score,
        found.reasons,
        found.victims,
        None if found.trace is None else found.trace.to_bytes(),
        ENGINE_VERSION,
    )
