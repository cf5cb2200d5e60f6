"""A site in the middle of its work: ``python -m tests.deploy.busy make | work``, on the database of `DATABASE_URL`."""

import json
import os
import sys


def make() -> None:
    """A cluster whose run has hardly begun."""
    from playground.clusters.drive.runs import request_run
    from playground.clusters.lifecycle import create_cluster
    from playground.clusters.objects.apply import apply_documents
    from tests.clusters.builders import START_NS, make_node, make_pod

    cluster = create_cluster(name="busy", seed=7, start_ns=START_NS)
    nodes = [make_node(f"n{i}", cpu="16") for i in range(12)]
    pods = [make_pod(f"p{i:03}", cpu=f"{100 + i % 7 * 150}m") for i in range(300)]
    apply_documents(cluster=cluster, objects=[*nodes, *pods])
    request_run(cluster=cluster)


def work() -> None:
    """Be the worker until the run is over; then say what was decided."""
    from playground.clusters import wake
    from playground.clusters.drive.advance import Visit, advance
    from playground.clusters.drive.memory import EngineMemory
    from playground.clusters.models import Cluster, Cycle, Pod, Run
    from playground.engine.batch import Budget

    wake.send = lambda task, **how: True
    cluster = Cluster.objects.get(name="busy")
    memory = EngineMemory()
    while cluster.runs.filter(state__in=Run.OPEN).exists():
        visit = Visit(wall_s=5, batch=Budget(wall_s=5, max_cycles=5))
        advance(cluster_id=cluster.pk, memory=memory, visit=visit)
    cycles = Cycle.objects.order_by("number").values_list("number", "pod_name", "outcome", "node", "digest")
    print(json.dumps({"cycles": list(cycles), "pods": dict(Pod.objects.values_list("name", "node_name"))}))


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "playground.settings"
    import django

    django.setup()
    {"make": make, "work": work}[sys.argv[1]]()


if __name__ == "__main__":
    main()
