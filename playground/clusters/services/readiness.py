"""Engines loaded before a question is asked: at 60,000 pods loading takes most of the time of an answer."""

from django.core.cache import cache

from playground.clusters import wake
from playground.clusters.models import Cluster
from playground.clusters.services.advance import engine_of
from playground.clusters.services.memory import ENGINES, EngineMemory
from playground.engine.simulator import default_simulator


def expect_questions(*, cluster: Cluster) -> None:
    """A user looks at a pod that waits, and may ask about it: a worker loads the engine meanwhile.

    Asked for once a minute and state at most.
    """
    state = f"engine-ready:{cluster.public_id}:{cluster.generation}:{cluster.engine_seq}"
    if not cluster.is_parked and cache.add(state, 1, 60):
        wake.send(wake.READY, cluster_id=cluster.pk)


def ready_engine(*, cluster_id: int, memory: EngineMemory | None = None) -> bool:
    """Have the cluster's engine in this process's memory; whether it was loaded. Nothing is locked or written."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    memory = ENGINES if memory is None else memory
    if cluster is None or cluster.is_parked or not cluster.engine_seq:
        return False
    known = memory.take(cluster)
    memory.put(cluster.pk, known or engine_of(cluster, memory, default_simulator()))
    return known is None
