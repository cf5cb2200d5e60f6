"""What pages read: the right answers, in a pinned number of SQL queries whatever the cluster's size."""

from collections.abc import Callable
from typing import Any

import pytest

from playground.clusters.board.nodes import node_uses, pods_on
from playground.clusters.board.overview import clusters_overview, figures_of
from playground.clusters.board.pods import PodSearch, pod_page
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import NotFound
from playground.clusters.history.cycles import cycles, neighbours
from playground.clusters.history.queue import lanes_of, queue_view
from playground.clusters.history.story import pod_story
from playground.clusters.kinds import by_kind, named
from playground.clusters.lifecycle import delete_cluster, rename_cluster, reset_cluster
from playground.clusters.models import Cluster, Cycle, Event, LogEntry, Pod
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.queries import current_run, log_after
from playground.clusters.objects.write import delete_object
from playground.clusters.pulse import stamps_of
from tests.clusters.builders import Worker, make_cluster, make_node, make_pod
from tests.tables import table

pytestmark = pytest.mark.django_db

# Queries a page costs. More than before is a mistake unless a comment says why.
QUERIES = table(__file__, "QUERIES")


def grown(n_nodes: int) -> Cluster:
    nodes = [make_node(f"n{number:03}", "2") for number in range(n_nodes)]
    pods = [make_pod(f"p{number:03}") for number in range(2 * n_nodes + 3)]
    cluster = make_cluster(*nodes, *pods)
    request_run(cluster=cluster)
    Worker().advance(cluster)
    apply_documents(cluster=cluster, objects=[make_pod("late")])
    return cluster


@pytest.mark.parametrize("n_nodes", [2, 40])
def test_the_number_of_queries_does_not_grow(n_nodes: int, django_assert_num_queries: Any) -> None:
    cluster = grown(n_nodes)
    reads: dict[str, Callable[[], Any]] = {
        "overview": lambda: clusters_overview(None),
        "node uses": lambda: node_uses(cluster),
        "pods on nodes": lambda: pods_on(cluster),
        "current run": lambda: current_run(cluster),
        "cycles": lambda: cycles(cluster),
        "cycle": lambda: Cycle.objects.get(cluster=cluster, number=1),
        "neighbours": lambda: neighbours(cluster, 2),
        "pod story": lambda: pod_story(cluster, "default", f"p{2 * n_nodes:03}"),
        "queue": lambda: queue_view(cluster),
    }
    for name, read in reads.items():
        with django_assert_num_queries(QUERIES[name], info=name):
            read()


@pytest.mark.dialect
def test_nodes_pods_lanes_and_the_newest_run_are_read() -> None:
    cluster = grown(2)
    uses = node_uses(cluster)
    assert [(use.name, use.used_cpu_milli, use.percent("cpu"), use.n_pods) for use in uses] == [
        ("n000", 2000, 100, 2),
        ("n001", 2000, 100, 2),
    ]
    placed = [(pod.name, pod.phase) for pods in pods_on(cluster).values() for pod in pods]
    assert sorted(placed) == [(f"p{number:03}", "Running") for number in range(4)]
    lanes, counts = lanes_of(cluster, full=False)
    assert [(item.pod, item.read) for item in lanes["active"]] == [("default/late", False)]
    assert counts["unschedulable"] == 3
    assert [cycle.number for cycle in cycles(cluster)] == [7, 6, 5, 4, 3, 2, 1]
    found = current_run(cluster)
    assert found is not None and found.state == "done"


@pytest.mark.dialect
def test_alike_pods_of_an_owner_are_a_row_and_a_page_beyond_the_last_is_the_last() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    owned = [make_pod(f"web-{number}") for number in range(3)]
    for pod in owned:
        pod["metadata"]["ownerReferences"] = [owner]
    cluster = make_cluster(*owned, make_pod("web-large", "2"), *(make_pod(f"p{n}") for n in range(4)))
    rows = {page: pod_page(cluster, PodSearch(), page=page, limit=2) for page in (0, 1, 3, 9)}
    assert [(row.pod.name, row.n, row.n_nodes) for row in rows[1].rows] == [
        ("web-0", 3, 1),
        ("web-large", 1, 1),
    ]
    assert rows[0] == rows[1] and rows[9] == rows[3]
    assert (rows[3].page, rows[3].n_pages, rows[3].n_found, [row.pod.name for row in rows[3].rows]) == (
        3, 3, 8, ["p2", "p3"],
    )  # fmt: skip
    assert len(pod_page(cluster, PodSearch(q="web"), limit=9).rows) == 4
    none = pod_page(cluster, PodSearch(q="nothing"), page=5)
    assert (none.rows, none.page, none.n_pages, none.n_found) == ([], 1, 1, 0)


@pytest.mark.dialect
def test_a_pods_story_is_told_in_order_even_when_it_is_gone() -> None:
    cluster = grown(2)
    story = pod_story(cluster, "default", "p000")
    assert [step.title for step in story.steps] == [
        "Created", "Into activeQ", "Attempt 1, cycle 1", "Bound", "Running"
    ]  # fmt: skip
    kind = named("Pod")
    delete_object(cluster=cluster, kind=kind, namespace="default", name="p000", grace_s=0)
    gone = pod_story(cluster, "default", "p000")
    assert gone.traces.pod is None
    assert gone.steps[-1].title == "Deleted"
    waiting = pod_story(cluster, "default", "p006").queue
    assert waiting is not None
    assert waiting.lane == "unschedulable" and "2 Insufficient cpu" in waiting.reason
    with pytest.raises(NotFound):
        pod_story(cluster, "default", "absent")


def test_the_version_changes_with_every_visible_change_and_only_then() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    seen = [stamps_of([cluster.pk])[cluster.pk]]
    assert stamps_of([cluster.pk])[cluster.pk] == seen[-1]
    for change in (
        lambda: request_run(cluster=cluster),
        lambda: Worker().advance(cluster),
        lambda: rename_cluster(cluster=cluster, name="other"),
        lambda: reset_cluster(cluster=cluster),
    ):
        change()
        seen.append(stamps_of([cluster.pk])[cluster.pk])
    assert len(set(seen)) == len(seen)
    delete_cluster(cluster=cluster)
    assert not stamps_of([cluster.pk])


@pytest.mark.dialect
def test_a_finished_or_waiting_pod_takes_no_room() -> None:
    def pod(name: str, phase: str, **spec: Any) -> dict[str, Any]:
        return make_pod(name, cpu="1", **spec) | {"status": {"phase": phase}}

    cluster = make_cluster(
        make_node(),
        pod("running", "Running", nodeName="n1"),
        pod("done", "Succeeded", nodeName="n1"),
        pod("waits", "Pending"),
    )
    assert [(use.used_cpu_milli, use.n_pods) for use in node_uses(cluster)] == [(1000, 1)]
    assert list(pods_on(cluster)) == ["n1"] and [item.name for item in pods_on(cluster)["n1"]] == ["running"]
    card = figures_of([cluster])[cluster.pk]
    assert (card.n_pods, card.n_pending, card.cpu_requested_milli) == (2, 1, 1000)
    assert list(Pod.objects.filter(takes_room=True).values_list("name", flat=True)) == ["running"]


@pytest.mark.dialect
def test_a_watch_of_events_reads_the_rows_which_have_numbers_but_no_entries() -> None:
    cluster = make_cluster(make_node("n1", "8"), make_pod("a"), make_pod("b", namespace="other"))
    request_run(cluster=cluster)
    Worker().advance(cluster)
    assert not LogEntry.objects.filter(object_kind="Event").exists()
    kind = by_kind("Event")
    told = log_after(cluster, 0, kind=kind)
    rows = Event.objects.order_by("resource_version")
    assert [entry.seq for entry in told] == list(rows.values_list("resource_version", flat=True))
    assert all(entry.created and entry.payload["manifest"]["kind"] == "Event" for entry in told)
    assert {entry.object_namespace for entry in log_after(cluster, 0, kind=kind, namespace="other")} == {
        "other"
    }
    assert log_after(cluster, told[0].seq, kind=kind)[0].seq == told[1].seq
    assert len(log_after(cluster, 0, kind=kind, limit=1)) == 1
    again = rows[0]
    again.manifest = {**again.manifest, "count": 2}
    again.resource_version = cluster.next_seq
    again.save()
    newest = log_after(cluster, 0, kind=kind)[-1]
    assert (newest.object_name, newest.created) == (again.name, False)
