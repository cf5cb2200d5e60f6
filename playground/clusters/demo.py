"""The demo cluster a newcomer finds: twelve nodes in three zones, some forty pods, a queue worth a look."""

from pathlib import Path
from typing import Any, Final

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from scheduler_core.objects.documents import load_documents

NAME: Final = "storefront-3z"
SEED: Final = 20260101


def ensure_demo() -> Cluster:
    """The demo cluster of the local user, made if there is none; safe to call at every start."""
    found = Cluster.objects.filter(owner__isnull=True, name=NAME).order_by("pk").first()
    return found or create_demo()


def create_demo(*, owner: Any = None) -> Cluster:
    """A fresh demo cluster. Its pending pods are not tried yet: the first Step is the newcomer's."""
    cluster = create_cluster(name=NAME, owner=owner, seed=SEED)
    apply_documents(cluster=cluster, objects=demo_objects())
    return cluster


def demo_objects() -> list[dict[str, Any]]:
    """Everything in the demo, in the order it is applied."""
    text = Path(__file__).with_name("demo.yaml").read_bytes()
    return [document.value for document in load_documents(text)]
