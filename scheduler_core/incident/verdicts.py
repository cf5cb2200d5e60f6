"""Every decision of an incident beside ours, and the incident as a scenario in which ours decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.incident.audit import DELETE, Incident, Key, LoggedChange, LoggedDecision
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.releases import Release
from scheduler_core.scenario.types import API_VERSION, KIND
from scheduler_core.whatif.judge import (
    AGREE,
    DIFFERENT,
    INFEASIBLE,
    TIE,
    UNKNOWN,
    Judgement,
    Start,
    judged,
)

UNLIKE: Final = (DIFFERENT, INFEASIBLE)


@dataclass(frozen=True, slots=True)
class JudgedDecision:
    """A decision beside ours.

    Attributes
    ----------
    behind
        Changes that the scheduler's cache did not have yet, if that explains it; 0 for none.
    """

    decision: LoggedDecision
    found: Judgement
    behind: int = 0

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
            "behind": self.behind,
        }
        return document | (
            {"points": ours.points, "ourPoints": ours.our_points} if ours.points is not None else {}
        )


@dataclass(slots=True)
class JudgedIncident:
    """JudgedIncident in the order of the decisions, and how many there are of each."""

    all: list[JudgedDecision] = field(default_factory=list)

    @property
    def counts(self) -> Mapping[str, int]:
        found = Counter(one.found.verdict for one in self.all)
        return {name: found[name] for name in (AGREE, TIE, DIFFERENT, INFEASIBLE, UNKNOWN)}

    @property
    def unlike(self) -> list[JudgedDecision]:
        return [one for one in self.all if one.found.verdict in UNLIKE]


def judge_incident(
    incident: Incident, *, config: Mapping[str, Any] | None = None, release: Release, seed: int = 0
) -> JudgedIncident:
    """Judge each decision on the state that the API server had, and, where ours differs, on those before it.

    A scheduler decides on what its informers have told it by then. A decision that ours would take on one of the states
    a moment earlier (`LAG_STATES` changes, `LAG_NS`) is none to blame.
    """
    start = Start(config=config, release=release.document(), objects=tuple(incident.before.values()))
    decisions = incident.decisions
    asked = [
        one.asked(one.judged_seq, number, one.burst)
        for number, one in enumerate(decisions)
        if not one.unknown
    ]
    asked.sort(key=lambda item: (item.seq, item.key))
    # A trace of each would be the largest part of it all.
    verdicts = judged(start, incident.changes(), asked, seed=seed)
    found = {one.key: replace(one, trace=None) for one in verdicts}
    late = [
        decisions[number].asked(seq, number, -(place + 1) * len(decisions) - number)
        for number, one in found.items()
        if one.verdict in UNLIKE
        for place, seq in enumerate(reversed(decisions[number].earlier))
    ]
    late.sort(key=lambda item: (item.seq, item.key))
    behind: dict[int, tuple[Judgement, int]] = {}
    for item, verdict in (
        zip(late, judged(start, incident.changes(), late, seed=seed), strict=True) if late else ()
    ):
        if verdict.agrees:
            behind[item.key] = (
                replace(verdict, trace=None),
                sum(seq >= item.seq for seq in decisions[item.key].earlier),
            )
    result = JudgedIncident()
    for number, one in enumerate(decisions):
        verdict = found.get(number) or Judgement(UNKNOWN, reasons=(one.unknown,))
        result.all.append(JudgedDecision(one, *behind.get(number, (verdict, 0))))
    return result


# ---- as a scenario


def scenario_of(
    incident: Incident, *, release: Release, config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The incident as a scenario's document: what was there, what happened and when; ours decide.

    What schedulers and kubelets did is left out. A pod that ended, or was evicted by no scheduler, is deleted.
    """
    document: dict[str, Any] = {
        "apiVersion": API_VERSION, "kind": KIND, "name": "incident", "kubernetesRelease": release.name,
        "start": format_time_ns(incident.begins_ns), "objects": [*incident.before.values()],
    }  # fmt: skip
    if config is not None:
        document["scheduler"] = config
    steps: list[dict[str, Any]] = []
    now_ns = incident.begins_ns
    for at_ns, step in _steps(incident):
        if at_ns > now_ns:
            steps.append({"advance": f"{at_ns - now_ns}ns"})
            now_ns = at_ns
        steps.append(step)
    return document | {"steps": [*steps, {"run": "idle"}]}


def _steps(incident: Incident) -> Iterator[tuple[int, dict[str, Any]]]:
    there: dict[Key, Any] = {}
    for manifest in incident.before.values():
        there[_key(manifest)] = _input(manifest)
    for change in incident.changes():
        yield from ((change.at_ns, step) for step in _step(change, there))


def _step(change: LoggedChange, there: dict[Key, Any]) -> Iterator[dict[str, Any]]:
    if change.is_decided:
        return
    if change.kind == DELETE:
        key = (change.payload["kind"], change.payload["namespace"], change.payload["name"])
        if there.pop(key, None) is not None:
            yield _deletion(key)
        return
    manifest = change.payload["manifest"]
    key, now = _key(manifest), _input(manifest)
    if key[0] == "Pod" and key in there:
        ended = (manifest.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if ended or manifest["metadata"].get("deletionTimestamp"):
            del there[key]
            yield _deletion(key)
    elif there.get(key) != now:
        there[key] = now
        yield {"apply": manifest}


def _deletion(key: Key) -> dict[str, Any]:
    kind, namespace, name = key
    return {"delete": {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})}


def _key(manifest: Mapping[str, Any]) -> Key:
    meta = manifest["metadata"]
    return str(manifest["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def _input(manifest: Mapping[str, Any]) -> Any:
    """What of an object a person or a controller sets: no heartbeat, no version."""
    meta, status = manifest["metadata"], manifest.get("status") or {}
    return (
        {name: value for name, value in manifest.items() if name not in ("metadata", "status")},
        meta.get("labels"), meta.get("annotations") if manifest["kind"] != "Node" else None,
        status.get("allocatable"), status.get("capacity"),
        [(one.get("type"), one.get("status")) for one in status.get("conditions") or ()],
    )  # fmt: skip
