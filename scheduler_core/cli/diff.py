"""`diff`: which pods land elsewhere when B is decided in place of A, and why the first of them does.

A and B are dumps, manifests, folders of them, or scenarios; one file is decided under two configurations. Pods of one
workload stand for each other. The exit status is 0 when no more pods than `--at-most` land elsewhere, no pod newly
waits and no expectation newly fails, 1 when they do, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler_core.cli import release_options, reports
from scheduler_core.cli.manifests import (
    named_by_file,
    read_configuration,
    read_manifests,
    scenario_among,
    scenario_of_dump,
    with_manifests,
)
from scheduler_core.clock import SECOND_NS, measure_ns
from scheduler_core.objects.reading import Posted
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import Problem, Scenario, ScenarioError, ScenarioRun, load_scenario, run_scenario
from scheduler_core.scenario import difference as ends
from scheduler_core.version import ENGINE_VERSION

SAME, DIFFERENT = 0, 1
_SHOWN = 40
_POINTS = 5

_COUNTED = (
    (ends.NEWLY_PENDING, "newly waits", "newly wait"),
    (ends.NEW_PENDING, "is new and waits", "are new and wait"),
    (ends.NEWLY_EVICTED, "is newly evicted", "are newly evicted"),
    (ends.NEWLY_PLACED, "waits no longer", "wait no longer"),
    (ends.NEW, "is new and lands", "are new and land"),
    (ends.GONE, "is not there any more", "are not there any more"),
)
_BECAUSE = {
    ends.NODE_MISSING: "its node {before} is not there any more",
    ends.NODE_NEW: "{after} is a new node, and it has room or more points",
    ends.REJECTED: "{why.plugin} now rejects {before}{others}{reason}",
    ends.ADMITTED: "{why.plugin} no longer rejects {after}{others}{reason}",
    ends.POINTS: "{after} now has {points[1]:,} points, {before} {points[0]:,}; {why.plugin} makes the difference",
    ends.DRAW: "equals are drawn, and the draw came out otherwise",
    ends.NO_NODE: "no node takes it{reason}",
    ends.EVICTED: "{why.reason} preempts it",
    ends.NOT_DECIDED: "it is on {present} from the start in one of them",
}
_MIRROR = "kubernetes.io/config.mirror"
_WAITING = (ends.NEWLY_PENDING, ends.NEW_PENDING, ends.NEWLY_EVICTED)


@dataclasses.dataclass(frozen=True)
class _Found:
    a: ScenarioRun
    b: ScenarioRun
    moved: list[ends.Landing]
    n_same: int
    first: ends.Landing | None
    decisions: ends.Divergence | None
    why: ends.Why | None
    names: tuple[str, str]

    def count(self, *kinds: str) -> int:
        return sum(one.kind in kinds for one in self.moved)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    started_ns = measure_ns()
    found = _run(options)
    report = _report(options, found, (measure_ns() - started_ns) / SECOND_NS)
    reports.write(options, report)
    fails = any(case.fails or (options.strict and case.known) for case in report.cases)
    reports.show(options, _document(found, report), _lines(found, report), indent=1)
    return DIFFERENT if fails else SAME


def _run(options: argparse.Namespace) -> _Found:
    files, configs = options.files, options.config
    if len(files) > 2:
        raise ScenarioError([Problem("FILE", f"one or two files are compared, not {len(files)}")])
    if len(configs) > 2:
        raise ScenarioError([Problem("--config", f"at most two are compared, not {len(configs)}")])
    if files == ["-"]:
        raise ScenarioError([Problem("FILE", "standard input can be read once only; name a file", "-")])
    if len(files) == 1 and not configs and not options.apply:
        raise ScenarioError(
            [Problem("FILE", "one file is compared under --config or with --apply", files[0])]
        )
    name_a, name_b = files[0], files[-1]
    config_b = configs[-1] if configs else None
    config_a = configs[0] if len(configs) == 2 or (len(files) == 2 and configs) else None
    a = run_scenario(_scenario(options, name_a, config_a, ()))
    b = run_scenario(_scenario(options, name_b, config_b, options.apply))
    for name, run in ((name_a, a), (name_b, b)):
        for note in run.notes if name_a != name_b or run is b else ():
            print(f"note: {name}: {note}", file=sys.stderr)
    moved, n_same = ends.landings(a, b)
    first = next((one for one in moved if one.kind not in (ends.NEW, ends.GONE)), None)
    decisions = ends.decisions_of_landing(a, b, first) if first else None
    why = ends.why_elsewhere(a, b, first, decisions) if first else None
    names = (
        (name_a, name_b) if name_a != name_b else (config_a or name_a, config_b or f"{name_b} with --apply")
    )
    return _Found(a, b, moved, n_same, first, decisions, why, names)


def _scenario(options: argparse.Namespace, name: str, config: str | None, apply: Sequence[str]) -> Scenario:
    """A side as a scenario.

    What is applied to a dump is applied when all has settled, as it would be to the cluster itself; to a scenario as
    `replay --apply` does.
    """
    more: dict[str, Any] = {} if options.seed is None else {"seed": options.seed}
    shared, notes = read_manifests(options.cluster)
    own, own_notes = read_manifests([name], scenarios=True)
    applied, more_notes = read_manifests(apply)
    for note in dict.fromkeys((*notes, *own_notes, *more_notes)):
        print(f"note: {note}", file=sys.stderr)
    came_from: dict[int, Posted] = {}
    whole = scenario_among(own)
    if config:
        written = whole.manifest.get("kubernetesRelease") if whole else None
        release = release_options.named(options.release or written, options.feature_gates, DEFAULT)
        more["scheduler"] = read_configuration(config, release, convert=options.convert_config)
    if whole is not None:
        if options.anew:
            raise ScenarioError(
                [Problem("--anew", "is for dumps; a scenario says what is on its nodes", name)]
            )
        document: dict[str, Any] = {**whole.manifest, **more}
        objects = document.get("objects") or []
        # One that is misshapen is left to the reader of scenarios, who says what is wrong with it.
        if isinstance(objects, list) and all(isinstance(item, Mapping) for item in objects):
            kept = [
                dataclasses.replace(whole, manifest=dict(item), prefix=f"objects[{place}]")
                for place, item in enumerate(objects)
            ]
            document, came_from = with_manifests({**document, "objects": []}, [*shared, *kept])
            document, in_place = with_manifests(document, applied)
            came_from |= in_place
    else:
        merged, came_from = with_manifests({"objects": []}, [*shared, *own])
        manifests = list(merged["objects"])
        if options.anew:
            manifests = [_off_its_node(item) for item in manifests]
        document = scenario_of_dump(manifests, **{"kubernetesRelease": DEFAULT.name, "seed": 0} | more)
        if applied:
            steps = document.get("steps") or [{"run": "idle"}]
            document["steps"] = [*steps, {"apply": [item.manifest for item in applied]}, {"run": "idle"}]
    try:
        return release_options.with_release(load_scenario(document), options)
    except ScenarioError as error:
        raise named_by_file(error, came_from, whole) from None


def _off_its_node(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod before it was scheduled; static pods stay on their nodes."""
    meta, spec, status = (manifest.get(key) or {} for key in ("metadata", "spec", "status"))
    annotations: Any = (meta.get("annotations") or {}) if isinstance(meta, Mapping) else None
    if manifest.get("kind") != "Pod" or not all(
        isinstance(part, Mapping) for part in (annotations, spec, status)
    ):
        return manifest  # of a pod that is misshapen its reader says what is wrong with it
    if _MIRROR in annotations or status.get("phase") in ("Succeeded", "Failed"):
        return manifest
    freed = {key: value for key, value in spec.items() if key != "nodeName"}
    return {key: value for key, value in manifest.items() if key != "status"} | {"spec": freed}


# ---- words


def _sentence(found: _Found) -> str:
    """The verdict, without its period."""
    n_moved, first = found.count(ends.MOVED), found.first
    told = []
    if n_moved:
        told.append(f"{_pods(n_moved)} would land elsewhere")
    for kind, one, more in _COUNTED:
        number = found.count(kind)
        if number:
            told.append(f"{_pods(number) if not told else f'{number:,}'} {one if number == 1 else more}")
    if not told:
        stay = "the one pod stays" if found.n_same == 1 else f"all {found.n_same:,} stay"
        return f"no pod would land elsewhere; {stay}" if found.n_same else "there is no pod"
    said = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    if first is None or found.why is None:
        return said
    n_others = len(found.moved) - found.count(ends.NEW, ends.GONE)
    subject = "" if n_others == 1 else f"; the first, {first.name},"
    return f"{said}{subject} because {_because(found, first, found.why)}"


def _pods(number: int) -> str:
    return f"{number:,} pod{'' if number == 1 else 's'}"


def _because(found: _Found, landing: ends.Landing, why: ends.Why) -> str:
    before, after = landing.before, landing.after
    reason = f" ({why.reason})" if why.reason else ""
    others = f" and {why.n_nodes - 1:,} more node{'' if why.n_nodes == 2 else 's'}" if why.n_nodes > 1 else ""
    present = before or after
    return _BECAUSE[why.kind].format(
        before=before, after=after, present=present, why=why, points=why.points, reason=reason, others=others
    )


def _where(node: str) -> str:
    return node or "no node"


def _report(options: argparse.Namespace, found: _Found, took_s: float) -> reports.Report:
    n_moved = found.count(ends.MOVED)
    waiting = [one for one in found.moved if one.kind in _WAITING]
    named = ", ".join(one.name for one in waiting[:3]) + (
        f" and {len(waiting) - 3:,} more" if len(waiting) > 3 else ""
    )
    cases = [
        reports.Case(
            "placement", n_moved <= options.at_most, f"{n_moved:,} elsewhere, at most {options.at_most:,}"
        ),
        reports.Case(
            "nothing-newly-waits", not waiting, f"{len(waiting):,} newly wait: {named}" if waiting else "0"
        ),
    ]
    before = {finding.path: finding for finding in found.a.findings}
    for finding in found.b.findings:
        other = before.get(finding.path)
        known = not finding.holds and other is not None and not other.holds
        said = "" if other is None else other.sentence
        cases.append(reports.Case(finding.path, finding.holds, finding.sentence, finding.cycle, known, said))
    sentence = _sentence(found)
    headline = sentence[:1].upper() + sentence[1:]
    return reports.Report(
        headline, "diff", options.files[-1], cases, _markdown(found), _ground(found), took_s
    )  # fmt: skip


def _ground(found: _Found) -> str:
    a, b = found.a, found.b
    return (
        f"Decided by engine {ENGINE_VERSION} as kube-scheduler {b.release.patch}: {len(a.cycles):,} and "
        f"{len(b.cycles):,} decisions, digests {a.digest[:12]} and {b.digest[:12]}"
    )


def _markdown(found: _Found) -> list[str]:
    if not found.moved:
        return []
    lines = []
    if found.first is not None:
        lines += ["### The first that differs", "", f"**{reports.cell(found.first.name)}**", ""]
        lines += [f"- {reports.cell(line)}" for line in _decision_lines(found)]
        lines.append("")
    lines += ["| Pod | Before | After |", "|---|---|---|"]
    for one in found.moved[:_SHOWN]:
        cells = (one.name, _where(one.before) if one.was else "", _where(one.after) if one.pod else "")
        lines.append("| " + " | ".join(reports.cell(text) for text in cells) + " |")
    lines.append("")
    if len(found.moved) > _SHOWN:
        lines += [f"{_SHOWN} of {len(found.moved):,} shown.", ""]
    lines += [f"{_pods(found.n_same)} end{'s' if found.n_same == 1 else ''} alike.", ""]
    return lines


def _decision_lines(found: _Found) -> list[str]:
    """The first decision that differs on either side, and the points that part its nodes."""
    first, parted = found.first, found.decisions
    if first is None:
        return []
    lines = []
    for side, (name, cycle) in enumerate(zip(found.names, first.cycles, strict=True)):
        said = "not decided" if parted is None or cycle is None else (parted.a, parted.b)[side]
        lines.append(f"{name}, cycle {cycle}: {said}" if cycle else f"{name}: {said}")
    nodes = (first.before, first.after)
    scores = [one for one in (parted.scores if parted else ()) if one.node in nodes][:_POINTS]
    lines += [
        f"{one.plugin} gives {one.node} {_points(one.a)} before, {_points(one.b)} after" for one in scores
    ]
    return lines


def _points(points: int | None) -> str:
    return "no points" if points is None else f"{points:,}"


def _lines(found: _Found, report: reports.Report) -> Iterator[str]:
    yield f"{report.headline}."
    if found.moved:
        yield f"{_pods(found.n_same)} end{'s' if found.n_same == 1 else ''} alike."
    yield from (f"  {line}" for line in _decision_lines(found))
    yield from reports.first(map(_line, found.moved), _SHOWN, len(found.moved))
    for case in report.cases:
        if not case.holds:
            yield f"{case.result.upper()} {case.name}: {case.said}"
    yield f"{report.ground}."


def _line(one: ends.Landing) -> str:
    counted = {kind: singular for kind, singular, _ in _COUNTED}
    if one.was and one.pod:
        renamed = f" (was {one.was})" if one.was != one.pod else ""
        return f"{one.pod}: {_where(one.before)} -> {_where(one.after)}{renamed}"
    return f"{one.name} {counted[one.kind]}" + (f" on {one.after}" if one.after else "")


def _document(found: _Found, report: reports.Report) -> dict[str, Any]:
    first, parted = found.first, found.decisions
    return {
        "status": "differs" if any(case.fails for case in report.cases) else "holds",
        "sentence": f"{report.headline}.",
        "counts": {kind: found.count(kind) for kind in ends.KINDS},
        "same": found.n_same,
        "pods": [dataclasses.asdict(one) for one in found.moved],
        "first": None
        if first is None
        else {
            "pod": first.name,
            "why": dataclasses.asdict(found.why) if found.why else None,
            "a": parted.a if parted else None,
            "b": parted.b if parted else None,
        },
        "expectations": [dataclasses.asdict(case) for case in report.cases],
        "digests": [found.a.digest, found.b.digest],
        "engine": ENGINE_VERSION,
    }
