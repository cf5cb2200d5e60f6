"""`/k8s/{id}` and everything below it: one view, which reads the path as an API server does."""

from __future__ import annotations

from django.urls import path, re_path

from playground.kube_api.views import KubernetesAPI

app_name = "kube_api"

urlpatterns = [
    path("<str:cluster_id>", KubernetesAPI.as_view(), name="root"),
    re_path(r"^(?P<cluster_id>[^/]+)/(?P<path>.*)$", KubernetesAPI.as_view(), name="resource"),
]
