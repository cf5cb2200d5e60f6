"""`import-incident`: what schedulers of a cluster decided, each decision beside ours.

Of audit logs, of what `kube-scheduler-playground follow` recorded, or of what a scheduler reports: `kubectl get events
-o json`, and its log lines, beside a dump. What they do not say is counted and named. A decision is judged on the
objects that the API server had, and where ours differs on those a moment before. The exit status is 0 when none
differs, 1 when some do, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scheduler_core.cli import manifests, release_options, reports
from scheduler_core.errors import InvalidObject
from scheduler_core.incident.as_scenario import scenario_of
from scheduler_core.incident.changes import Incident
from scheduler_core.incident.sources import read_incident
from scheduler_core.incident.suspects import words_of
from scheduler_core.incident.verdicts import JudgedDecision, JudgedIncident, judge_incident
from scheduler_core.objects.fields import format_time_ns, parse_time_ns
from scheduler_core.releases import DEFAULT, Release
from scheduler_core.scenario import scenario_document
from scheduler_core.scenario.redact import redact

REFUSED = (InvalidObject, EOFError)
_SHOWN = 20
VERDICT_WORDS = {
    "agree": "as ours", "tie": "another of equals", "different": "another node", "infeasible": "does not fit",
    "unknown": "cannot be known",
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    release = release_options.named(options.release, options.feature_gates, DEFAULT)
    config = None
    if options.config:
        config = manifests.read_configuration(options.config, release, convert=options.convert_config)
    posted, _ = manifests.read_manifests(options.dump) if options.dump else ([], ())
    incident = read_incident([Path(name) for name in options.logs], [one.manifest for one in posted])
    verdicts = judge_incident(incident, config=config, release=release, seed=options.seed)
    if options.scenario:
        write_scenario(options, incident, release, config)
    reports.show(options, _document(incident, verdicts), _lines(incident, verdicts, bool(config)), indent=1)
    return 1 if verdicts.unlike else 0


def write_scenario(
    options: argparse.Namespace, incident: Incident, release: Release, config: Mapping[str, Any] | None
) -> None:
    """Write an incident, or the span that is asked for, as a scenario."""
    scenario = scenario_of(
        incident, release=release, config=config, recorded=options.as_recorded,
        from_ns=_time(options.since) or 0, to_ns=_time(options.until),
    )  # fmt: skip
    document = scenario_document(redact(scenario).scenario if options.redact else scenario)
    Path(options.scenario).write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _time(text: str | None) -> int | None:
    """A time of the command line.

    Raises
    ------
    InvalidObject
    """
    try:
        return None if text is None else parse_time_ns(text)
    except ValueError:
        raise InvalidObject("--from/--to", text, "is no time such as 2026-11-20T02:10:00Z") from None


def _document(incident: Incident, verdicts: JudgedIncident) -> dict[str, Any]:
    return {
        "events": incident.n_events,
        "levels": dict(incident.levels),
        "begins": format_time_ns(incident.begins_ns),
        "ends": format_time_ns(incident.ends_ns),
        "notKnown": dict(incident.missing),
        "counts": dict(verdicts.counts),
        "decisions": [one.document() for one in verdicts.all],
    }


def _lines(incident: Incident, verdicts: JudgedIncident, is_configured: bool) -> Iterator[str]:
    levels = ", ".join(f"{n:,} {level}" for level, n in incident.levels.most_common())
    begins, ends = format_time_ns(incident.begins_ns), format_time_ns(incident.ends_ns)
    yield f"{incident.n_events:,} events ({levels}), {begins} to {ends}."
    kinds = Counter(key[0] for key in incident.before)
    before = ", ".join(f"{kinds[kind]:,} {what}" for kind, what in (("Node", "nodes"), ("Pod", "pods")))
    yield f"There before: {before}."
    authors = Counter(one.author for one in incident.decisions)
    for author, n in authors.most_common():
        yield f"{n:,} decision{'s' if n != 1 else ''} by {author}."
    yield counted(verdicts.counts)
    if verdicts.unlike:
        by = (
            "the configuration given"
            if is_configured
            else "the default configuration (--config says another)"
        )
        yield f"Not as ours, by {by}:"
        yield from reports.first(map(line_of, verdicts.unlike), _SHOWN, len(verdicts.unlike))
    unknown = Counter(
        reason for one in verdicts.all if one.found.verdict == "unknown" for reason in one.found.reasons
    )
    for what, n in (incident.missing + unknown).most_common():
        yield f"Not known: {f'{n:,} ' if n > 1 else ''}{what}."


def counted(counts: Mapping[str, int]) -> str:
    """How many decisions there are of each verdict, in a line."""
    return "; ".join(f"{VERDICT_WORDS[name]} {n:,}" for name, n in counts.items())


def decision_of(one: JudgedDecision) -> str:
    """A decision as its scheduler made it, in a line."""
    made = one.decision
    did = {"bind": f"bound to {made.node}", "preempt": f"nominated to {made.node}", "no-node": "no node"}[
        made.kind
    ]
    return f"{format_time_ns(made.at_ns)} {made.namespace}/{made.name} {did}"


def line_of(one: JudgedDecision) -> str:
    """A decision beside ours in a line."""
    ours = one.found
    why = f": {'; '.join(ours.reasons)}" if ours.reasons else ""
    by = f" by {ours.plugin}" if ours.plugin else ""
    points = f" ({ours.points} points against {ours.our_points})" if ours.points is not None else ""
    cause = f". {words_of(ours.cause, ours.verdict)}" if ours.cause is not None else ""
    return f"{decision_of(one)}, ours {ours.node or 'none'}{by}{why}{points}{cause}"
