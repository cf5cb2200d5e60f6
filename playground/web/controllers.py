"""Controllers beside the scheduler: whether they are at rest, what each did and when, and why each node stays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters.errors import ClusterError
from playground.clusters.history.controllers import (
    COMPONENTS,
    PROGRAMS,
    SCALES_PODS,
    ControllersNow,
    KeptLoop,
    controllers_now,
    program_words,
    set_program,
)
from playground.web.amounts import duration, since_start
from playground.web.looks import View
from playground.web.requests import done
from scheduler_core.sim.changes import ControllerRun
from scheduler_core.sim.outlook import ACTS, TAKES, NodeSentence, effect_of, run_lines

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

NAMES: Final[Mapping[str, str]] = {
    "cluster-autoscaler": "Cluster autoscaler",
    "descheduler": "Descheduler",
    "karpenter": "Karpenter (a model)",
    "vertical-pod-autoscaler": "Vertical pod autoscaler (a model)",
    SCALES_PODS: "HPA",
}
MOST_LANES: Final = 8
MOST_MARKS: Final = 200
"""Of one lane; of more the newest."""
LEFT, WIDTH, ROW = 178, 1300, 44
SHOWN_NODES: Final = 50
EXAMPLES: Final[Mapping[str, str]] = {
    "cluster-autoscaler": "--expander=least-waste\n--scale-down-unneeded-time=10m\n--nodes=1:10:web",
    "descheduler": "descheduling-interval: 5m\npolicy:\n  apiVersion: descheduler/v1alpha2\n  kind: DeschedulerPolicy",
    "karpenter": "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec: {}",
    "vertical-pod-autoscaler": "autoscalers:\n- {target: Deployment default/web, updateMode: InPlaceOrRecreate}",
}


def controllers(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """The page; POST turns a program on or off, or changes its settings."""
    problem, tried, status = "", {}, 200
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
    context = {
        "now": now,
        "chips": [
            (_css(name), NAMES[name], program_words(name, text)) for name, text in now.settings.items()
        ],
        "lanes": _lanes(now.runs, cluster),
        "loop": None if now.circle is None else _loop(now.circle),
        "nodes": _nodes(now.outlook.nodes, request.GET.get("q", "").strip()),
        "q": request.GET.get("q", "").strip(),
        "pods": _alike(now),
        "choice": _choice(now, cluster),
        "forms": [
            {
                "program": name,
                "name": NAMES[name],
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


_CSS: Final[Mapping[str, str]] = {
    "cluster-autoscaler": "c-aut",
    "karpenter": "c-aut",
    "descheduler": "c-des",
    "vertical-pod-autoscaler": "c-hpa",
    SCALES_PODS: "c-hpa",
}


def _css(controller: str) -> str:
    return _CSS.get(controller.rpartition("/")[2], "c-sch")


def _name(controller: str, subject: str = "") -> str:
    name = controller.rpartition("/")[2]
    words = NAMES.get(name, name)
    return f"{words} of {subject.rpartition('/')[2]}" if subject else words


# ---- lanes


def _lanes(runs: Sequence[ControllerRun], cluster: Cluster) -> View | None:
    """What each controller did over the kept runs: an x in user units of a drawing that is `WIDTH` wide."""
    if not runs:
        return None
    first, last = min(run.at_ns for run in runs), max(cluster.now_ns, runs[-1].at_ns)
    span = max(last - first, 1)

    def x(at_ns: int) -> float:
        return round(LEFT + 20 + (WIDTH - LEFT - 140) * (at_ns - first) / span, 1)

    lanes: dict[tuple[str, str], list[ControllerRun]] = {}
    for run in runs:
        lanes.setdefault((run.controller, run.subject), []).append(run)
    order = sorted(lanes, key=lambda key: (-sum(bool(run.did) for run in lanes[key]), key))
    views = []
    for row, key in enumerate(order[:MOST_LANES]):
        y, shown = 30 + ROW * row, lanes[key][-MOST_MARKS:]
        places = [x(run.at_ns) for run in shown]
        marks = []
        for run, at, following in zip(shown, places, [*places[1:], WIDTH], strict=True):
            words = _short(run)
            marks.append({
                "x": at, "effect": effect_of(run), "words": words,
                "label": words if at + 14 + 6.2 * len(words) < following else "",
                "at": since_start(run.at_ns, cluster.start_ns), "whole": "; ".join(_lines(run, cluster)),
            })  # fmt: skip
        views.append(
            {"name": _name(*key), "css": _css(key[0]), "y": y, "marks": marks, "newest": marks[-6:][::-1]}
        )
    ticks = [
        (x(first + span * part // 5), since_start(first + span * part // 5, cluster.start_ns))
        for part in range(6)
    ]
    return {
        "lanes": views,
        "ticks": ticks,
        "height": 30 + ROW * len(views),
        "n_more": len(lanes) - len(views),
        "first": since_start(first, cluster.start_ns),
        "last": since_start(last, cluster.start_ns),
    }


def _lines(run: ControllerRun, cluster: Cluster) -> Iterator[str]:
    for number, line in enumerate(run_lines(run, cluster.start_ns)):
        if number == 4:
            yield "and more"
            return
        yield line


def _short(run: ControllerRun) -> str:
    """A run in two or three words: what most of its acts are."""
    acts = [act for act in run.did if act.effect == effect_of(run)]
    if not acts:
        return "looks"
    first = str(acts[0]) if len(acts) == 1 else ""
    if first and len(first) <= 26:
        return first
    objects = (
        {one.key for act in acts for one in act.about if one.kind == acts[0].about[0].kind}
        if acts[0].about
        else ()
    )
    if acts[0].about and acts[0].about[0].kind == "Pod":
        verb = "evicts" if effect_of(run) == TAKES else "would evict"
        return f"{verb} {len(objects)} pod{'' if len(objects) == 1 else 's'}"
    if acts[0].about and acts[0].about[0].kind == "Node":
        return f"removes {len(objects)} node{'' if len(objects) == 1 else 's'}"
    return "grows" if effect_of(run) == ACTS else "changes"


# ---- the loop


def _loop(circle: KeptLoop) -> View:
    """The steps of a loop on a circle, clockwise from the top; lengths in user units."""
    n, centre, radius = len(circle.steps), (285.0, 212.0), 118.0
    steps = []
    for number, (controller, what) in enumerate(circle.steps):
        angle = 2 * math.pi * number / n - math.pi / 2
        px, py = centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)
        side = "middle" if abs(px - centre[0]) < 20 else "start" if px > centre[0] else "end"
        off = {"middle": 0, "start": 25, "end": -25}[side]
        above = -46 if side == "middle" and py < centre[1] else 32 if side == "middle" else -6
        after = 2 * math.pi * (number + 1) / n - math.pi / 2
        gap = 0.24
        arc = [
            round(value, 1)
            for turn in (angle + gap, after - gap)
            for value in (centre[0] + radius * math.cos(turn), centre[1] + radius * math.sin(turn))
        ]
        steps.append({
            "number": number + 1, "name": _name(controller), "css": _css(controller), "what": what,
            "x": round(px, 1), "y": round(py, 1), "tx": round(px + off, 1), "ty": round(py + above, 1),
            "side": side, "arc": arc, "turn": round(math.degrees(after - gap) + 90, 0),
            "large": 1 if 2 * math.pi / n - 2 * gap > math.pi else 0,
        })  # fmt: skip
    return {"steps": steps, "period": duration(circle.period_ns), "objects": circle.objects}


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
            "more": [(_name(one.controller), one) for one in some if one is not first],
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
    rows = [
        one | {"out": out.get(one["group"], ""), "chosen": one["group"] == left[0]}
        for one in act.facts["options"]
    ]
    return {
        "at": since_start(run.at_ns, cluster.start_ns),
        "expander": act.facts["expander"],
        "n_pods": len(act.facts["pods"]),
        "rows": sorted(rows, key=lambda one: (not one["chosen"], one["group"])),
        "refused": sorted(act.facts["refused"].items()),
        "drawn": len(left) > 1,
        "n_groups": len(rows) + len(act.facts["refused"]),
    }
