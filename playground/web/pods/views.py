"""Pods: submit one, read its story, list them."""

from __future__ import annotations

import shlex
from typing import Any

from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string

from playground.clusters import kinds, questions
from playground.clusters.board.nodes import pools_of
from playground.clusters.board.pods import (
    STATES,
    PodSearch,
    budgets_of_pod,
    names_beginning,
    namespaces_of,
    pod_page,
    priorities,
)
from playground.clusters.choices import Lane
from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive.extender_calls import bind_calls_of
from playground.clusters.drive.runs import request_run
from playground.clusters.drive.turns import expect_questions
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.history.cycles import attempts_of, cycle_explanation
from playground.clusters.history.queue import LANE_TITLES
from playground.clusters.history.story import pod_traces
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.queries import get_object
from playground.clusters.questions import latest_question
from playground.clusters.row_types import Cluster, Cycle
from playground.engine.columns import profile_names
from playground.web.cycles.present import EACH_NODE_LIMIT, call_of_wire, view_filter
from playground.web.listing import POD_BUTTONS, Listing, sorted_columns
from playground.web.looks import priority_scale
from playground.web.pods.forms import PodForm, values_of
from playground.web.pods.present import (
    backoffs_elsewhere,
    cache_state,
    group_of,
    story_sentence,
    story_steps,
    swim_lanes,
)
from playground.web.problems import problems_of, read_mapping, yaml_of
from playground.web.questions.views import question_context
from playground.web.requests import HtmxHttpRequest, digest_of, positive_int
from scheduler_core.sim.kubelet import DURATION

POD_COLUMNS = (
    ("name", "Pod", False),
    ("namespace", "Namespace", False),
    ("lane", "State", False),
    ("priority", "Priority", True),
    ("cpu", "CPU", True),
    ("memory", "Memory", True),
    ("node", "Node", False),
)


def pod_list(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """Pods, found and sorted as the address says; the table alone for htmx."""
    asked = {name: request.GET.get(name, "").strip() for name in PodSearch.__dataclass_fields__}
    search = PodSearch(**asked)
    context = {
        "found": pod_page(cluster, search, page=positive_int(request.GET.get("page")) or 1),
        "search": search,
        "filtered": any(value for name, value in asked.items() if name != "sort"),
        "address": Listing(asked),
        "columns": sorted_columns(POD_COLUMNS, search.sort),
        "actions": POD_BUTTONS,
    }
    if request.htmx and request.htmx.target == "rows" and not request.htmx.history_restore_request:
        return render(request, "pods/rows.html", context)
    context |= {
        "namespaces": namespaces_of(cluster),
        "states": [(state, LANE_TITLES.get(state, state)) for state in STATES],
        "lane_title": LANE_TITLES.get(search.lane, search.lane) if search.lane in STATES else "",
    }
    return render(request, "pods/list.html", context)


def pod_story(request: HtmxHttpRequest, cluster: Cluster, namespace: str, name: str) -> HttpResponse:
    """Everything that ever happened to one pod; what a tick brings for htmx, 204 if that is on the page already."""
    story = pod_traces(cluster, namespace, name)
    now_ns = virtual_now_ns(cluster)
    steps = story_steps(story, now_ns=now_ns)
    if story.pod is None and not steps:
        raise Http404(f"There is no pod {namespace}/{name} and no trace of one.")
    is_foreign = story.pod is not None and story.pod.scheduler_name not in profile_names(cluster.config)
    outcome, sentence = story_sentence(story, is_foreign=is_foreign)
    last = story.cycles[-1] if story.cycles else None
    pending = story.pod is not None and not story.pod.node_name and story.pod.lane != Lane.BINDING
    context: dict[str, Any] = {
        "namespace": namespace,
        "name": name,
        "pod": story.pod,
        "is_foreign": is_foreign,
        "outcome": outcome,
        "sentence": sentence,
        "cache": cache_state(story.pod, last),
        "steps": steps,
        "span_ns": max((step.stayed_ns or 0 for step in steps), default=0),
        "swim": swim_lanes(
            story,
            steps,
            start_ns=cluster.start_ns,
            now_ns=now_ns,
            backoffs=backoffs_elsewhere(story, cluster.config, cluster.release),
        ),
        "attempts": story.cycles[-4:],
        "streams": isinstance(request, ASGIRequest),
        "group": group_of(story.pod),
        "last_cycle": last,
        "last_message": last.message if last and pending else "",
    }
    if last and pending and not request.htmx:
        expect_questions(cluster=cluster)
    if last and pending and last.n_nodes:
        context["why"] = why_not_running(cluster, last)
    if story.pod and (cluster.config or {}).get("extenders"):
        calls = bind_calls_of(cluster, story.pod.uid)
        context["view"] = {"extenders": [call_of_wire(call) for call in calls]}
    if story.pod:
        context["mark"] = priority_scale(cluster).mark(story.pod.priority, story.pod.priority_class)
        context["budgets"] = budgets_of_pod(cluster, story.pod)
        annotations = story.pod.manifest["metadata"].get("annotations") or {}
        context["lasts"] = annotations.get(DURATION, "")
    context["have"] = digest_of(render_to_string("pods/story_live.html", context, request))
    if not request.htmx:
        return render(request, "pods/story.html", context)
    if request.GET.get("have") == context["have"]:
        return HttpResponse(status=204)
    return render(request, "pods/story_live.html", context)


def why_not_running(cluster: Cluster, last: Cycle) -> dict[str, Any] | None:
    """What stopped each node in a cycle; None when its trace was not kept, or no filter ran.

    Where nodes are counted in groups, the amounts of each are not asked for.
    """
    large = last.n_nodes > EACH_NODE_LIMIT
    _, document = cycle_explanation(cluster, last.number, full=not large)
    return view_filter(document, pools=pools_of(cluster) if large else None) if document else None


def pod_new(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The form and its YAML. POST with ``action``: preview (htmx), submit the form, or submit the YAML."""
    classes = [(name, value) for name, value, _ in priorities(cluster)]
    action = request.POST.get("action", "")
    if request.method != "POST":
        form = PodForm(priority_classes=classes, initial=_defaults(cluster))
        text = _text_of(PodForm({**_plain(form)}, priority_classes=classes))
        return _render(request, cluster, form, text)
    if action == "from_yaml":
        return _form_of_yaml(request, cluster, classes)
    form = PodForm(request.POST, priority_classes=classes, base=_base(request.POST.get("yaml", "")))
    if action == "yaml":
        return _submit(request, cluster, PodForm(priority_classes=classes, initial=_defaults(cluster)),
                       request.POST.get("yaml", ""))  # fmt: skip
    if not form.is_valid():
        # The YAML stays: it holds what the form has no field for.
        kept = request.POST.get("yaml", "")
        return _render(request, cluster, form, kept, status=200 if action == "preview" else 400)
    text = yaml_of(form.manifests())
    if action == "preview":
        try:
            apply_documents(cluster=cluster, text=text, dry_run=True, field_validation="Strict")
        except ClusterError as error:
            return _render(request, cluster, form, text, error=error, status=200)
        return _render(request, cluster, form, text)
    return _submit(request, cluster, form, text)


def _base(text: str) -> dict[str, Any] | None:
    """The pod in the editor, for the parts the form has no field for; None when it cannot be read."""
    try:
        posted = read_mapping(text) if text.strip() else {}
    except ClusterError:
        return None
    return posted if posted.get("kind") == "Pod" else None


def _form_of_yaml(request: HttpRequest, cluster: Cluster, classes: list[tuple[str, int]]) -> HttpResponse:
    """The form as the edited YAML says; while the YAML is wrong, what is wrong with it."""
    text = request.POST.get("yaml", "")
    try:
        apply_documents(cluster=cluster, text=text, dry_run=True, field_validation="Strict")
        manifest = read_mapping(text)
        if manifest.get("kind") != "Pod":
            raise InvalidManifest("the form shows one Pod; other YAML can be submitted as it is")
        form = PodForm(values_of(manifest), priority_classes=classes, base=manifest)
    except ClusterError as error:
        form = PodForm(request.POST, priority_classes=classes)
        context = {"form": form, "yaml_problems": problems_of(error, text)}
        return render(request, "pods/form_fields.html", context)
    return render(request, "pods/form_fields.html", {"form": form})


def _submit(request: HtmxHttpRequest, cluster: Cluster, form: PodForm, text: str) -> HttpResponse:
    try:
        result = apply_documents(cluster=cluster, text=text, field_validation="Strict")
        asked = "then_yaml" if request.POST.get("action") == "yaml" else "then"
        if request.POST.get(asked) == "run":
            request_run(cluster=cluster, until="idle")
    except ClusterError as error:
        return _render(request, cluster, form, text, error=error, status=error.status)
    made = [item for item in result.created if item.kind == "Pod"]
    if not made:
        messages.warning(request, "Nothing new: a pod of that name exists already and is unchanged.")
        return _render(request, cluster, form, text)
    words = made[0].name if len(made) == 1 else f"{len(made):,} pods"
    messages.success(request, f"{words} submitted.")
    if len(made) == 1:
        return redirect("web:pod", cluster.public_id, made[0].namespace, made[0].name)
    return redirect("web:board", cluster.public_id)


def _render(
    request: HtmxHttpRequest,
    cluster: Cluster,
    form: PodForm,
    text: str,
    *,
    error: ClusterError | None = None,
    status: int = 200,
) -> HttpResponse:
    namespace = form.data.get("namespace") or "default"
    origin = request.build_absolute_uri("/").rstrip("/")
    server = f"{origin}/k8s/{cluster.public_id}"
    context = {
        "form": form,
        "text": text,
        "problems": problems_of(error, text) if error else [],
        "kubectl": f"kubectl --server {server} create -f pod.yaml",
        "curl": "curl -X POST --data-binary @pod.yaml \\\n  -H 'Content-Type: application/yaml' \\\n  "
        + shlex.quote(f"{server}/api/v1/namespaces/{namespace}/pods"),
    }
    template = "pods/yaml_side.html" if request.htmx else "pods/new.html"
    response = render(request, template, context, status=status)
    if request.htmx:
        # A group whose last row was filled in gets another one.
        for key, legend, rows in form.groups:
            if f"{key}_{len(rows) - 1}_key" not in request.POST:
                row_context = {"key": key, "legend": legend, "rows": rows, "out_of_band": True}
                response.content += render_to_string("pods/form_rows.html", row_context, request).encode()
    response["X-Swap"] = "1"
    return response


def _defaults(cluster: Cluster) -> dict[str, Any]:
    """A free name: web-1, web-2, ..."""
    taken = names_beginning(cluster, "default", "web-")
    number = 1
    while f"web-{number}" in taken:
        number += 1
    return {"name": f"web-{number}"}


def _plain(form: PodForm) -> dict[str, Any]:
    """The initial values as if they had been posted."""
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    return {name: "" if value is None else value for name, value in values.items()}


def _text_of(form: PodForm) -> str:
    return yaml_of(form.manifests()) if form.is_valid() else ""


def group(request: HttpRequest, cluster: Cluster, namespace: str, name: str) -> HttpResponse:
    """The newest answer about the group; looking at a group that was never asked about asks, POST asks again."""
    manifest = get_object(cluster, kinds.named("PodGroup"), namespace, name)
    params = {"namespace": namespace, "name": name}
    found = latest_question(cluster, "group", params)
    if request.method == "POST" or (found is None and not cluster.is_parked):
        found = questions.ask(cluster=cluster, kind="group", params=params)
        if request.method == "POST":
            return redirect("web:group", cluster.public_id, namespace, name)
    answer = found.answer if found is not None else None
    context: dict[str, Any] = question_context(request, cluster, found) | {
        "namespace": namespace,
        "name": name,
        "answer": answer,
        "attempts": attempts_of(
            cluster, namespace, [item["uid"] for item in answer["members"]] if answer else []
        ),
        "policy": (manifest.get("spec") or {}).get("schedulingPolicy") or {},
    }
    return render(request, "groups/page.html", context)
