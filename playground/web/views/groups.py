"""The story of a pod group: why it waits, who of it fits where, and what would place it."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from playground.clusters import kinds
from playground.clusters.errors import ClusterError, NotFound
from playground.clusters.selectors.groups import attempts_of
from playground.clusters.selectors.objects import get_object
from playground.clusters.selectors.questions import latest_question
from playground.clusters.services import questions
from playground.web.access import get_cluster
from playground.web.views.advice import question_context


@require_http_methods(["GET", "HEAD", "POST"])
def group(request: HttpRequest, cluster_id: str, namespace: str, name: str) -> HttpResponse:
    """The newest answer about the group; looking at a group that was never asked about asks, POST asks again."""
    cluster = get_cluster(request, cluster_id)
    kind = kinds.by_kind("PodGroup")
    assert kind is not None
    try:
        manifest = get_object(cluster, kind, namespace, name)
    except NotFound:
        raise Http404(f"There is no PodGroup {namespace}/{name}.") from None
    params = {"namespace": namespace, "name": name}
    found = latest_question(cluster, "group", params)
    if found is None or request.method == "POST":
        try:
            found = questions.ask(cluster=cluster, kind="group", params=params)
        except ClusterError as error:
            messages.error(request, error.message)
        if request.method == "POST":
            return redirect("web:group", cluster.public_id, namespace, name)
    answer = found.answer if found is not None else None
    context: dict[str, Any] = question_context(request, cluster, found) | {
        "tab": "pods",
        "namespace": namespace,
        "name": name,
        "answer": answer,
        "attempts": attempts_of(
            cluster, namespace, [item["uid"] for item in answer["members"]] if answer else []
        ),
        "policy": (manifest.get("spec") or {}).get("schedulingPolicy") or {},
    }
    return render(request, "groups/page.html", context)
