"""Questions about decisions: why not there, weights, try, luck.

Every page here shows the newest answer a worker has given, or asks for one. None runs a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import branches, lanes, questions
from playground.clusters.board.nodes import pools_of
from playground.clusters.choices import QuestionKind, WorkState
from playground.clusters.history.cycles import count_ties, cycle_explanation, get_cycle
from playground.clusters.questions import is_stale, latest_question, newest_question
from playground.clusters.row_types import Cluster, Cycle, Question
from playground.clusters.trouble import why_waiting
from playground.engine import advise
from playground.web.cycles.present import view_cycle
from playground.web.fields import MAX_COPIES
from playground.web.questions.present import view_draw, view_luck, view_weights, view_why
from playground.web.requests import HtmxHttpRequest, done, positive_int, site_user

STOP_POLLING = 286
MAX_WEIGHT = 100
CANCELLED = "cancelled"
"""In the address of a page after its question was cancelled there."""


def question_context(request: HttpRequest, cluster: Cluster, question: Question | None) -> dict[str, Any]:
    """What every fragment of an answer needs."""
    found: dict[str, Any] = {"cluster": cluster, "question": question, "here": request.path}
    if question is not None:
        found["stale"] = is_stale(cluster, question)
        if question.is_open:
            found["why_waiting"] = why_waiting(lanes.ASK, question.touched)
        found["poll"] = reverse("web:question", args=[cluster.public_id, question.public_id])
    return found


def waiting(request: HttpRequest, cluster: Cluster, asked: Question) -> HttpResponse:
    """What takes the place of a question that was asked as its page was opened: its progress."""
    if not asked.is_open:
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = question_context(request, cluster, asked) | {"arrived": True, "just_asked": True}
    return render(request, "advice/asking.html", context)


def arrives_at(request: HttpRequest) -> bool:
    """Whether a page asks its question by itself: not for who has just said that no answer is wanted."""
    return CANCELLED not in request.GET


def branch(request: HttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """A new cluster with one proven edit made."""
    rank = positive_int(request.POST.get("rank")) or 0
    made = branches.branch_with_edit(question=question, rank=rank, owner=site_user(request))
    words = f"{made.name}: a branch of {cluster.name} with this fix, which runs until idle."
    return done(request, words, "web:difference", made.public_id)


def cycle_why(request: HtmxHttpRequest, cluster: Cluster, number: int) -> HttpResponse:
    """Why a recorded cycle did not choose a node."""
    cycle = get_cycle(cluster, number)
    if request.method == "POST":
        node = request.POST.get("node", "").strip()
        asked = questions.ask(cluster=cluster, kind="why-not", params={"cycle": number, "node": node})
        if request.htmx:
            return waiting(request, cluster, asked)
        page = reverse("web:cycle-why", args=[cluster.public_id, number])
        return redirect(f"{page}?{urlencode({'node': node})}")
    node = request.GET.get("node", "").strip()
    why = latest_question(cluster, "why-not", {"cycle": number, "node": node}) if node else None
    context = question_context(request, cluster, why) | {
        "row": cycle,
        "node": node,
        "why_question": why,
        "arrives": arrives_at(request),
        "why": view_why(why.answer) if why is not None and why.answer is not None else None,
    }
    document = cycle_explanation(cluster, number)[1] or {}
    # The first few hundred in evaluation order.
    context["nodes"] = list(document.get("nodes") or ())[:300]
    if node and document.get("preemption"):
        seen = view_cycle(document)["preemption"]
        candidate = next((c for c in seen["candidates"] if c["node"] == node), None) if seen else None
        context["candidate"] = candidate
        if seen and candidate and candidate["lost"]:
            context["lost_by"] = seen["criteria"][candidate["lost"] - 1]["name"].lower()
    return render(request, "advice/cycle_why.html", context)


# ---- weights


def weights(request: HtmxHttpRequest, cluster: Cluster, number: int) -> HttpResponse:
    """At which weights another node would have won; ``?w-Plugin=3`` sets one. POST has it proven."""
    cycle = get_cycle(cluster, number)
    if request.method == "POST":
        asked = questions.ask(cluster=cluster, kind="weights", params={"cycle": number})
        if request.htmx:
            return waiting(request, cluster, asked)
        return redirect("web:weights", cluster.public_id, number)
    changed = {
        key[2:]: weight
        for key in request.GET
        if key.startswith("w-") and (weight := positive_int(request.GET[key])) is not None
        and weight <= MAX_WEIGHT
    }  # fmt: skip
    question = latest_question(cluster, "weights", {"cycle": number})
    proven = question.answer if question is not None and question.answer is not None else {}
    # The trace alone gives the lines; nothing is decided again here.
    found = _lines(cycle, changed)
    context = question_context(request, cluster, question) | {
        "row": cycle,
        "weights": None
        if found is None
        else view_weights(found, () if changed else proven.get("proofs", ()), cycle.node or None),
        "proven": proven,
        "draw": view_draw(proven["draw"]) if proven.get("draw") else None,
        "changed": bool(changed),
        "inline": "inline" in request.GET,
        "arrives": arrives_at(request) and "inline" not in request.GET,
        "ask": reverse("web:weights", args=[cluster.public_id, number]),
    }
    response = render(
        request, "advice/weights_panel.html" if request.htmx else "advice/weights.html", context
    )
    response["X-Swap"] = "1"
    return response


def _lines(cycle: Cycle, changed: dict[str, int]) -> dict[str, Any] | None:
    """Switch points out of the kept trace; None without one, or where no scores were compared."""
    try:
        return advise.weights_of(bytes(cycle.trace), changed) if cycle.trace else None
    except ValueError:  # a trace of a format this engine does not read
        return None


# ---- try


def try_pod(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Try the pod of the posted YAML without submitting it; the question's page waits for its cycle."""
    copies = positive_int(request.POST.get("copies")) or 1
    manifest = questions.admitted_pod(cluster=cluster, text=request.POST.get("yaml", ""))
    params: dict[str, Any] = {"manifest": manifest}
    if copies > 1:
        params["copies"] = min(copies, MAX_COPIES)
    question = questions.ask(cluster=cluster, kind="try", params=params)
    return redirect("web:question", cluster.public_id, question.public_id)


# ---- luck


def luck(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """How often each end state occurs with other seeds."""
    if request.method == "POST":
        n_cycles = max(1, cluster.next_cycle - 1)
        # Who only opened the page gets as many seeds as may be asked for.
        most = max(2, min(questions.N_SEEDS, questions.MOST_SEED_CYCLES // n_cycles))
        seeds = positive_int(request.POST.get("seeds")) or most
        asked = questions.ask(cluster=cluster, kind="seeds", params={"seeds": seeds})
        if request.htmx:
            return waiting(request, cluster, asked)
        return redirect("web:luck", cluster.public_id)
    question = newest_question(QuestionKind.SEEDS, cluster=cluster)
    context = question_context(request, cluster, question) | {
        "n_ties": count_ties(cluster),
        "most_seeds": questions.N_SEEDS,
        "arrives": arrives_at(request) and not cluster.is_parked,
        "ask": reverse("web:luck", args=[cluster.public_id]),
        "n_cycles": cluster.next_cycle - 1,
        "luck": view_luck(question.answer) if question is not None and question.answer is not None else None,
    }
    return render(request, "advice/luck.html", context)


# ---- one question


def question(request: HtmxHttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """Its progress for a page that polls; the page of a tried pod; the page it was asked on for all others."""
    found = question
    context = question_context(request, cluster, found)
    if request.htmx and "page" not in request.GET and "part" not in request.GET:
        if found.is_open:
            context["arrived"] = "arrived" in request.GET
            return render(request, "advice/asking.html", context)
        # A page that waited gets the whole answer from its own address.
        response = HttpResponse(status=STOP_POLLING)
        if found.state == WorkState.CANCELLED:
            # The same page, loaded again, would ask again, and may overtake the answer to the cancelling itself.
            response["HX-Redirect"] = _after_cancelling(cluster, found)
        else:
            response["HX-Refresh"] = "true"
        return response
    if found.kind == QuestionKind.TRY:
        return _tried(request, context, found)
    return redirect(_page_of(cluster, found))


def question_cancel(request: HttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """No answer is wanted any more."""
    questions.cancel(cluster.questions.filter(pk=question.pk))
    return redirect(_after_cancelling(cluster, question))


def fix_address(public_id: str, params: Mapping[str, Any]) -> str:
    """The page that says why pods wait and what places them: of a pod, of a workload, or of all that is pending."""
    if "pod" in params:
        return reverse("web:fix", args=[public_id, *params["pod"].split("/", 1)])
    page = reverse("web:fix-all", args=[public_id])
    return f"{page}?{urlencode({'workload': params['workload']})}" if params.get("workload") else page


def _after_cancelling(cluster: Cluster, found: Question) -> str:
    """Where one is led whose question was cancelled: a page that does not ask again by itself."""
    if found.kind == QuestionKind.TRY:
        return reverse("web:question", args=[cluster.public_id, found.public_id])
    page = _page_of(cluster, found)
    return f"{page}{'&' if '?' in page else '?'}{CANCELLED}=1"


def _page_of(cluster: Cluster, found: Question) -> str:
    params, public_id = found.params, cluster.public_id
    if found.kind == QuestionKind.PLAN:
        return reverse("web:plan-answer", args=[public_id, found.public_id])
    if found.kind == QuestionKind.LOOPS:
        return reverse("web:controllers", args=[public_id])
    if found.kind == QuestionKind.SEEDS:
        return reverse("web:luck", args=[public_id])
    if found.kind == QuestionKind.RULE:
        return f"{reverse('web:rules', args=[public_id])}?{urlencode({'tried': found.public_id})}"
    if found.kind == QuestionKind.WEIGHTS:
        return reverse("web:weights", args=[public_id, params["cycle"]])
    if found.kind == QuestionKind.GROUP:
        return reverse("web:group", args=[public_id, params["namespace"], params["name"]])
    if found.kind == QuestionKind.DEVICES:
        page = reverse("web:cycle-devices", args=[public_id, params["cycle"]])
    elif "cycle" in params:
        page = reverse("web:cycle-why", args=[public_id, params["cycle"]])
    elif found.kind == QuestionKind.FIX:
        page = fix_address(public_id, params)
    elif not params["node"]:
        pick = urlencode({"pick": f"{params['namespace']}/{params['name']}"})
        return f"{reverse('web:board', args=[public_id])}?{pick}"
    else:
        page = fix_address(public_id, {"pod": f"{params['namespace']}/{params['name']}"})
    return f"{page}?{urlencode({'node': params['node']})}" if "node" in params else page


def _tried(request: HttpRequest, context: dict[str, Any], found: Question) -> HttpResponse:
    """The explanation as if the pod were submitted now."""
    meta = found.params["manifest"]["metadata"]
    context |= {"tab": "pod-new", "name": meta["name"], "namespace": meta["namespace"]}
    answer = found.answer
    if answer is not None:
        context["answer"] = answer
        if answer["cycle"] is not None:
            context["view"] = view_cycle(
                answer["cycle"],
                part=request.GET.get("part"),
                page=positive_int(request.GET.get("page")) or 1,
                pools=pools_of(context["cluster"]),
            )
    return render(request, "advice/tried.html", context)
