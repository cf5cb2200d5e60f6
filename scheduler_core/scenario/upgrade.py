"""What an upgrade changes: one scenario decided by two releases, each difference under the cause that was proved.

The newer release is brought to the older one step by step. At the first cycle that is decided otherwise, the fewest
gates and changes are looked for that, put back, have it decided as before; then the whole run is made with them put
back, and so on until nothing differs. A cause is proved by the run with it alone put back; what vanishes in no such run
vanishes with those found before it, which is said. An upgrade over several releases is decided step by step as well.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from scheduler_core.releases import NOT_MODELLED, Release, ReleaseDifference, differences
from scheduler_core.scenario.difference import (
    MOVED,
    NEWLY_EVICTED,
    NEWLY_PENDING,
    NEWLY_PLACED,
    Divergence,
    compare,
    full_cycle,
    two_decisions,
)
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.run import run, run_prefix
from scheduler_core.scenario.types import Scenario

OTHER_WORDS, OTHER_COURSE = "otherWords", "otherCourse"
_WORDS: Final = {
    MOVED: ("lands on another node", "land on another node"),
    NEWLY_PENDING: ("becomes pending", "become pending"),
    NEWLY_PLACED: ("finds a node", "find a node"),
    NEWLY_EVICTED: ("is evicted", "are evicted"),
    OTHER_WORDS: ("stays pending with a different message", "stay pending with a different message"),
    OTHER_COURSE: ("ends the same after different decisions", "end the same after different decisions"),
}
KINDS: Final = tuple(_WORDS)

Progress = Callable[[str, float], None]
"""Is told what is being run, and the share that is done; may raise to end it."""


@dataclass(frozen=True, slots=True)
class UpgradeDifference:
    """A pod of which the two runs say something else.

    Attributes
    ----------
    kind : str
        One of `KINDS`: another node; no node, or one, only afterwards; evicted only afterwards; the same end in other
        words; the same end after other decisions.
    before, after : str
        The node, or the message of a pod without one.
    cycle : int
        Of its last decision in the run after the upgrade, 0 for none.
    follows : bool
        It is not the first decision that differs: pods before it stand elsewhere.
    """

    pod: str
    kind: str
    before: str
    after: str
    cycle: int
    follows: bool

    @property
    def ends_elsewhere(self) -> bool:
        """Whether the pod ends on another node, or on none."""
        return self.kind in (MOVED, NEWLY_PENDING, NEWLY_PLACED, NEWLY_EVICTED)


@dataclass(frozen=True, slots=True)
class Cause:
    """Gates and changes that, put back, take differences away.

    Attributes
    ----------
    toggles : tuple of ReleaseDifference
        More than one where only together they make the difference.
    proved : str
        `alone`: shown by a run with this alone put back; `together`: by one with all of these put back, and not by
        the runs with fewer.
    differences : tuple of UpgradeDifference
        What moves first; in the order of the run.
    """

    toggles: tuple[ReleaseDifference, ...]
    proved: str
    differences: tuple[UpgradeDifference, ...]

    @property
    def name(self) -> str:
        """For people."""
        return " and ".join(toggle.name for toggle in self.toggles)

    def document(self, limit: int | None) -> dict[str, Any]:
        """JSON-able, with so many differences at most."""
        shown = [dataclasses.asdict(one) for one in self.differences[:limit]]
        return {"name": self.name, "n": len(self.differences), "differences": shown}


@dataclass(frozen=True, slots=True)
class UpgradePreview:
    """What an upgrade changes.

    Attributes
    ----------
    n_pods : int
        Of either run.
    causes : tuple of Cause
        The one with most differences first.
    unexplained : tuple of UpgradeDifference
        That no gate and no change takes away: a fault of this engine, and empty otherwise.
    parted : Divergence or None
        The first decision that differs, with every score.
    n_runs : int
        Whole runs that were made.
    steps : tuple of UpgradePreview
        The same from each release on the way to the next; empty where there is none between.
    """

    before: Release
    after: Release
    n_pods: int
    n_cycles: tuple[int, int]
    n_unbound: tuple[int, int]
    causes: tuple[Cause, ...]
    unexplained: tuple[UpgradeDifference, ...]
    parted: Divergence | None = field(repr=False)
    n_runs: int = 2
    steps: tuple[UpgradePreview, ...] = ()

    @property
    def differences(self) -> list[UpgradeDifference]:
        """All of them."""
        return [one for cause in self.causes for one in cause.differences] + list(self.unexplained)

    @property
    def between(self) -> list[ReleaseDifference]:
        """All in which the two releases differ, whether it changes something here or not."""
        return differences(self.before, self.after)

    def counts(self) -> dict[str, int]:
        """How many differences there are of each kind."""
        found = Counter(one.kind for one in self.differences)
        return {kind: found[kind] for kind in KINDS}

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        counts, name = self.counts(), self.after.title.removeprefix("Kubernetes ")
        said = [
            f"{counts[kind]:,} {one if counts[kind] == 1 else many}"
            for kind, (one, many) in _WORDS.items()
            if counts[kind]
        ]
        if not said:
            return f"Upgrading to {name} changes no decision: {self.n_pods:,} of {self.n_pods:,} pods end the same."
        together = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
        return f"Upgrading to {name} changes {len(self.differences):,} of {self.n_pods:,} pods: {together}."

    @property
    def expectation(self) -> dict[str, Any]:
        """What a scenario expects so that it fails once the upgrade has more pods end elsewhere than now."""
        n_elsewhere = sum(one.ends_elsewhere for one in self.differences)
        gates = {name: on for name, on in self.after.switched.items() if name in self.after.gates}
        wanted = {"kubernetesRelease": self.after.name, **({"featureGates": gates} if gates else {})}
        return {"upgrade": wanted, **({"count": {"max": n_elsewhere}} if n_elsewhere else {})}

    def document(self, limit: int | None = None) -> dict[str, Any]:
        """JSON-able.

        Parameters
        ----------
        limit : int, optional
            So many differences of each cause at most; `n` counts all.
        """
        parted = self.parted
        return {
            "before": self.before.document(),
            "after": self.after.document(),
            "sentence": self.sentence,
            "same": not self.differences,
            "pods": self.n_pods,
            "cycles": list(self.n_cycles),
            "unbound": list(self.n_unbound),
            "counts": self.counts(),
            "causes": [
                {
                    **cause.document(limit),
                    "toggles": [{**dataclasses.asdict(one), "is_gate": one.is_gate} for one in cause.toggles],
                    "proved": cause.proved,
                }
                for cause in self.causes
            ],
            "unexplained": [dataclasses.asdict(one) for one in self.unexplained[:limit]],
            "between": [dataclasses.asdict(one) for one in self.between],
            "steps": [
                {
                    "before": step.before.document(),
                    "after": step.after.document(),
                    "sentence": step.sentence,
                    "counts": step.counts(),
                    "causes": [cause.document(limit) for cause in step.causes],
                }
                for step in self.steps
            ],
            "firstDivergence": None
            if parted is None
            else {
                "cycle": parted.number,
                "pod": parted.pod,
                "before": parted.a,
                "after": parted.b,
                "totals": {node: list(totals) for node, totals in list(parted.totals.items())[:20]},
                "scores": [dataclasses.asdict(score) for score in parted.scores[:40]],
                "reasons": {node: list(said) for node, said in list(parted.reasons.items())[:40]},
            },
            "runs": self.n_runs,
            "test": self.expectation,
        }


def toggles_between(older: Release, newer: Release) -> list[ReleaseDifference]:
    """What can be switched of that in which two releases differ."""
    return [
        one
        for one in differences(older, newer)
        if one.known != NOT_MODELLED and (not one.is_gate or older.gate(one.name) is not newer.gate(one.name))
    ]


def put_back(newer: Release, older: Release, toggles: Iterable[ReleaseDifference]) -> Release:
    """The newer release with some gates and changes as in the older one."""
    return newer.with_switched(
        {one.name: older.gate(one.name) if one.is_gate else older.has(one.name) for one in toggles}
    )


def preview(
    scenario: Scenario,
    before: Release,
    after: Release,
    *,
    through: Sequence[Release] = (),
    first_of_ties: bool = False,
    progress: Progress | None = None,
) -> UpgradePreview:
    """Decide a scenario by two releases, and find the cause of every difference.

    Parameters
    ----------
    through : sequence of Release
        Releases on the way (`releases.steps_between`), each of which is decided by and compared with the next too.
    first_of_ties : bool
        Equals are taken by name, as in the recorded production trace; by the scenario's seed otherwise.

    Raises
    ------
    ScenarioError
        It cannot be run in one of them.
    """
    told, way = progress or _quiet, [before, *through, after]
    pairs = list(pairwise(way)) if through else []
    n_searches, runs = 1 + len(pairs), dict[Release, ScenarioRun]()
    found = []
    for place, (one, other) in enumerate([(before, after), *pairs]):

        def progressed(step: str, share: float, place: int = place) -> None:
            told(step, (place + share) / n_searches)

        found.append(_Search(scenario, one, other, first_of_ties, progressed, runs).preview())
    return dataclasses.replace(found[0], steps=tuple(found[1:]), n_runs=len(runs))


def _quiet(step: str, share: float) -> None:
    """Ignore progress."""


Ends = Mapping[str, tuple[str, str, str]]
"""Pod -> node, message, and the digests of its decisions."""


class _Search:
    def __init__(
        self,
        scenario: Scenario,
        before: Release,
        after: Release,
        first_of_ties: bool,
        progress: Progress,
        runs: dict[Release, ScenarioRun],
    ) -> None:
        # What was recorded, and what an end must be, is of the scenario's own release.
        steps = tuple(step for step in scenario.steps if step.upgrade is None and step.expect is None)
        self.scenario = dataclasses.replace(scenario, decisions=None, expect=(), steps=steps)
        self.before, self.after = before, after
        self.first_of_ties = first_of_ties
        self.progress = progress
        is_upgrade = set(before.changes) <= set(after.changes)
        self.newer, self.older = (after, before) if is_upgrade else (before, after)
        self.toggles = toggles_between(self.older, self.newer)
        self.runs = runs
        self.share = 0.0

    def preview(self) -> UpgradePreview:
        first = self._run(self.before, f"{self.before.name}")
        second = self._run(self.after, f"{self.after.name}")
        parted = compare(first, second)
        ends = _ends(first), _ends(second)
        differences = _differences(first, second, *ends, parted)
        pair = (first, second) if self.newer is self.after else (second, first)
        chain = self._chain(*pair)
        older_ends = ends[0] if self.older is self.before else ends[1]
        causes, rest = self._attributed(chain, differences, older_ends)
        return UpgradePreview(
            self.before,
            self.after,
            len({*ends[0], *ends[1]}),
            (len(first.cycles), len(second.cycles)),
            (_unbound(ends[0]), _unbound(ends[1])),
            tuple(sorted(causes, key=lambda cause: -len(cause.differences))),
            tuple(rest),
            parted,
        )

    # ---- runs

    def _run(self, release: Release, what: str) -> ScenarioRun:
        self.progress(f"deciding as {what}", self.share)
        if release not in self.runs:
            self.runs[release] = run(
                self.scenario, full_traces=False, release=release, first_of_ties=self.first_of_ties
            )
        self.share += (1 - self.share) * 0.3
        return self.runs[release]

    def _chain(
        self, older: ScenarioRun, newer: ScenarioRun
    ) -> list[tuple[tuple[ReleaseDifference, ...], Ends]]:
        """Toggles in the order they are found, each with how pods end once they and those before are put back."""
        found: list[tuple[tuple[ReleaseDifference, ...], Ends]] = []
        back: list[ReleaseDifference] = []
        current = newer
        while True:
            parted = _first_other_digest(older, current)
            left = [one for one in self.toggles if one not in back]
            if parted is None or not left:
                return found
            traces = [
                full_cycle(run, run.cycles[parted - 1]) if parted <= len(run.cycles) else None
                for run in (older, current)
            ]
            wanted = self._needed(parted, back, _likely_first(left, two_decisions(traces[0], traces[1])))
            if not wanted:
                return found
            back += wanted
            current = self._run(
                put_back(self.newer, self.older, back),
                f"{self.newer.name} with {', '.join(one.name for one in wanted)} put back",
            )
            found.append((tuple(wanted), _ends(current)))

    def _needed(
        self, number: int, back: Sequence[ReleaseDifference], left: Sequence[ReleaseDifference]
    ) -> list[ReleaseDifference]:
        """The fewest of the toggles left that, put back too, have a cycle decided as before; none if all do not.

        Each is the last one of the shortest row of toggles that does: without it the row before it does not.
        """

        def digests(release: Release) -> list[str]:
            self.progress(f"looking for what decides cycle {number}", self.share)
            return run_prefix(self.scenario, number, release=release, first_of_ties=self.first_of_ties)

        tried: dict[tuple[int, frozenset[ReleaseDifference]], bool] = {}

        def agrees(some: Sequence[ReleaseDifference]) -> bool:
            key = number, frozenset(some)
            if key not in tried:
                tried[key] = digests(put_back(self.newer, self.older, [*back, *some])) == wanted
            return tried[key]

        wanted = digests(self.older)
        needed: list[ReleaseDifference] = []
        rest = list(left)
        while True:
            # The shortest row of the rest that does: short ones are tried first.
            low, high = 0, min(1, len(rest))
            while not agrees([*needed, *rest[:high]]):
                if high == len(rest):
                    return []
                low, high = high + 1, min(high * 2 + 1, len(rest))
            while low < high:
                middle = (low + high) // 2
                if agrees([*needed, *rest[:middle]]):
                    high = middle
                else:
                    low = middle + 1
            if low == 0 and not needed and len(wanted) == number:
                # With nothing put back it is decided alike up to here: a pod that waited at Permit went on otherwise.
                number *= 2
                wanted = digests(self.older)
                continue
            if low == 0:
                return needed
            needed.append(rest[low - 1])
            rest = rest[: low - 1]
            if not rest or agrees(needed):
                return needed

    # ---- causes

    def _attributed(
        self,
        chain: Sequence[tuple[tuple[ReleaseDifference, ...], Ends]],
        differences: Sequence[UpgradeDifference],
        older: Ends,
    ) -> tuple[list[Cause], list[UpgradeDifference]]:
        left = list(differences)
        causes: list[Cause] = []
        alone: list[Ends] = []
        for place, (toggles, ends) in enumerate(chain):
            if place:
                release = put_back(self.newer, self.older, toggles)
                names = ", ".join(one.name for one in toggles)
                ends = _ends(self._run(release, f"{self.newer.name} with {names} alone put back"))
            alone.append(ends)
        for (toggles, _), ends in zip(chain, alone, strict=True):
            gone, left = _taken_away(left, [ends], older)
            if gone:
                causes.append(Cause(toggles, "alone", gone))
        for place in range(1, len(chain)):
            gone, left = _taken_away(left, [ends for _, ends in chain[place:]], older)
            if gone:
                toggles = tuple(toggle for some, _ in chain[: place + 1] for toggle in some)
                causes.append(Cause(toggles, "together", gone))
        return causes, left


def _taken_away(
    left: Sequence[UpgradeDifference], runs: Sequence[Ends], older: Ends
) -> tuple[tuple[UpgradeDifference, ...], list[UpgradeDifference]]:
    """The differences whose pods end in all these runs as in the older release, and the rest."""
    is_gone = [all(ends.get(one.pod) == older.get(one.pod) for ends in runs) for one in left]
    gone = tuple(one for one, gone in zip(left, is_gone, strict=True) if gone)
    return gone, [one for one, gone in zip(left, is_gone, strict=True) if not gone]


_WORD = re.compile(r"[A-Z]?[a-z]+")


def _likely_first(toggles: Sequence[ReleaseDifference], parted: Divergence) -> list[ReleaseDifference]:
    """The toggles, those whose names have most words in common with what differs first: only the order of a search."""
    plugins = {score.plugin for score in parted.scores if (score.a or 0) != (score.b or 0)}
    told = " ".join(
        (*plugins, parted.a, parted.b, *(text for pair in parted.reasons.values() for text in pair))
    )
    stems = _stems(told)
    # Words like `pod` stand in many names, and so tell little.
    shared = Counter(stem for toggle in toggles for stem in _stems(toggle.name))

    def in_common(toggle: ReleaseDifference) -> float:
        return sum(1 / shared[stem] for stem in sorted(_stems(toggle.name) & stems))

    return sorted(toggles, key=lambda one: -in_common(one))


def _stems(text: str) -> set[str]:
    return {word[:6].lower() for word in _WORD.findall(text)}


def _first_other_digest(a: ScenarioRun, b: ScenarioRun) -> int | None:
    """Number of the first cycle whose record differs, be it by points alone: what has to be put back for a proof."""
    for number, (one, other) in enumerate(zip(a.cycles, b.cycles, strict=False), 1):
        if one.digest != other.digest:
            return number
    shorter = min(len(a.cycles), len(b.cycles))
    return None if len(a.cycles) == len(b.cycles) else shorter + 1


def _ends(result: ScenarioRun) -> Ends:
    pods = result.pods()
    return {
        key: (facts.node, facts.message if not facts.node else "", _course(result, key))
        for key, facts in pods.items()
    }


def _course(result: ScenarioRun, pod: str) -> str:
    return " ".join(trace.digest[:16] for trace in result.cycles_of(pod))


def _unbound(ends: Ends) -> int:
    return sum(not node for node, _, _ in ends.values())


def _differences(
    a: ScenarioRun, b: ScenarioRun, before: Ends, after: Ends, parted: Divergence | None
) -> list[UpgradeDifference]:
    """What moves first, then what only says something else; each in the order of the second run."""
    evicted = {one.pod for one in b.evictions} - {one.pod for one in a.evictions}
    cycles = {trace.pod: trace.number for trace in b.cycles}
    first = None if parted is None else parted.cycles[1] or parted.number
    found = []
    for pod in {**after, **before}:
        old, new = before.get(pod, ("", "", "")), after.get(pod, ("", "", ""))
        if old == new:
            continue
        if pod in evicted:
            kind = NEWLY_EVICTED
        elif old[0] and new[0]:
            kind = MOVED if old[0] != new[0] else OTHER_COURSE
        elif old[0] or new[0]:
            kind = NEWLY_PENDING if old[0] else NEWLY_PLACED
        else:
            kind = OTHER_WORDS if old[1] != new[1] else OTHER_COURSE
        cycle = cycles.get(pod, 0)
        found.append(
            UpgradeDifference(
                pod, kind, old[0] or old[1], new[0] or new[1], cycle, first is not None and cycle > first
            )
        )
    return sorted(found, key=lambda one: (not one.ends_elsewhere, one.cycle or 2**63, one.pod))
