"""The demo cluster."""

from typing import Any

import pytest

from playground.clusters import demo, wake
from playground.clusters.board.nodes import node_uses
from playground.clusters.board.overview import with_counts
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.history.cycles import cycle_explanation
from playground.clusters.models import Cluster, Cycle, PodDisruptionBudget
from tests.clusters.builders import run

pytestmark = pytest.mark.django_db


def test_the_demo_is_made_once_and_has_something_of_everything() -> None:
    cluster = demo.ensure_demo()
    assert demo.ensure_demo() == cluster
    assert Cluster.objects.count() == 1
    figures: Any = with_counts(cluster)
    assert (figures.n_nodes, figures.n_pods, figures.n_pending) == (12, 50, 9)
    uses = node_uses(cluster)
    assert [use.name for use in uses if not use.ready] == ["node-c2"]
    assert [use.name for use in uses if use.unschedulable] == ["node-c3"]
    assert all(use.used_cpu_milli <= use.cpu_milli for use in uses)


def test_a_newcomers_first_steps_show_a_choice_a_preemption_and_a_tie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    cluster = demo.ensure_demo()
    memory = EngineMemory()
    for until in ("cycle", "cycle", "idle"):
        request_run(cluster=cluster, until=until)
        advance(cluster_id=cluster.pk, memory=memory)
    told = {cycle.number: cycle for cycle in Cycle.objects.filter(cluster=cluster)}
    assert (told[1].pod_name, told[1].outcome, told[1].n_feasible) == ("gateway-0", "bound", 7)
    assert (told[2].pod_name, told[2].outcome) == ("checkout-api-0", "preempting")
    preemption: Any = cycle_explanation(cluster, 2)[1]
    criteria = preemption["preemption"]["criteria"]
    # Seven candidates, and the last question but one settles it: everything on the page has something to show.
    assert [step["left"] for step in criteria] == [7, 3, 2, 2, 1]
    assert criteria[-1]["name"] == "latestEarliestStart"
    later = [cycle for cycle in told.values() if cycle.pod_name == "checkout-api-0" and cycle.number > 2]
    assert [(cycle.outcome, cycle.node) for cycle in later] == [("bound", "node-b3")]
    assert any("drawn among" in cycle.sentence for cycle in told.values())
    assert any(cycle.outcome == "unschedulable" for cycle in told.values())


def test_its_budget_counts_the_pods_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    cluster = demo.ensure_demo()
    run(cluster, "cycle")
    status = PodDisruptionBudget.objects.get(cluster=cluster).manifest["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (6, 5, 1)
