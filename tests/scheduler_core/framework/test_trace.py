"""A trace comes back from its bytes as it was, and says what happened in one sentence."""

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.framework.record import CycleTrace, Tie
from scheduler_core.framework.recording import record_body
from tests.scheduler_core.recorded_clusters import RecordedCluster
from tests.tables import table

SUMMARY: dict[str, Any] = table(__file__, "SUMMARY")


@given(st.sampled_from(["resources", "domains", "preemption"]), st.integers(0, 2**32))
def test_bytes_give_the_same_explanation(kind: str, seed: int) -> None:
    made = RecordedCluster(kind, seed)
    decision = made.cluster.schedule(made.incoming())
    trace = CycleTrace(**SUMMARY)
    record_body(decision.attempt, trace, decision.ties or None, matrix=True)
    again = CycleTrace.from_bytes(trace.to_bytes())
    assert again.explain() == trace.explain()
    assert again.to_bytes() == trace.to_bytes()


def test_bytes_of_another_format_are_refused_by_number() -> None:
    with pytest.raises(ValueError, match="trace format 9 is not known"):
        CycleTrace.from_bytes(zlib.compress(bytes([9, 0, 0, 0, 0])))


TIED = (
    {"tie": Tie(2, "n1", "selectHost")},
    "default/p bound to n1: drawn among 2 nodes that tie with 600 points, 2 feasible.",
)


@pytest.mark.parametrize(
    ("changes", "words"), [*table(__file__, "one_sentence_says_how_the_cycle_ended"), TIED]
)
def test_one_sentence_says_how_the_cycle_ended(changes: dict[str, Any], words: str) -> None:
    assert CycleTrace(**SUMMARY | changes).sentence == words
