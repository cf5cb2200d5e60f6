"""Questions that a run of the whole answers, as pages of a cluster or a share: model, joint placement, upgrade, luck.

POST asks, cancels, or does something with what was found; GET shows the newest. REST has the same
(`api.views.questions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import lanes, questions
from playground.clusters.choices import OPEN, QuestionKind, WorkState
from playground.clusters.errors import Conflict, Forbidden
from playground.clusters.questions import newest_question, questions_of
from playground.clusters.row_types import Cluster, Question
from playground.clusters.trouble import why_waiting
from playground.scenarios.choices import ScenarioState
from playground.scenarios.row_types import Scenario
from playground.scenarios.services.questions import branch_of_upgrade, share_upgrade
from playground.web.questions.present import view_luck
from playground.web.requests import HtmxHttpRequest, positive_int, posted_gates, site_user
from playground.web.scenarios.shares import STOP_POLLING, release_of
from scheduler_core import releases
from scheduler_core.schema.tables import table_beside
from scheduler_core.whatif.model import DEPARTURES


@dataclass(frozen=True, slots=True)
class QuestionPages:
    """The pages of one kind of question.

    Attributes
    ----------
    kind
        Also names its URLs (`scenarios:KIND`, `scenarios:cluster-KIND`) and its template (`scenarios/KIND.html`).
    refused
        What a stranger is told who asks.
    params
        What the request asks for.
    shown
        What a page says besides, of the newest question or of None, and of its `cluster` or `share`.
    acts
        Name of a button -> what it does with the newest one that is done; gives where it leads.
    """

    kind: str
    refused: str
    params: Callable[[HttpRequest], Mapping[str, Any]]
    shown: Callable[[HttpRequest, Question | None, Mapping[str, Any]], dict[str, Any]]
    acts: Mapping[str, Callable[[HttpRequest, Question], str]] = field(default_factory=dict)

    def of_cluster(self, request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
        """The page of a cluster."""
        here = reverse(f"scenarios:cluster-{self.kind}", args=[cluster.public_id])
        context = {"last_cycle": cluster.next_cycle - 1, "whose": cluster.name}
        return self._answer(request, here, context, {"cluster": cluster})

    def of_scenario(self, request: HtmxHttpRequest, share: Scenario) -> HttpResponse:
        """The page of a share: read without an account, asked for with one."""
        here = reverse(f"scenarios:{self.kind}", args=[share.public_id])
        context = {"last_cycle": share.n_cycles, "whose": share.words}
        return self._answer(request, here, context, {"share": share})

    def _answer(
        self, request: HtmxHttpRequest, here: str, context: dict[str, Any], of: Mapping[str, Any]
    ) -> HttpResponse:
        newest = newest_question(self.kind, **of)
        if request.method == "POST":
            return redirect(self._posted(request, here, newest, of))
        is_open = newest is not None and newest.state in OPEN
        if request.htmx and not is_open:
            # Who waited gets the whole answer.
            response = HttpResponse(status=STOP_POLLING)
            response["HX-Refresh"] = "true"
            return response
        context |= {"question": newest, "here": here, "is_open": is_open, "poll": here, "cancel": here}
        if newest is not None and is_open:
            context["why_waiting"] = why_waiting(lanes.MAKE, newest.touched)
        template = "advice/asking.html" if request.htmx else f"scenarios/{self.kind}.html"
        return render(request, template, context | self.shown(request, newest, of))

    def _posted(self, request: HttpRequest, here: str, newest: Question | None, of: Mapping[str, Any]) -> str:
        """Do what was posted; where it leads."""
        if site_user(request) is None and not settings.EMBEDDED:
            raise Forbidden(self.refused)
        if "cancel" in request.POST:
            questions.cancel(questions_of(self.kind, **of))
            return here
        act = next((does for name, does in self.acts.items() if name in request.POST), None)
        if act is None:
            questions.ask(kind=self.kind, params=self.params(request), **of)
            return here
        if newest is None or newest.state != WorkState.DONE:
            raise Conflict("there is no answer yet", kind="Question")
        return act(request, newest)


# ---- formal model

A_PAGE: Final = 50
_TABLES: Final = table_beside(__package__, "tables.yaml")
PROPERTIES: Final[list[tuple[str, str, str]]] = _TABLES["properties"]
STATUSES: Final[Mapping[str, tuple[str, str, str]]] = _TABLES["statuses"]


def _shown_model(request: HttpRequest, question: Question | None, of: Mapping[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = {"properties": PROPERTIES, "departures": DEPARTURES.items()}
    if question is None or question.answer is None:
        return context
    found = question.answer
    show = request.GET.get("show", "")
    show = show if show in STATUSES else ""
    cycles = [_row(cycle) for cycle in found["cycles"]]
    counts = {status: sum(status in row["statuses"] for row in cycles) for status in STATUSES}
    cycles = [row for row in cycles if not show or show in row["statuses"]]
    return context | {
        "found": found,
        "counts": [
            (key, name, meaning, [(found["counts"][key][status], *look) for status, look in STATUSES.items()])
            for key, name, meaning in PROPERTIES
        ],
        "page": Paginator(cycles, A_PAGE).get_page(positive_int(request.GET.get("page")) or 1),
        "show": show,
        "filters": [(status, STATUSES[status][0], n) for status, n in counts.items() if n],
        "n_told": len(found["cycles"]),
    }


def _row(cycle: Mapping[str, Any]) -> dict[str, Any]:
    """A cycle with a cell a property; its sentence is that of the most telling verdict."""
    rank = list(STATUSES)
    verdicts = sorted(cycle["verdicts"], key=lambda verdict: rank.index(verdict["status"]))
    by_property = {verdict["property"]: verdict for verdict in verdicts}
    cells = [
        (name, *STATUSES[by_property[key]["status"]]) if key in by_property else ()
        for key, name, _ in PROPERTIES
    ]
    other = [verdict["sentence"] for verdict in verdicts if verdict["status"] != "holds"]
    return {
        **cycle,
        "cells": cells,
        "counterexamples": [
            json.dumps(verdict["counterexample"], indent=1, ensure_ascii=False)
            for verdict in verdicts
            if verdict["status"] == "fails" and verdict.get("counterexample")
        ],
        "sentences": other or [verdict["sentence"] for verdict in verdicts[-1:]],
        "statuses": {verdict["status"] for verdict in verdicts},
    }


MODEL: Final = QuestionPages(
    kind=QuestionKind.MODEL,
    refused="checking the model wants a login",
    params=lambda request: {},
    shown=_shown_model,
)


# ---- joint placement

MOVED_SHOWN: Final = 100


def _shown_optimum(request: HttpRequest, question: Question | None, of: Mapping[str, Any]) -> dict[str, Any]:
    if question is None or question.answer is None:
        return {}
    moved = [item for item in question.answer["pods"] if item["now"] != item["best"]]
    return {"gap": f"{100 * question.answer.get('gap', 0):.2g}", "pods": moved[:MOVED_SHOWN]}


OPTIMUM: Final = QuestionPages(
    kind=QuestionKind.OPTIMUM,
    refused="looking for the best placement wants a login",
    params=lambda request: {
        "cycle": positive_int(request.POST.get("cycle")),
        "time_limit_s": positive_int(request.POST.get("limit")) or 30,
    },
    shown=_shown_optimum,
)


# ---- upgrade

SHOWN: Final = 100
"""Differences of one cause on the page."""
FIGURES: Final[list[tuple[str, str]]] = _TABLES["upgrade"]


def _shown_upgrade(request: HttpRequest, question: Question | None, of: Mapping[str, Any]) -> dict[str, Any]:
    now = of["cluster"].kubernetes_release if "cluster" in of else release_of(of["share"])
    others = [name for name in reversed([*releases.RELEASES]) if name != now]
    chosen = question.params["after"]["name"] if question is not None else ""
    context: dict[str, Any] = {
        "releases": releases.RELEASES,
        "chosen": chosen if chosen in others else others[0],
    }
    if question is None:
        return context
    before, after = question.params["before"], question.params["after"]
    context |= {"before": releases.release_from(before).title, "after": releases.release_from(after).title}
    found = question.answer
    if found is None:
        return context
    counts = found["counts"]
    test = found.get("test")
    return context | {
        "found": found,
        "figures": [(words, counts[kind]) for kind, words in FIGURES],
        "causes": [_cause(cause) for cause in found["causes"]],
        "steps": [
            {
                **step,
                "n": sum(step["counts"].values()),
                "causes": [_cause(cause) for cause in step["causes"]],
            }
            for step in found["steps"]
        ],
        # JSON is YAML.
        "test": f"expect:\n- {json.dumps(test)}\n" if test else "",
        "command": _command(before, after),
        "api": _api(of),
    }


def _api(of: Mapping[str, Any]) -> str:
    ((name, found),) = of.items()
    return reverse(
        f"api:{'clusters' if name == 'cluster' else 'scenarios'}_upgrade_read", args=[found.public_id]
    )


def _cause(cause: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(FIGURES)
    differences = [{**one, "how": words[one["kind"]].lower()} for one in cause["differences"][:SHOWN]]
    return {**cause, "differences": differences}


def _command(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The command that gives the same answer."""
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in after.get("switched", {}).items())
    switched = f" --feature-gates {gates}" if gates else ""
    names = f"--release {before['name']} --release {after['name']}"
    return f"python -m scheduler_core compare scenario.yaml {names}{switched}"


def _share(request: HttpRequest, upgrade: Question) -> str:
    shared = share_upgrade(upgrade=upgrade, owner=site_user(request))
    return reverse("scenarios:upgrade", args=[shared.scenario.public_id])


def _branch(request: HttpRequest, upgrade: Question) -> str:
    made = branch_of_upgrade(upgrade=upgrade, owner=site_user(request))
    messages.success(request, f"{made.name}: a new cluster; the steps of the old one wait under Share.")
    return reverse("web:board", args=[made.public_id])


UPGRADE: Final = QuestionPages(
    kind=QuestionKind.UPGRADE,
    refused="a preview wants a login",
    params=lambda request: {"name": request.POST.get("release", ""), "gates": posted_gates(request)},
    shown=_shown_upgrade,
    acts={"share": _share, "branch": _branch},
)


# ---- luck


def _shown_luck(request: HttpRequest, question: Question | None, of: Mapping[str, Any]) -> dict[str, Any]:
    context = {
        "most_seeds": questions.N_SEEDS,
        "n_ties": None,
        "recorded": of["share"].state == ScenarioState.RECORDED,
    }
    if question is None:
        return context
    return context | {
        "n_seeds": question.params["seeds"],
        "luck": None if question.answer is None else view_luck(question.answer),
    }


LUCK: Final = QuestionPages(
    kind=QuestionKind.LUCK,
    refused="running the seeds wants a login",
    params=lambda request: {"seeds": positive_int(request.POST.get("seeds"))},
    shown=_shown_luck,
)
