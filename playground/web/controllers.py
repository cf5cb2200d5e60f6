"""Controllers beside the scheduler: whether they are at rest, what each did and when, and why each node stays."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import ClusterError
from playground.clusters.history.controllers import (
    COMPONENTS,
    PROGRAMS,
    ControllersNow,
    KeptLoop,
    controller_run,
    controllers_now,
    program_words,
    set_program,
)
from playground.clusters.questions import newest_question
from playground.clusters.row_types import Cluster, Question
from playground.web.amounts import duration, since_start
from playground.web.looks import View
from playground.web.questions.views import question_context
from playground.web.requests import done, positive_int
from playground.web.timeline import Axis, controller_css, controller_name, run_lanes
from scheduler_core.sim.changes import ControllerRun
from scheduler_core.sim.outlook import LOOKS, NodeSentence, run_lines

SHOWN_NODES: Final = 50
MOST_DRAWN_STEPS: Final = 6
"""Of a loop with words beside the circle; of a longer one they are in the list alone."""
EXAMPLES: Final[Mapping[str, str]] = {
    "cluster-autoscaler": "--expander=least-waste\n--scale-down-unneeded-time=10m\n--nodes=1:10:web",
    "descheduler": "descheduling-interval: 5m\npolicy:\n  apiVersion: descheduler/v1alpha2\n  kind: DeschedulerPolicy",
    "karpenter": "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec: {}",
    "vertical-pod-autoscaler": "autoscalers:\n- {target: Deployment default/web, updateMode: InPlaceOrRecreate}",
}


def controllers(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """The page; POST turns a program on or off, or changes its settings."""
    problem, tried, status = "", {}, 200
    if "find" in request.POST:
        questions.ask(cluster=cluster, kind=QuestionKind.LOOPS, params={})
        return redirect(f"{reverse('web:controllers', args=[cluster.public_id])}#ends")
    if request.method == "POST":
        program, text = request.POST.get("program", ""), request.POST.get("text", "").strip()
        if program not in PROGRAMS:
            problem, status = f"program: {program[:40]!r} is not one of {', '.join(PROGRAMS)}", 400
        else:
            text = "" if "off" in request.POST else text.replace("\r\n", "\n")
            try:
                set_program(cluster, program, text)
            except ClusterError as error:
                problem, tried, status = error.message, {program: text}, error.status
            else:
                words = (
                    f"The {program} is on; it starts after 10 s of virtual time."
                    if text
                    else f"The {program} is off."
                )
                return done(request, words, "web:controllers", cluster.public_id)
    now = controllers_now(cluster)
    newest = newest_question(QuestionKind.LOOPS, cluster=cluster)
    context = question_context(request, cluster, newest) | {
        "now": now,
        "chips": [
            (controller_css(name), controller_name(name), program_words(name, text))
            for name, text in now.settings.items()
        ],
        "lanes": _lanes(now.runs, now.circle, cluster),
        "loop": None if now.circle is None else _loop(now.circle),
        "search": _search(newest),
        "run": _run(cluster, positive_int(request.GET.get("run"))),
        "nodes": _nodes(now.outlook.nodes, request.GET.get("q", "").strip()),
        "q": request.GET.get("q", "").strip(),
        "pods": _alike(now),
        "choice": _choice(now, cluster),
        "forms": [
            {
                "program": name,
                "name": controller_name(name),
                "on": name in now.settings,
                "text": tried.get(name, now.settings.get(name, "")),
                "example": EXAMPLES[name],
                "problem": problem if name in tried else "",
            }
            for name in PROGRAMS
        ],
        "problem": "" if tried else problem,
    }
    return render(request, "controllers/page.html", context, status=status)


def _lanes(runs: Sequence[ControllerRun], circle: KeptLoop | None, cluster: Cluster) -> View | None:
    """What each controller did over the kept runs."""
    if not runs:
        return None
    axis = Axis(cluster.start_ns, min(run.at_ns for run in runs), max(cluster.now_ns, runs[-1].at_ns + 1))
    ends = {"first": axis.since(axis.first), "last": axis.since(axis.last)}
    rounds = []
    if circle is not None:
        last_ns = max(run.at_ns for run in runs if any(act.effect != LOOKS for act in run.did))
        edges = [last_ns - circle.period_ns * number for number in (2, 1, 0)]
        rounds = [
            (axis.percent(begin), round(axis.percent(end) - axis.percent(begin), 2))
            for begin, end in pairwise(edges)
        ]
    return run_lanes(runs, axis) | ends | {"ticks": axis.ticks(), "rounds": rounds}


# ---- the loop


def _loop(circle: KeptLoop) -> View:
    """The steps of a loop on a circle, clockwise from the top; lengths in user units."""
    n, centre, radius = len(circle.steps), (285.0, 212.0), 118.0
    steps = []
    for number, step in enumerate(circle.steps):
        angle = 2 * math.pi * number / n - math.pi / 2
        px, py = centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)
        side = "middle" if abs(px - centre[0]) < 20 else "start" if px > centre[0] else "end"
        off = {"middle": 0, "start": 25, "end": -25}[side]
        after = 2 * math.pi * (number + 1) / n - math.pi / 2
        gap = 0.24
        arc = [
            round(value, 1)
            for turn in (angle + gap, after - gap)
            for value in (centre[0] + radius * math.cos(turn), centre[1] + radius * math.sin(turn))
        ]
        lines = textwrap.wrap(step.what, 29, max_lines=4, placeholder=" …") if n <= MOST_DRAWN_STEPS else []
        above = {"middle": -22 - 16 * len(lines) if py < centre[1] else 34}.get(side, -6)
        steps.append({
            "number": number + 1, "name": controller_name(step.controller), "css": controller_css(step.controller),
            "what": step.what, "run": step.run, "cycle": step.cycle, "lines": lines,
            "x": round(px, 1), "y": round(py, 1), "tx": round(px + off, 1), "ty": round(py + above, 1),
            "side": side, "arc": arc, "turn": round(math.degrees(after - gap) + 90, 0),
            "large": 1 if 2 * math.pi / n - 2 * gap > math.pi else 0,
        })  # fmt: skip
    return {
        "steps": steps,
        "period": duration(circle.period_ns),
        "objects": circle.objects,
        "is_long": n > MOST_DRAWN_STEPS,
    }


def _search(question: Question | None) -> View | None:
    """What the newest search for a loop found: changes that end it, and those that do not."""
    if question is None or question.answer is None:
        return None
    found = question.answer
    cures = [
        {"rank": rank, "sentence": cure["sentence"], "rests": duration(int(cure["restAfterSeconds"] * 1e9))}
        for rank, cure in enumerate(found["cures"], 1)
    ]
    return {
        "found": found["loop"] or found["failure"],
        "failure": found["failure"],
        "cures": cures,
        "tried": found["tried"],
        "within": duration(int(found["horizonSeconds"] * 1e9)),
        "n_seeds": len(found["seeds"]),
    }


def _run(cluster: Cluster, number: int | None) -> View | None:
    """One run, as asked for by its id: what it did, then what it left."""
    if number is None:
        return None
    record = controller_run(cluster, number)
    return {
        "name": controller_name(record.controller, record.subject),
        "at": since_start(record.at_ns, cluster.start_ns),
        "lines": [*run_lines(record.run, cluster.start_ns)],
    }


# ---- nodes


def _nodes(sentences: Sequence[NodeSentence], q: str) -> View:
    """Each node once: those that go, then those that stay, folded by reason; counts sum to all nodes."""
    by_node: dict[str, list[NodeSentence]] = {}
    for one in sentences:
        by_node.setdefault(one.node, []).append(one)
    folds: dict[str, dict[str, Any]] = {}
    going, found = [], []
    for node, some in sorted(by_node.items()):
        first = next((one for one in some if one.controller == COMPONENTS["cluster-autoscaler"]), some[0])
        view = {
            "node": node,
            "first": first,
            "more": [(controller_name(one.controller), one) for one in some if one is not first],
        }
        if q and q in node:
            found.append(view)
        if first.goes:
            going.append(view)
        else:
            fold = folds.setdefault(first.group, {"words": first.group, "nodes": [], "n": 0})
            fold["n"] += 1
            if fold["n"] <= SHOWN_NODES:
                fold["nodes"].append(view)
    ordered = sorted(folds.values(), key=lambda fold: (-fold["n"], fold["words"]))
    return {
        "n": len(by_node),
        "going": going[:SHOWN_NODES],
        "n_going": len(going),
        "n_stay": len(by_node) - len(going),
        "folds": [fold | {"n_more": fold["n"] - len(fold["nodes"])} for fold in ordered],
        "found": found[:SHOWN_NODES],
    }


def _alike(now: ControllersNow) -> list[View]:
    """Pending pods with one sentence together."""
    groups: dict[str, list[str]] = {}
    for one in now.outlook.pods:
        groups.setdefault(one.text, []).append(one.pod)
    return [
        {
            "text": text[:1].upper() + text[1:],
            "pods": pods[:3],
            "n": len(pods),
            "n_more": max(0, len(pods) - 3),
        }
        for text, pods in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _choice(now: ControllersNow, cluster: Cluster) -> View | None:
    """The newest choice of a node group: a line a group, with what it takes and why it is out."""
    found = next(
        ((run, act) for run in reversed(now.runs) for act in reversed(run.did) if act.facts.get("options")),
        None,
    )
    if found is None:
        return None
    run, act = found
    left = [one["group"] for one in act.facts["options"]]
    out: dict[str, str] = {}
    for expander, kept in act.facts["filters"]:
        out |= {group: f"out: {expander} prefers {', '.join(kept)}" for group in left if group not in kept}
        left = [group for group in left if group in kept]
    by_each: Mapping[str, str] = act.facts.get("byExpander", {})
    rows = [
        one | {"out": out.get(one["group"], ""), "chosen": one["group"] == left[0]}
        for one in act.facts["options"]
    ]
    return {
        "at": since_start(run.at_ns, cluster.start_ns),
        "expander": act.facts["expander"],
        "by_each": by_each.items(),
        "agree": len(set(by_each.values())) == 1,
        "n_pods": len(act.facts["pods"]),
        "rows": sorted(rows, key=lambda one: (not one["chosen"], one["group"])),
        "refused": sorted(act.facts["refused"].items()),
        "drawn": len(left) > 1,
        "n_groups": len(rows) + len(act.facts["refused"]),
    }
