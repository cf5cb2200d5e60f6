"""Answers kept between cycles: what failed is asked again; what changed is known (kept = fresh: `test_columns.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.cluster.journal import Journal
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import pod_from
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from tests.manifests import node, pod
from tests.scheduler_core.stored import prepare

pytestmark = pytest.mark.usefixtures("every_threshold")


@pytest.mark.parametrize("point", ["filter", "score"])
def test_what_a_plugin_failed_to_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    asked = pod_from(prepare(pod("p")))
    cluster = CaseCluster([node("n1", "3"), node("n2", "2")], None)
    assert cluster.schedule(asked).node_name == "n1"
    _, _, _, changed = parse(prepare(node("n2", "4")))
    cluster.cache.set_node(changed)
    with monkeypatch.context() as patch:
        patch.setattr(NodeResourcesFit, point, broken)
        assert cluster.schedule(asked).error
    assert cluster.schedule(asked).node_name == "n2"


def test_a_journal_names_each_changed_row_once_and_in_order() -> None:
    journal = Journal()
    start = journal.position
    for row in (5, 2, 5, 9):
        journal.record(row)
    assert journal.since(start, 10) == [2, 5, 9]
    assert journal.since(journal.position, 10) == []


def test_a_journal_that_forgot_says_so() -> None:
    journal = Journal()
    for row in range(200_000):
        journal.record(row % 7)
    assert journal.since(0, 10**9) is None
    assert journal.since(journal.position - 3, 2) is None
