"""Why pods wait and what places them: one page for a pod, a workload, or all that is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.board.nodes import NodeUse, node_uses
from playground.clusters.choices import QuestionKind
from playground.clusters.drive.turns import expect_questions
from playground.clusters.history.cycles import last_cycle_named
from playground.clusters.history.story import find_pod
from playground.clusters.questions import get_question, is_stale, latest_question
from playground.clusters.row_types import Cluster, Question
from playground.web.look import view_landing
from playground.web.looks import priority_scale
from playground.web.questions.present import view_why
from playground.web.questions.views import arrives_at, fix_address, question_context, waiting
from playground.web.requests import HtmxHttpRequest
from scheduler_core.objects.prices import read_prices
from scheduler_core.schema.tables import table_beside

_TABLES: Final = table_beside(__package__, "words.yaml")
KINDS: Final = _TABLES["fix_kinds"]
"""Kind of a fix, its title, what it means, and how it is drawn, in the order of the page."""
REASONS: Final[Mapping[str, str]] = _TABLES["reasons"]
ROWS_SHOWN: Final = 4
"""Fixes of a kind that are open; the others are folded."""
GROUPS_SHOWN: Final = 8
EVERY: Final = "*"
WORKLOADS_SHOWN: Final = 20


def fix(request: HtmxHttpRequest, cluster: Cluster, namespace: str = "", name: str = "") -> HttpResponse:
    """The page of a pod, of a workload (``?workload=``), or of all; ``?node=``, why not that node. POST asks, with
    the node `EVERY` what every node says: the board shows it."""
    workload = request.GET.get("workload", "") if not name else ""
    node = (request.POST if request.method == "POST" else request.GET).get("node", "").strip()
    params = _subject(namespace, name, workload)
    pod_params = {"namespace": namespace, "name": name}
    page = fix_address(cluster.public_id, params)
    if request.method == "POST":
        if node == EVERY and name:
            asked = questions.ask(cluster=cluster, kind="why-not", params=pod_params)
            page = f"{reverse('web:board', args=[cluster.public_id])}?{urlencode({'pick': f'{namespace}/{name}'})}"
        elif node and name:
            asked = questions.ask(cluster=cluster, kind="why-not", params={**pod_params, "node": node})
            page += f"?{urlencode({'node': node})}#why"
        else:
            asked = questions.ask(cluster=cluster, kind=QuestionKind.FIX, params=params | _prices(request))
            if "prices" in asked.params:
                page += f"{'&' if '?' in page else '?'}{urlencode({'question': asked.public_id})}"
        return waiting(request, cluster, asked) if request.htmx else redirect(page)
    question = _question(cluster, params, request.GET.get("question", ""))
    answer = question.answer if question is not None else None
    nodes = node_uses(cluster) if answer is not None and answer["subject"] != "pod" else ()
    context = question_context(request, cluster, question) | {
        "namespace": namespace,
        "name": name,
        "workload": workload,
        "node": node,
        "arrives": arrives_at(request) and not cluster.is_parked,
        "ask": page,
        "view": view_fix(answer, nodes) if answer is not None else None,
    }
    for item in (context["view"] or {}).get("workloads", ()):
        item["href"] = fix_address(cluster.public_id, item["page"])
    if name:
        context |= _about_pod(cluster, pod_params, node)
    if question is None:
        expect_questions(cluster=cluster)
    return render(request, "fix/page.html", context)


def _subject(namespace: str, name: str, workload: str) -> dict[str, str]:
    if name:
        return {"pod": f"{namespace}/{name}"}
    return {"workload": workload} if workload else {}


def _prices(request: HttpRequest) -> dict[str, Any]:
    """The posted price list, if there is one."""
    text = request.POST.get("prices", "").strip()
    return {"prices": questions.read(read_prices, text)} if text else {}


def _question(cluster: Cluster, params: Mapping[str, Any], public_id: str) -> Question | None:
    """One with a price list of a person's own by its id; else the newest about the subject."""
    if not public_id:
        return latest_question(cluster, QuestionKind.FIX, params)
    found = get_question(cluster, public_id)
    if found.kind != QuestionKind.FIX:
        raise Http404("That question is not about what places pods.")
    return found


def _about_pod(cluster: Cluster, params: dict[str, str], node: str) -> dict[str, Any]:
    pod = find_pod(cluster, params["namespace"], params["name"])
    if pod is None:
        raise Http404(f"There is no pod {params['namespace']}/{params['name']}.")
    why = latest_question(cluster, "why-not", {**params, "node": node}) if node else None
    return {
        "pod": pod,
        "mark": priority_scale(cluster).mark(pod.priority, pod.priority_class),
        "last": last_cycle_named(cluster, params["namespace"], params["name"]),
        "why_question": why,
        "why_stale": why is not None and is_stale(cluster, why),
        "why": view_why(why.answer) if why is not None and why.answer is not None else None,
    }


# ---- what the page shows


def view_fix(answer: Mapping[str, Any], nodes: Sequence[NodeUse] = ()) -> dict[str, Any]:
    """An answer for `fix/body.html`.

    Parameters
    ----------
    nodes
        Of the cluster, for a map.

    Returns
    -------
    dict
        The `answer`, its `groups` with the position of their bars in percent, its `kinds` with their fixes and their
        ranks, `workloads` with the address of each one's page, and where the pods of the best fix land: `lands`, node
        and how many, and `map`.
    """
    best = answer["best"]
    rows = [_row(rank, item) for rank, item in enumerate(answer["fixes"], start=1)]
    if answer["workloads"]:
        # Each workload's line says what places it; what is listed besides is another way for all.
        rows = [row for row in rows if best is None or row["facts"]["title"] != best["title"]]
    return {
        "answer": answer,
        "best": _row(0, best) if best is not None else None,
        "others": len(answer["pods"]) - 1 if answer["subject"] == "pod" else 0,
        "groups": [_group(item) for item in answer["groups"][:GROUPS_SHOWN]],
        "n_groups_more": max(0, len(answer["groups"]) - GROUPS_SHOWN),
        "kinds": [kind for kind in (_kind(key, rows, best) for key in range(len(KINDS))) if kind["rows"]],
        "workloads": [_workload(item) for item in answer["workloads"][:WORKLOADS_SHOWN]],
        "n_workloads_more": max(0, len(answer["workloads"]) - WORKLOADS_SHOWN),
        "lands": Counter(best["lands"].values()).most_common() if best is not None else [],
        "map": view_landing(nodes, {*best["lands"].values()}) if best is not None and nodes else None,
    }


def _row(rank: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rank": rank,
        "facts": item,
        "whole": item["placed"] == item["of"],
        "leaving": _leaving(item["displaced"]),
        "removed": item["removed"],
        "added": item["added"],
    }


def _leaving(displaced: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who has to go and what becomes of them, a sentence for each owner."""
    by_owner: dict[str, list[Mapping[str, Any]]] = {}
    for one in displaced:
        by_owner.setdefault(one["owner"] or one["pod"], []).append(one)
    found = []
    for owner, pods in by_owner.items():
        without = [one for one in pods if not one["node"]]
        who = owner if len(pods) == 1 and not pods[0]["owner"] else f"{len(pods):,} of {owner}"
        if len(pods) == 1 and pods[0]["node"]:
            found.append(f"{who} goes to {pods[0]['node']}")
        elif not without:
            found.append(f"{who} go, and all land elsewhere")
        else:
            number = "" if len(pods) == 1 else f"{len(without):,} "
            found.append(
                f"{who} go{'es' if len(pods) == 1 else ''}; {number}without a node: {without[0]['message']}"
            )
    return found


def _group(item: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the cause; the bar's whole is the larger of what is asked and what a node has."""
    whole = max(item["asked"], item["has"])
    return {
        "facts": item,
        "reason": REASONS.get(item["reason"], "refused"),
        "free": round(100 * max(0, item["free"]) / whole, 1) if whole else None,
        "asked": round(100 * item["asked"] / whole, 1) if whole else 0,
        "n_more": max(0, item["nodes"] - len(item["names"])),
    }


def _kind(at: int, rows: Sequence[dict[str, Any]], best: Mapping[str, Any] | None) -> dict[str, Any]:
    key, title, meaning, css, icon = KINDS[at]
    found = [row for row in rows if row["facts"]["kind"] == key]
    for row in found:
        row["is_best"] = best is not None and row["facts"]["title"] == best["title"]
    return {
        "key": key,
        "title": title,
        "meaning": meaning,
        "css": css,
        "icon": icon,
        "rows": found,
        "shown": found[:ROWS_SHOWN],
        "folded": found[ROWS_SHOWN:],
        "is_open": key == "keeps" or (key == "changes" and len(found) <= ROWS_SHOWN),
        "mildest": found[0]["facts"]["title"] if found else "",
    }


def _workload(item: Mapping[str, Any]) -> dict[str, Any]:
    pod = item["pods"][0] if item["pods"] else ""
    kind, _, name = item["name"].partition(" ") if item["subject"] == "workload" else ("", "", item["name"])
    return {
        "facts": item,
        "best": item["best"],
        "kind": kind,
        "name": name.partition("/")[2] or name,
        "namespace": (name or pod).partition("/")[0],
        "n_pods": len(item["pods"]),
        "page": {"workload": item["name"]} if item["subject"] == "workload" else {"pod": pod},
    }
