"""How long pods of Jobs last: an annotation of the Namespace kube-system is the cluster's own say."""

from playground.clusters import kinds
from playground.clusters.models import Cluster, Manifest
from playground.clusters.services.objects import patch_object
from playground.engine.durations import CLUSTER_NAMESPACE, DEFAULT_DURATION, DURATION


def job_duration(cluster: Cluster) -> str:
    """What the cluster says: `1m`, `never`."""
    row = Manifest.objects.filter(cluster=cluster, kind="Namespace", name=CLUSTER_NAMESPACE).first()
    annotations = {} if row is None else row.manifest["metadata"].get("annotations") or {}
    return str(annotations.get(DURATION) or DEFAULT_DURATION)


def set_job_duration(*, cluster: Cluster, lasting: str) -> str:
    """Let pods that Jobs make from now on end after so long, unless they, their Job or its Namespace say otherwise.

    Parameters
    ----------
    lasting
        `90s`, `5m`, `never`; empty is the default.

    Raises
    ------
    InvalidManifest
    """
    kind = kinds.by_kind("Namespace")
    assert kind is not None
    patch = {"metadata": {"annotations": {DURATION: lasting or None}}}
    patch_object(cluster=cluster, kind=kind, namespace="", name=CLUSTER_NAMESPACE, patch=patch)
    return lasting or DEFAULT_DURATION
