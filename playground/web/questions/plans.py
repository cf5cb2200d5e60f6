"""Questions about a whole cluster: the overview, one answer, and a shared verdict. None of them runs a cycle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.board.overview import plan_subject
from playground.clusters.branches import branch_of_plan
from playground.clusters.choices import QuestionKind, WorkState
from playground.clusters.questions import is_stale, latest_question, newest_plans
from playground.clusters.row_types import Cluster, Question
from playground.scenarios.row_types import Verdict
from playground.scenarios.services import verdicts
from playground.web.listing import Alike, alike
from playground.web.looks import View
from playground.web.questions.views import arrives_at, question_context
from playground.web.requests import HtmxHttpRequest, done, site_user
from scheduler_core.autoscaler.pasted import read_autoscaler
from scheduler_core.descheduler.policy import PolicyError, read_policy
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.prices import read_prices
from scheduler_core.schema.tables import table_beside
from scheduler_core.whatif.answers import answer_text
from scheduler_core.whatif.questions import COMPARE, read_variants

NODES_LISTED = 500
BACKLOG = "backlog"
"""What the page of the best fix answers: it has no card."""
ASKED_WITH_WORDS = ("drain", "lose", "deschedule", "autoscale", "compare")
"""Questions that need nodes, a policy or flags first, or take long."""


def overview(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The questions there are, with the newest answer of each; one card of them for htmx. POST asks one, or one
    of before `again`."""
    if request.method == "POST":
        again = request.POST.get("again", "")
        params = questions.get_question(cluster, again).params if again else questions.read(_posted, request)
        asked = questions.ask(cluster=cluster, kind=QuestionKind.PLAN, params=params)
        if request.htmx:
            return _card_alone(request, cluster, asked.params["ask"], asked)
        return redirect("web:plan-answer", cluster.public_id, asked.public_id)
    newest = newest_plans(cluster)
    if request.htmx and (ask := request.GET.get("card", "")) in TITLES:
        return _card_alone(request, cluster, ask, newest.get(ask))
    subject = plan_subject(cluster, limit=NODES_LISTED)
    arrives = subject.n_nodes > 0 and not cluster.is_parked and arrives_at(request)
    not_asked = ASKED_WITH_WORDS if subject.has_zones else (*ASKED_WITH_WORDS, "any-domain")
    cards = [_card(cluster, ask, newest.get(ask)) for ask in TITLES if ask != BACKLOG]
    fix = latest_question(cluster, QuestionKind.FIX, {})
    for card in cards:
        # What needs no words of a person is asked as the page is opened, once for each state of the cluster.
        found = card["question"]
        old = found is not None and (card["stale"] or found.state == WorkState.CANCELLED)
        card["asks"] = arrives and card["ask"] not in not_asked and (found is None or old)
    context = {
        "cards": cards,
        "fix": fix.answer if fix is not None else None,
        "fix_stale": fix is not None and is_stale(cluster, fix),
        "n_nodes": subject.n_nodes,
        "n_pods": subject.n_pods,
        "n_pending": subject.n_pending,
        "nodes": subject.nodes,
    }
    return render(request, "plan/overview.html", context)


def _card(cluster: Cluster, ask: str, found: Question | None) -> dict[str, Any]:
    answer = found.answer if found is not None else None
    return {
        "ask": ask,
        "title": TITLES[ask],
        "question": found,
        "answer": answer,
        "look": LOOKS[answer["tone"]] if answer is not None else None,
        "stale": found is not None and is_stale(cluster, found),
        "about": title_of(found.params) if found is not None else "",
    }


def _card_alone(request: HttpRequest, cluster: Cluster, ask: str, found: Question | None) -> HttpResponse:
    """A card that asked by itself, or waits for its answer."""
    asked_by_itself = "arrived" in request.POST or "arrived" in request.GET
    card = _card(cluster, ask, found) | {"arrived": asked_by_itself}
    return render(request, "plan/card.html", {"cluster": cluster, "card": card})


def _posted(request: HttpRequest) -> dict[str, Any]:
    """The question of a form: empty fields are left out."""
    found: dict[str, Any] = {"ask": request.POST.get("ask", "")}
    nodes = request.POST.get("nodes", "").replace(",", " ").split()
    if nodes:
        found["nodes"] = nodes
    for name in ("label", "workload"):
        if request.POST.get(name, "").strip():
            found[name] = request.POST[name].strip()
    prices = request.POST.get("prices", "").strip()
    if prices:
        found["prices"] = read_prices(prices)
    if found["ask"] == "deschedule":
        try:
            found["policy"] = read_policy(request.POST.get("policy", ""))
        except PolicyError as error:
            raise InvalidObject("policy", None, f"cannot be read: {error}") from None
    given = request.POST.get("autoscaler", "").strip()
    if given:
        found["autoscaler"] = read_autoscaler(given)
    if found["ask"] == COMPARE:
        found["variants"] = read_variants(request.POST.get("variants", ""))
        found["time"] = request.POST.get("time", "").strip()
    return found


def answer(request: HttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """One answer, or how far it is."""
    found = _of_plan(question)
    context = question_context(request, cluster, found) | {"title": title_of(found.params)}
    newer = latest_question(cluster, found.kind, found.params)
    if newer is not None and newer.pk != found.pk:
        context["newer"] = reverse("web:plan-answer", args=[cluster.public_id, newer.public_id])
    if found.answer is not None:
        context["plan"] = view_plan(found.answer)
    return render(request, "plan/answer.html", context)


def _of_plan(question: Question) -> Question:
    if question.kind != QuestionKind.PLAN:
        raise Http404("That question is not about the whole cluster.")
    return question


def branch(request: HttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """A new cluster in which the answer's steps were done."""
    made = branch_of_plan(question=_of_plan(question), owner=site_user(request))
    words = f"{made.name}: a new cluster in which this was done. It runs to idle."
    return done(request, words, "web:difference", made.public_id)


def share(request: HttpRequest, cluster: Cluster, question: Question) -> HttpResponse:
    """Share the answer."""
    made = verdicts.share_verdict(question=_of_plan(question), owner=site_user(request))
    return redirect("web:verdict", made.public_id)


# ---- shared verdicts: read without an account by those who have the link


def verdict(request: HttpRequest, verdict: Verdict) -> HttpResponse:
    """A frozen answer."""
    found, frozen = verdict, verdict.answer
    question = frozen["question"]
    context = {
        "verdict": found,
        "plan": view_plan(frozen),
        "title": title_of(question),
        "command": _command(question),
        "link": request.build_absolute_uri(reverse("web:verdict", args=[found.public_id])),
        "is_mine": found.owner_id == getattr(site_user(request), "pk", None),
    }
    return render(request, "plan/verdict.html", context)


def _command(question: dict[str, Any]) -> str:
    """What prints the same bytes elsewhere."""
    words = [question["ask"], *question.get("nodes", ())[:3]]
    if len(question.get("nodes", ())) > 3:
        words.append("...")
    if question.get("label"):
        words += ["-l", question["label"]]
    if question.get("policy"):
        words.append("policy.yaml")
    if question.get("autoscaler"):
        words.append("autoscaler.yaml")
    if question.get("variants"):
        words += ["variants.yaml", "--time", question["time"]]
    if question.get("workload"):
        words += ["--workload", question["workload"].replace(" ", "/")]
    return f"python -m scheduler_core plan --json cluster.json {' '.join(words)} | sha256sum"


def verdict_answer(request: HttpRequest, verdict: Verdict) -> HttpResponse:
    """The answer's bytes."""
    return HttpResponse(answer_text(verdict.answer), content_type="application/json")


def verdict_cluster(request: HttpRequest, verdict: Verdict) -> HttpResponse:
    """The objects that were asked about, as a dump."""
    response = HttpResponse(answer_text(verdict.state), content_type="application/json")
    response["Content-Disposition"] = 'attachment; filename="cluster.json"'
    return response


def verdict_end(request: HttpRequest, verdict: Verdict) -> HttpResponse:
    """End the link; only who made it may."""
    if verdict.owner_id != getattr(site_user(request), "pk", None):
        raise PermissionDenied("Only who shared it may end the link.")
    verdicts.end_verdict(verdict=verdict)
    messages.success(request, "The link is ended; it leads nowhere now.")
    return redirect("web:home")


# ---- what the pages show

SIZE: Final = 22
PITCH: Final = 25
A_ROW: Final = 28
MANY: Final = 1_200
"""Nodes from which on a map has one path for all nodes of a state, and no glyphs."""
GROUPS_SHOWN: Final = 30
LINES_SHOWN: Final = 60

_TABLES: Final = table_beside(__package__, "words.yaml")
TITLES: Final[Mapping[str, str]] = _TABLES["titles"]
"""Question -> its title, in the order of the overview."""
_STATES: Final[Mapping[str, Sequence[str]]] = _TABLES["states"]
_OUTCOMES: Final[Mapping[str, Sequence[str]]] = _TABLES["outcomes"]
_SUMS: Final[Mapping[str, Sequence[str]]] = _TABLES["sums"]
_LATER: Final = ("", "warn", "wait")
_RANK: Final = {"lands": 1, "with-node": 2, "ending": 2}
"""Outcome -> place in the table: those that are hurt come first."""
LOOKS: Final[Mapping[str, Sequence[str]]] = _TABLES["looks"]
"""Tone -> class of the verdict, of the icon, and the icon."""


def view_plan(answer: Mapping[str, Any]) -> View:
    """An answer for a page; `test` is its expectation as YAML (JSON is YAML)."""
    css, icon_css, icon = LOOKS[answer["tone"]]
    n_nodes = sum(len(group["nodes"]) for group in answer["map"])
    there = {node[1] for group in answer["map"] for node in group["nodes"]}
    ranked = sorted(
        alike(answer["moves"], _fate), key=lambda one: (_RANK.get(one.first["outcome"], 0), -one.n)
    )
    test = answer["test"]
    return {
        "answer": answer,
        "title": title_of(answer["question"]),
        "css": css,
        "icon_css": icon_css,
        "icon": icon,
        "groups": [_group(group, n_nodes > MANY) for group in answer["map"]],
        "legend": [look for key, look in _STATES.items() if key in there],
        "lines": [
            {"facts": item, "css": LOOKS[item["tone"]][1], "icon": LOOKS[item["tone"]][2]}
            for item in answer["lines"][:LINES_SHOWN]
        ],
        "n_lines_hidden": int(answer["nLines"]) - len(answer["lines"][:LINES_SHOWN]),
        "moves": [_moves(one) for one in ranked[:GROUPS_SHOWN]],
        "n_moves_hidden": int(answer["nMoves"]) - sum(one.n for one in ranked[:GROUPS_SHOWN]),
        "sums": _sums(answer["moves"]),
        "comparison": _comparison(answer["comparison"]) if "comparison" in answer else None,
        "luck": _luck(answer["luck"]),
        "test": "" if test is None else f"expect:\n- {json.dumps(test, ensure_ascii=False)}\n",
    }


CHART: Final = (240, 36)
"""Width and height of the pending pods over time."""


def _comparison(found: Mapping[str, Any]) -> View:
    """Variants as columns, figures as rows, and pending pods over time on one scale."""
    width, height = CHART
    most = max((max(parts) for parts in found["pending"]), default=0)
    names, charts = found["variants"], []
    for name, parts in zip(names, found["pending"], strict=True):
        wide = width / len(parts)
        heights = [height - height * number / max(most, 1) for number in parts]
        steps = [f"L{place * wide:.1f} {y:.1f}H{(place + 1) * wide:.1f}" for place, y in enumerate(heights)]
        path = f"M0 {height}{''.join(steps)}L{width} {height}z"
        charts.append({"name": name, "path": path, "most": max(parts), "last": parts[-1]})
    rows = [
        {"name": name, "values": [(*one, one[1] == min(values)) for one in zip(names, values, strict=True)]}
        for name, values in found["figures"].items()
        if any(values)
    ]
    return {"names": names, "rows": rows, "charts": charts, "size": CHART}


def _moves(one: Alike[Mapping[str, Any]]) -> View:
    """Pods of one workload that leave and fare alike."""
    facts = one.first
    words, css, icon = _LATER if facts["onceDeleted"] else _OUTCOMES[facts["outcome"]]
    namespace, _, pod = str(facts["pod"]).partition("/")
    return {
        "alike": one,
        "facts": facts,
        "words": words,
        "css": css,
        "icon": icon,
        "namespace": namespace,
        "name": pod if one.n == 1 else str(facts["owner"]).partition(" ")[2] or pod,
        "start": _places(one, "from"),
        "end": _places(one, "node"),
    }


def _places(one: Alike[Mapping[str, Any]], key: str) -> str:
    """The node, or how many."""
    nodes = {move[key] for move in one.items if move[key]}
    return f"{len(nodes):,} nodes" if len(nodes) > 1 else next(iter(nodes), "")


def _sums(moves: Sequence[Mapping[str, Any]]) -> str:
    """What becomes of the pods, in numbers that add up."""
    own = [move for move in moves if not move["because"]]
    others = [move for move in moves if move["because"]]
    leave = ("leaves its node", "leave their nodes")
    verbs = leave if own and own[0]["from"] else ("is pending", "are pending")
    evicted = _sum(others, " of other nodes", ("is evicted", "are evicted"))
    return f"{_sum(own, '', verbs)} {evicted}".strip()


def _luck(found: Mapping[str, Any] | None) -> str:
    """In how many seeds it holds, in words."""
    if found is None:
        return ""
    holds = "" if found["holds"] == found["seeds"] else f"{found['holds']} of "
    return f"holds with {holds or 'all '}{found['seeds']} seeds"


def _sum(moves: Sequence[Mapping[str, Any]], whose: str, verbs: tuple[str, str]) -> str:
    if not moves:
        return ""
    counts = Counter(move["outcome"] for move in moves)
    *parts, last = (
        f"{counts[key]:,} {words[counts[key] != 1]}" for key, words in _SUMS.items() if counts[key]
    )
    listed = f"{', '.join(parts)} and {last}" if parts else last
    many = len(moves) != 1
    return f"{len(moves):,} pod{'s' if many else ''}{whose} {verbs[many]}: {listed}."


def _fate(move: Mapping[str, Any]) -> tuple[str, ...]:
    namespace, _, name = move["pod"].partition("/")
    return namespace, move["owner"] or name, move["outcome"], move["because"], move["onceDeleted"] or ""


def title_of(question: Mapping[str, Any]) -> str:
    """A question in a few words."""
    title = TITLES[question["ask"]]
    named = question.get("nodes") or ()
    about = question.get("workload") or question.get("label") or ""
    if named:
        about = named[0] if len(named) == 1 else f"{named[0]} and {len(named) - 1} more"
    return f"{title}: {about}" if about and question["ask"] != "any-domain" else title


def _group(group: Mapping[str, Any], many: bool) -> View:
    """The map of one group of nodes; of many nodes one path for all of a state."""
    nodes: Sequence[Sequence[Any]] = group["nodes"]
    pitch, a_row = (9, 78) if many else (PITCH, A_ROW)
    places = [(index % a_row * pitch, index // a_row * pitch) for index in range(len(nodes))]
    counts = Counter(node[1] for node in nodes)
    paths: dict[str, list[str]] = {}
    for node, (x, y) in zip(nodes, places, strict=True) if many else ():
        paths.setdefault(_STATES[node[1]][0], []).append(f"M{x} {y}h7v7h-7z")
    return {
        "name": group["name"],
        "shape": group["shape"],
        "n_nodes": len(nodes),
        "width": min(len(nodes), a_row) * pitch,
        "height": ((len(nodes) - 1) // a_row + 1) * pitch,
        "squares": [] if many else [_square(node, *at) for node, at in zip(nodes, places, strict=True)],
        "paths": [(css, "".join(parts)) for css, parts in paths.items()],
        "words": ", ".join(f"{n:,} {_SHORT[state]}" for state, n in counts.items() if state in _SHORT),
    }


_SHORT: Final[Mapping[str, str]] = _TABLES["short"]


def _square(node: Sequence[Any], x: int, y: int) -> View:
    name, state, share, number = node[:4]
    css, glyph, words = _STATES[state]
    if number and state in ("strands", "takes"):
        glyph = str(number) if number < 100 else "99"
    fill = round(SIZE * min(max(share, 0), 100) / 100, 1)
    told = f", {number}" if number else ""
    return {
        "x": x,
        "y": y,
        "middle": (x + SIZE // 2, y + SIZE // 2),
        "css": css,
        "fill_y": round(y + SIZE - fill, 1),
        "fill": fill,
        "glyph": glyph,
        "title": f"{name}: {words.split(',')[0]}{told}; {share}% CPU",
    }
