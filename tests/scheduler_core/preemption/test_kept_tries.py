"""What is kept of earlier preemptions is what trying every node afresh would give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import CaseCluster, decision_body
from scheduler_core.framework.preemption.reprieve import DryRun, KeptTries, Sampling, dry_run
from scheduler_core.objects.kinds import parse
from tests.manifests import budget, node, pod
from tests.scheduler_core.afresh import afresh
from tests.scheduler_core.recorded_clusters import RecordedCluster
from tests.scheduler_core.stored import prepare

pytestmark = pytest.mark.usefixtures("every_threshold")


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_kept_tries_and_verdicts_equal_fresh_ones_whatever_happens_between_cycles(seed: int) -> None:
    full = RecordedCluster("preemption", seed)
    random, pods = full.random, [full.incoming() for _ in range(3)]
    for _ in range(6):
        preemptor = random.choice(pods)
        kept, new = full.cluster.schedule(preemptor), afresh(full.cluster).schedule(preemptor)
        assert decision_body(kept) == decision_body(new)
        assert (kept.post_filter is None) == (new.post_filter is None)
        if kept.post_filter is not None and new.post_filter is not None:
            assert kept.post_filter.trace.explain() == new.post_filter.trace.explain()
            if kept.post_filter.nominated_node_name and random.random() < 0.5:
                # It goes on as a scheduler would: the node has its nomination, the victims go.
                full.cluster.nominator.add(preemptor, kept.post_filter.nominated_node_name)
                for victim in kept.post_filter.victims:
                    full.cluster.cache.remove_pod(victim.uid)
        for _ in range(random.randint(0, 2)):
            full.change()


def test_a_budget_that_changes_is_heeded_by_the_next_cycle() -> None:
    there = [pod(app, labels={"app": app}, nodeName=f"{app}-node", priority=0) for app in ("web", "db")]
    cluster = CaseCluster([node("web-node", "1"), node("db-node", "1"), *there], None)
    preemptor, chosen = cluster.pending_pod(pod("p", priority=5)), []
    for app in ("web", "db"):
        kept = budget("kept", selector={"matchLabels": {"app": app}}) | {"status": {"disruptionsAllowed": 0}}
        cluster.cache.listers.set("PodDisruptionBudget", "default", "kept", parse(prepare(kept)).typed)
        result = cluster.schedule(preemptor).post_filter
        chosen.append(result and result.nominated_node_name)
    assert chosen == ["db-node", "web-node"]


class KnownTries(KeptTries):
    """Verdicts that are known from the start: row 0 is no candidate, 1 a harmless one, 2 one that breaks a budget."""

    def __init__(self, kinds: list[int]) -> None:
        super().__init__()
        self._verdict = np.array([0 if kind == 0 else -1 for kind in kinds], np.int64)
        self._violations = np.array([1 if kind == 2 else 0 for kind in kinds], np.int64)

    def verdicts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._verdict[rows], self._violations[rows]

    def dry_run(self, rows: np.ndarray) -> DryRun:
        return DryRun(rows, self._verdict[rows], [], np.zeros((5, len(rows)), np.int64), [])


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(1, 12), st.integers(0, 29))
def test_trying_ends_at_the_node_that_makes_it_enough(kinds: list[int], n_wanted: int, offset: int) -> None:
    offset %= len(kinds)
    run, places = dry_run(KnownTries(kinds), np.arange(len(kinds)), Sampling(offset, n_wanted))
    order = [(offset + turn) % len(kinds) for turn in range(len(kinds))]
    harmless: list[int] = []
    harmful: list[int] = []
    tried: list[int] = []
    for row in order:
        # Node by node, as upstream's workers do it one at a time.
        tried.append(row)
        if kinds[row] == 1 and len(harmless) < n_wanted:
            harmless.append(row)
        if kinds[row] == 2 and len(harmful) < n_wanted:
            harmful.append(row)
        if harmless and len(harmless) + len(harmful) >= n_wanted:
            break
    assert run.rows.tolist() == tried
    assert run.rows[places].tolist() == harmless + harmful


def test_trying_ends_where_nothing_is_wanted() -> None:
    run, places = dry_run(KnownTries([1, 1]), np.arange(2), Sampling(0, 0))
    assert not len(places) and len(run.rows) == 2
