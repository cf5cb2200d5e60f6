"""What is looked at after each test finds what is broken: each break is one statement about one row."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F

from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Cycle, LogEntry, Pod
from tests.clusters.builders import Worker, make_cluster, make_node, make_pod
from tests.clusters.invariants import validate

pytestmark = [pytest.mark.django_db, pytest.mark.broken_rows]

BREAKS: dict[str, Callable[[], Any]] = {
    "is not below the counter": lambda: Cluster.objects.update(next_seq=F("engine_seq")),
    "is no `ran` entry": lambda: Cluster.objects.update(engine_seq=1),
    "an input lies behind": lambda: Cluster.objects.update(last_input_seq=1),
    "is missing after entry": lambda: Pod.objects.filter(name="a").delete(),
    "is not what entry": lambda: Pod.objects.update(resource_version=1),
    "has a row and no entry": lambda: LogEntry.objects.filter(object_name="n1").delete(),
    "columns ['cpu_milli']": lambda: Pod.objects.filter(name="a").update(cpu_milli=1),
    "are not 1 to": lambda: Cycle.objects.filter(number=1).delete(),
    "that the log does not have": lambda: Cycle.objects.update(ran_seq=1),
    "waits in active": lambda: Pod.objects.exclude(node_name="").update(lane="active"),
}


@pytest.mark.parametrize("said", BREAKS)
def test_what_is_broken_is_found(said: str) -> None:
    cluster = make_cluster(make_node("n1"), make_pod("a"), make_pod("b"))
    request_run(cluster=cluster)
    Worker().advance(cluster)
    assert validate(cluster) == []
    BREAKS[said]()
    cluster.refresh_from_db()
    assert any(said in problem for problem in validate(cluster)), validate(cluster)
