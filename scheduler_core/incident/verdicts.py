"""Every decision of an incident beside ours: of one that is over, and of one that is still going on."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.incident.changes import (
    LAG_NS,
    LONGEST_BURST,
    Incident,
    LoggedChange,
    LoggedDecision,
    number_bursts,
)
from scheduler_core.incident.suspects import Suspects
from scheduler_core.incident.watched import LISTED, Line, WatchReading, timed
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.releases import Release
from scheduler_core.schema.tables import table_beside
from scheduler_core.whatif.judge import (
    AGREE,
    DIFFERENT,
    INFEASIBLE,
    TIE,
    UNKNOWN,
    CauseOfDifference,
    Following,
    Judgement,
    Start,
)

UNLIKE: Final = (DIFFERENT, INFEASIBLE)
SETTLED_NS: Final = 1_000_000_000
"""A decision is judged so long after it: by then its victims are known, and what its author decided beside it."""
_NEEDS: Final[Mapping[str, Sequence[str]]] = table_beside(__package__, "needs.yaml")
_ALL_NEEDS: Final = tuple(kind for needs in _NEEDS.values() for kind in needs)


@dataclass(frozen=True, slots=True)
class JudgedDecision:
    """A decision beside ours; of our cycle, its outcome (empty where none was run) and how many nodes were feasible."""

    decision: LoggedDecision
    found: Judgement
    outcome: str = ""
    n_feasible: int = 0

    def document(self) -> dict[str, Any]:
        one, ours = self.decision, self.found
        document = {
            "time": format_time_ns(one.at_ns),
            "pod": f"{one.namespace}/{one.name}",
            "kind": one.kind,
            "node": one.node,
            "victims": one.victims,
            "by": one.author,
            "verdict": ours.verdict,
            "ours": ours.node,
            "plugin": ours.plugin,
            "reasons": list(ours.reasons),
            "outcome": self.outcome,
            "nFeasible": self.n_feasible,
        }
        if ours.points is not None:
            document |= {"points": ours.points, "ourPoints": ours.our_points}
        return document if ours.cause is None else document | {"cause": cause_document(ours.cause)}


def cause_document(cause: CauseOfDifference) -> dict[str, Any]:
    """A cause as REST and `-o json` have it: what is empty is left out."""
    document = {
        "kind": cause.kind,
        "plugin": cause.plugin,
        "weights": [{"plugin": name, "from": low, "to": high} for name, low, high in cause.weights],
        "changes": cause.n_changes,
        "ageMs": cause.age_ns // 1_000_000,
        "unseen": [{"kind": kind, "namespace": space, "name": name} for kind, space, name in cause.unseen],
        "node": cause.node,
    }
    return {key: value for key, value in document.items() if value or key == "kind"}


def cause_of(document: Mapping[str, Any]) -> CauseOfDifference:
    """The cause that `cause_document` wrote."""
    return CauseOfDifference(
        document["kind"],
        document.get("plugin", ""),
        tuple((one["plugin"], one["from"], one["to"]) for one in document.get("weights", ())),
        document.get("changes", 0),
        document.get("ageMs", 0) * 1_000_000,
        tuple((one["kind"], one["namespace"], one["name"]) for one in document.get("unseen", ())),
        document.get("node", ""),
    )


@dataclass(slots=True)
class JudgedIncident:
    """Decisions beside ours, in their order."""

    all: list[JudgedDecision] = field(default_factory=list)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there are of each verdict."""
        found = Counter(one.found.verdict for one in self.all)
        return {name: found[name] for name in (AGREE, TIE, DIFFERENT, INFEASIBLE, UNKNOWN)}

    @property
    def unlike(self) -> list[JudgedDecision]:
        """Those that differ from ours."""
        return [one for one in self.all if one.found.verdict in UNLIKE]


def judge_incident(
    incident: Incident, *, config: Mapping[str, Any] | None = None, release: Release, seed: int = 0
) -> JudgedIncident:
    """Judge each decision on the state that the API server had, and, where ours differs, on those before it.

    A scheduler decides on what its informers have told it by then. A decision that ours would take on one of the states
    a moment earlier (`LAG_STATES` changes, `LAG_NS`) is none to blame.
    """
    start = Start(config=config, release=release.document(), objects=tuple(incident.before.values()))
    following = Following(start, seed, traces=False, suspects=Suspects())
    return JudgedIncident(_judged(following, incident.changes(), incident.decisions, incident.missing))


def _judged(
    following: Following,
    changes: Iterable[LoggedChange],
    decisions: Sequence[LoggedDecision],
    missing: Mapping[str, int],
) -> list[JudgedDecision]:
    """Verdicts on decisions, whose bursts are numbered, in a stretch of changes."""
    asked = [one.asked(number) for number, one in enumerate(decisions) if not one.unknown]
    asked.sort(key=lambda item: (item.seq, item.key))
    found: dict[int, tuple[Judgement, str, int]] = {}
    for one in following.through(changes, asked):
        n_feasible = one.trace.n_feasible if one.trace is not None else 0
        # A trace of each would be the largest part of it all.
        found[one.key] = replace(one, trace=None), one.outcome, n_feasible
    judged = []
    for number, decision in enumerate(decisions):
        verdict, outcome, n_feasible = found.get(number) or (
            Judgement(UNKNOWN, reasons=(decision.unknown,)), "", 0
        )  # fmt: skip
        judged.append(JudgedDecision(decision, _known(verdict, missing), outcome, n_feasible))
    return judged


def _known(verdict: Judgement, missing: Mapping[str, int]) -> Judgement:
    """A verdict, or that it cannot be known, where what its plugin reads is not."""
    if verdict.verdict not in UNLIKE or not missing:
        return verdict
    if verdict.verdict == INFEASIBLE and verdict.plugin in _NEEDS["alone"]:
        needs = {"Node"}
    else:
        # Where one finds a node and the other none, any of them may.
        needs = {*_NEEDS["every"], *(_NEEDS.get(verdict.plugin, ()) if verdict.plugin else _ALL_NEEDS)}
    lacking = sorted(what for what in missing if what.partition(" ")[0] in needs)
    if not lacking:
        return verdict
    reasons = (f"not known: {', '.join(lacking)}",)
    return Judgement(UNKNOWN, plugin=verdict.plugin, reasons=reasons, key=verdict.key)


class LiveIncident:
    """An incident that goes on: lines of watches are taken as they come, decisions judged when they are settled.

    Attributes
    ----------
    incident
        Of which `decisions` are those that are not judged yet, and a few before.
    """

    def __init__(self, *, config: Mapping[str, Any] | None = None, release: Release, seed: int = 0) -> None:
        self._start = Start(config=config, release=release.document())
        self._seed = seed
        self.incident = Incident(lambda incident, known: iter(()))
        self._reading = WatchReading(self.incident, {})
        self._following: Following | None = None
        self._changes: deque[LoggedChange] = deque()
        self._n_judged = 0
        self._last: LoggedDecision | None = None

    def take(self, line: Line) -> None:
        """Take the next line.

        Raises
        ------
        ValueError, KeyError
            It is none of a watch.
        """
        at_ns, line = timed(line)
        if self._following is not None and line["type"] == LISTED:
            raise ValueError("lists an object after the beginning")
        self._changes.extend(self._reading.take(line, at_ns))

    def judge(self, now_ns: int, *, unknown: str = "") -> list[JudgedDecision]:
        """Verdicts on what was decided until `SETTLED_NS` ago and not judged yet.

        Parameters
        ----------
        unknown
            Why none of it is to be judged; changes are taken all the same.
        """
        if self._following is None:
            objects = tuple(self._reading.before.values())
            self._following = Following(
                replace(self._start, objects=objects), self._seed, traces=False, suspects=Suspects()
            )
            self._reading.before.clear()
        decisions = self.incident.decisions
        new = decisions[self._n_judged :]
        more = {one.author for one in new} & set(self._reading.undecided.values())
        n_ripe = _n_ripe([one.at_ns for one in new], now_ns, LAG_NS if more else SETTLED_NS)
        ripe = decisions[self._n_judged : self._n_judged + n_ripe]
        left = decisions[self._n_judged + n_ripe :]
        end = min((one.judged_seq for one in left), default=self._reading.next_seq)
        end = max((end, *(one.judged_seq for one in ripe)))
        for one in ripe:
            one.unknown = one.unknown or unknown
        number_bursts(ripe, self._last)
        stretch: list[LoggedChange] = []
        while self._changes and self._changes[0].seq < end:
            stretch.append(self._changes.popleft())
        found = _judged(self._following, stretch, ripe, self.incident.missing)
        self._following.finish()
        self._last = ripe[-1] if ripe else self._last
        del decisions[: max(0, self._n_judged + n_ripe - LONGEST_BURST)]
        self._n_judged = min(self._n_judged + n_ripe, LONGEST_BURST)
        return found


def _n_ripe(times_ns: Sequence[int], now_ns: int, pause_ns: int) -> int:
    """How many decisions are judged now: those of `SETTLED_NS` ago, but what was decided in a row together.

    Their order may be another than that of their entries. A row ends with a pause; for one without an end `LAG_NS` is
    waited.
    """
    until_ns = now_ns - SETTLED_NS
    n_ripe = n_whole = next((n for n, at_ns in enumerate(times_ns) if at_ns > until_ns), len(times_ns))
    if n_ripe and until_ns - times_ns[0] > LAG_NS:
        return n_ripe
    ends_ns = [*times_ns[1:], now_ns]
    while n_whole and ends_ns[n_whole - 1] - times_ns[n_whole - 1] < pause_ns:
        n_whole -= 1
    return n_whole
