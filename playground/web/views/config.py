"""The cluster's KubeSchedulerConfiguration."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.services.config import set_config
from playground.web.access import get_cluster
from playground.web.posted_yaml import line_of, read_mapping, yaml_of
from playground.web.problems import problems_of

EMPTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


@require_http_methods(["GET", "HEAD", "POST"])
def config(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Show the configuration as YAML; saving checks it, errors come back at their line."""
    cluster = get_cluster(request, cluster_id)
    text = yaml_of([cluster.config]) if cluster.config else EMPTY
    problems: list[Any] = []
    status = 200
    if request.method == "POST":
        text = request.POST.get("text", "")
        try:
            document = None if request.POST.get("deed") == "default" else read_mapping(text)
            set_config(cluster=cluster, config=document)
        except ClusterError as error:
            if isinstance(error, InvalidManifest):
                for one in (error, *error.causes):
                    one.line = one.line or line_of(text, one.path)
            problems, status = problems_of(error, text), error.status
        else:
            words = "The default configuration is used" if document is None else "The configuration is saved"
            messages.success(request, f"{words} from the next cycle on.")
            return redirect("web:config", cluster.public_id)
    context = {
        "cluster": cluster,
        "tab": "config",
        "text": text,
        "problems": problems,
        "is_default": cluster.config is None,
    }
    return render(request, "config/page.html", context, status=status)
