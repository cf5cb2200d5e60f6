"""The allocator opened up: how a recorded cycle looked for its pod's devices, node by node and device by device."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError, NotFound
from playground.clusters.selectors.cycles import get_cycle
from playground.clusters.selectors.questions import latest_question
from playground.clusters.services import questions
from playground.web.access import get_cluster
from playground.web.devices import view_devices
from playground.web.htmx import HtmxHttpRequest
from playground.web.views.advice import question_context


@require_safe
@vary_on_headers("HX-Request")
def cycle_devices(request: HtmxHttpRequest, cluster_id: str, number: int) -> HttpResponse:
    """The claims, requests and devices of a cycle; ``?node=`` opens one node, ``?device=&request=`` one device.

    Looking asks: the answer is about the past and is kept. The fragment alone for htmx.
    """
    cluster = get_cluster(request, cluster_id)
    try:
        row = get_cycle(cluster, number)
    except NotFound:
        raise Http404(f"There is no cycle {number}.") from None
    node = request.GET.get("node", "").strip()[:253]
    params = {"cycle": number, "node": node}
    found = latest_question(cluster, "devices", params)
    context: dict[str, Any] = {"tab": "cycles", "row": row, "node": node}
    if found is None:
        try:
            found = questions.ask(cluster=cluster, kind="devices", params=params)
        except ClusterError as error:
            context["refused"] = error.message
    context |= question_context(request, cluster, found)
    if found is not None and found.answer is not None:
        device, wanted = request.GET.get("device", ""), request.GET.get("request", "")
        context["view"] = view_devices(found.answer, device, wanted)
    template = "devices/answer.html" if request.htmx and "part" in request.GET else "devices/page.html"
    return render(request, template, context)
