"""/metrics and the log lines of the worker."""

import json
import logging
import re
from collections import Counter
from typing import Any

import pytest

from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_config, set_release
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import delete_cluster, reset_cluster
from playground.clusters.metrics import Counts
from playground.clusters.models import Cluster, Metric
from playground.clusters.objects.apply import apply_documents
from playground.logs import JsonFormatter
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import priority_class, scheduler_config

pytestmark = pytest.mark.django_db
LINE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+|# (HELP|TYPE) .+')


def lived_through(client: Any) -> dict[str, str]:
    cluster = make_cluster(
        priority_class("high", 9),
        make_node("n1", "2"),
        *(make_pod(name, "1") for name in "abc"),
    )
    run(cluster)
    apply_documents(cluster=cluster, objects=[make_pod("d", "1", priorityClassName="high")])
    run(cluster)
    return figures(client)


def figures(client: Any, of: str = "") -> dict[str, str]:
    """The lines of the page, or of a cluster's."""
    answer = client.get(f"{of}/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_what_the_scheduler_did_is_counted_under_upstreams_names(client: Any) -> None:
    found = lived_through(client)
    attempts = "scheduler_schedule_attempts_total"
    assert found[f'{attempts}{{profile="default-scheduler",result="scheduled"}}'] == "3"
    assert int(found[f'{attempts}{{profile="default-scheduler",result="unschedulable"}}']) >= 2
    assert found["scheduler_preemption_attempts_total"] == "1"
    assert found["scheduler_preemption_victims_count"] == "1"
    assert found['scheduler_preemption_victims_bucket{le="1"}'] == "1"
    point = 'extension_point="Filter",profile="default-scheduler",status="Success"'
    assert int(found[f"scheduler_framework_extension_point_duration_seconds_count{{{point}}}"]) >= 3
    assert found['scheduler_cache_size{type="nodes"}'] == "1"
    assert found['playground_clusters{state="idle"}'] == "1"
    incoming = "scheduler_queue_incoming_pods_total"
    assert found[f'{incoming}{{event="UnschedulablePodAdd",queue="active"}}'] == "4"
    assert found[f'{incoming}{{event="ScheduleAttemptFailure",queue="unschedulable"}}'] == "3"
    assert found['scheduler_unschedulable_pods{plugin="NodeResourcesFit"}'] == "1"
    pending = found['scheduler_pending_pods{queue="active"}']
    assert found['scheduler_queued_entities{queue="active",type="pod"}'] == pending


@pytest.mark.parametrize(("release", "counted"), [("1.36", False), ("1.37", True)])
def test_entities_are_counted_from_1_37_on(client: Any, release: str, counted: bool) -> None:
    cluster = make_cluster(make_node("n1", "1"), make_pod("a"))
    set_release(cluster=cluster, name=release)
    run(cluster)
    assert any("queue_incoming_entities_total{" in name for name in figures(client)) is counted


def test_a_pod_bound_at_its_second_attempt_is_observed_with_the_time_between_them(client: Any) -> None:
    cluster = make_cluster(make_node("n1", "1"), make_pod("a", "2"))
    run(cluster)
    run(cluster, "7s")
    apply_documents(cluster=cluster, objects=[make_node("n2", "4")])
    run(cluster)
    found = figures(client)
    assert found['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"}'] == "7"
    assert found['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"}'] == "1"


def test_buckets_rise_and_end_at_the_count(client: Any) -> None:
    found = lived_through(client)
    name = "scheduler_scheduling_attempt_duration_seconds"
    labels = 'profile="default-scheduler",result="scheduled"'
    buckets = [
        int(value)
        for key, value in found.items()
        if key.startswith(f"{name}_bucket") and 'result="scheduled"' in key
    ]
    assert buckets == sorted(buckets)
    assert str(buckets[-1]) == found[f"{name}_count{{{labels}}}"] == "3"


@pytest.mark.dialect
def test_counts_of_two_workers_add_up() -> None:
    for _ in range(2):
        counts = Counts()
        counts.add("scheduler_schedule_attempts_total", 3, result="scheduled", profile='odd"name')
        counts.flush()
    row = Metric.objects.get()
    assert (row.value, row.labels) == (6, 'profile="odd\\"name",result="scheduled"')


@pytest.mark.dialect
def test_the_page_costs_a_fixed_number_of_queries(client: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(13):
        client.get("/metrics")


def test_log_lines_carry_cluster_and_cycle(caplog: pytest.LogCaptureFixture) -> None:
    cluster = make_cluster(make_node(), make_pod("a"), make_pod("b"))
    request_run(cluster=cluster)
    with caplog.at_level(logging.DEBUG, "playground.clusters.drive.advance"):
        advance(cluster_id=cluster.pk, memory=EngineMemory())
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    cycles = [line for line in lines if "pod" in line]
    assert [(line["cluster"], line["cycle"], line["pod"]) for line in cycles] == [
        (cluster.public_id, 1, "default/a"),
        (cluster.public_id, 2, "default/b"),
    ]
    assert cycles[0]["message"].startswith("default/a bound to n1")


def of_cluster(client: Any, cluster: Any) -> dict[str, str]:
    return figures(client, f"/api/v1/clusters/{cluster.public_id}")


def test_metrics_can_be_had_for_one_cluster_with_every_point_and_plugin(client: Any) -> None:
    lived_through(client)
    cluster = Cluster.objects.get()
    # With two nodes to choose from something is scored.
    more = [make_node("n2"), make_node("n3"), make_pod("e", "1")]
    apply_documents(cluster=cluster, objects=more)
    run(cluster)
    whole = figures(client)
    found = of_cluster(client, cluster)
    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'
    assert whole[attempts] == found[attempts] and int(found[attempts]) >= 5
    assert found['scheduler_cache_size{type="nodes"}'] == "3"
    assert not any(name.startswith("playground_clusters") for name in found)
    point = re.compile(r'scheduler_framework_extension_point_duration_seconds_count{extension_point="(\w+)"')
    # An extension point is counted once a cycle, however many plugins it has.
    counts = Counter[str]()
    for name, value in found.items():
        if match := point.match(name):
            counts[match[1]] += int(value)
    assert counts.keys() >= {
        *("PreEnqueue", "PreFilter", "Filter", "PostFilter", "PreScore", "Score"),
        *("Reserve", "Permit", "PreBind", "Bind", "PostBind"),
    }
    assert counts["PreScore"] == counts["Score"] < counts["Filter"]
    queued = sum(
        int(n) for name, n in found.items() if name.startswith("scheduler_queue_incoming_pods_total")
    )
    assert 0 < counts["PreEnqueue"] <= queued
    timed = re.compile(
        r'scheduler_plugin_execution_duration_seconds_count{extension_point="(\w+)",plugin="(\w+)",status="\w+"}'
    )
    plugins = {match.groups() for name in found if (match := timed.match(name))}
    assert {
        ("Filter", "NodeResourcesFit"),
        ("Bind", "DefaultBinder"),
        ("PreEnqueue", "SchedulingGates"),
    } <= plugins

    other = make_cluster(make_node("n9"))
    assert attempts not in of_cluster(client, other)
    assert client.get("/api/v1/clusters/nothing/metrics").status_code == 404
    # A cluster that goes takes its own figures along and leaves the sums.
    delete_cluster(cluster=cluster)
    assert not Metric.objects.filter(cluster_id=cluster.pk).exists()
    assert Metric.objects.filter(cluster=None, name="scheduler_schedule_attempts_total").exists()


@pytest.mark.dialect
def test_a_cluster_that_begins_anew_counts_anew(client: Any) -> None:
    lived_through(client)
    cluster = Cluster.objects.get()
    reset_cluster(cluster=cluster)
    assert not any(
        name.startswith("scheduler_schedule_attempts_total") for name in of_cluster(client, cluster)
    )


def test_a_new_configuration_counts_no_pod_again_and_pre_enqueue_is_timed(client: Any) -> None:
    cluster = make_cluster(make_node("n1", "2"), make_pod("a", "1"), make_pod("big", "9"))
    set_config(cluster=cluster, config=scheduler_config(podMaxBackoffSeconds=20))
    run(cluster)
    found = figures(client)
    incoming = 'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}'
    assert found[incoming] == "2"
    point = 'extension_point="PreEnqueue",profile="default-scheduler",status="Success"'
    assert int(found[f"scheduler_framework_extension_point_duration_seconds_count{{{point}}}"]) >= 2
    plugin = 'extension_point="PreEnqueue",plugin="SchedulingGates",status="Success"'
    assert int(found[f"scheduler_plugin_execution_duration_seconds_count{{{plugin}}}"]) >= 1
