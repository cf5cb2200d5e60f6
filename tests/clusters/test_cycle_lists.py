"""Cycles in lists: found, sorted and turned over by the database."""

import time

import pytest
from django.db import connection

from playground.clusters.history.cycles import PAGE_SIZE, SORTS, CycleSearch, cycle_page, plugins_that_ended
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cycle

pytestmark = [pytest.mark.django_db, pytest.mark.broken_rows]
REPEATED = 7700
OUTCOMES = ("bound", "bound", "bound", "unschedulable", "preempting")


def with_cycles(n):
    """A cluster with n cycles of a hundred pods on ten nodes; every fourth and fifth binds nothing.

    The database repeats them after 7,700, which is as many as pods, nodes, victims and feasible nodes take to return.
    """
    cluster = create_cluster(name="long", seed=7)
    rows = []
    for number in range(1, min(n, REPEATED) + 1):
        outcome = OUTCOMES[number % 5]
        rows.append(
            Cycle(
                cluster=cluster,
                number=number,
                at_ns=number,
                pod_namespace=("shop", "data")[number % 2],
                pod_name=f"web-{number % 100}",
                pod_uid="u",
                outcome=outcome,
                node=f"node-{number % 10}" if outcome == "bound" else "",
                nominated_node="node-1" if outcome == "preempting" else "",
                n_victims=number % 7 if outcome == "preempting" else 0,
                failed_plugin=("NodeResourcesFit", "NodeAffinity")[number % 2]
                if outcome == "unschedulable"
                else "",
                message="0/10 nodes are available: " + "10 Insufficient cpu. " * 20
                if outcome != "bound"
                else "",
                n_nodes=10,
                n_feasible=number % 11 if outcome == "bound" else 0,
                digest="00" * 32,
                trace=b"x" * 200 if number % 50 == 0 else None,
            )
        )
    Cycle.objects.bulk_create(rows, batch_size=1000)
    same = ", ".join(
        connection.ops.quote_name(field.column)
        for field in Cycle._meta.concrete_fields
        if field.column not in ("id", "number", "at_ns")
    )
    for before in range(REPEATED, n, REPEATED):
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {Cycle._meta.db_table} (number, at_ns, {same})"
                f" SELECT number + %s, at_ns + %s, {same} FROM {Cycle._meta.db_table} WHERE number <= %s",
                [before, before, min(REPEATED, n - before)],
            )
    return cluster


def numbers(cluster, page=1, **search):
    return [cycle.number for cycle in cycle_page(cluster, CycleSearch(**search), page=page).rows]


@pytest.mark.dialect
def test_each_filter_keeps_what_it_says_and_all_of_them_together():
    cluster = with_cycles(200)
    everything = [*Cycle.objects.filter(cluster=cluster).order_by("-number")]

    def expected(keeps):
        return [cycle.number for cycle in everything if keeps(cycle)][:PAGE_SIZE]

    assert numbers(cluster) == expected(lambda c: True)
    assert numbers(cluster, outcome="preempting") == expected(lambda c: c.outcome == "preempting")
    assert numbers(cluster, pod="shop/web-4") == expected(lambda c: c.pod == "shop/web-4")
    assert numbers(cluster, pod="web 7") == expected(lambda c: "7" in c.pod_name)
    assert numbers(cluster, node="node-1") == expected(lambda c: "node-1" in (c.node, c.nominated_node))
    assert numbers(cluster, plugin="NodeAffinity") == expected(lambda c: c.failed_plugin == "NodeAffinity")
    assert numbers(cluster, plugin="NodeAffinity", pod="web 3", outcome="unschedulable") == expected(
        lambda c: c.failed_plugin == "NodeAffinity" and "3" in c.pod_name
    )
    assert numbers(cluster, outcome="nonsense", sort="nonsense") == expected(lambda c: True)
    assert plugins_that_ended(cluster) == ["NodeAffinity", "NodeResourcesFit"]


@pytest.mark.dialect
def test_sorting_is_by_the_column_and_then_the_newest_first():
    cluster = with_cycles(200)
    assert numbers(cluster, sort="number") == [*range(1, PAGE_SIZE + 1)]
    by = {
        "pod": lambda c: (c.pod_namespace, c.pod_name),
        "outcome": lambda c: c.outcome,
        "node": lambda c: c.node,
        "feasible": lambda c: c.n_feasible,
        "victims": lambda c: c.n_victims,
    }
    assert {"number", *by} == set(SORTS)
    newest_first = [*Cycle.objects.filter(cluster=cluster).order_by("-number")]
    for sort, key in by.items():
        for descending in (False, True):
            wanted = [c.number for c in sorted(newest_first, key=key, reverse=descending)]
            if descending:  # Python keeps equals in their order only when it sorts upwards
                wanted = [
                    c.number
                    for value in sorted({key(c) for c in newest_first}, reverse=True)
                    for c in newest_first
                    if key(c) == value
                ]
            pages = [
                n for page in range(1, 9) for n in numbers(cluster, page, sort=f"{'-' * descending}{sort}")
            ]
            assert pages == wanted, (sort, descending)


@pytest.mark.dialect
def test_a_page_beyond_the_last_is_the_last():
    cluster = with_cycles(70)
    found = cycle_page(cluster, CycleSearch(), page=99)
    assert (found.n_found, found.page, found.n_pages) == (70, 3, 3)
    assert [cycle.number for cycle in found.rows] == [*range(20, 0, -1)]


@pytest.mark.nightly("playground/clusters/history/", "playground/clusters/models.py")
def test_sixty_thousand_cycles_are_found_and_sorted_below_a_tenth_of_a_second(django_assert_max_num_queries):
    cluster = with_cycles(60_000)
    searches = [CycleSearch(sort=f"-{sort}") for sort in SORTS]
    searches += [
        CycleSearch(pod="99"),
        CycleSearch(pod="shop/web-4"),
        CycleSearch(node="node-1", sort="pod"),
        CycleSearch(plugin="NodeAffinity", sort="-feasible"),
        CycleSearch(outcome="preempting", sort="-victims"),
        CycleSearch(pod="nothing"),
    ]
    for search in searches:
        for page in (1, 1200):
            took = []
            for _ in range(3):
                # This process' own time, the database's in it: the machine may be busy. A core whose other half
                # is busy takes up to twice as long.
                began_s = time.process_time()
                with django_assert_max_num_queries(3):
                    cycle_page(cluster, search, page=page)
                took.append(time.process_time() - began_s)
            assert min(took) < 2 * 0.1, (search, page, took)
