"""What is kept of earlier preemptions is what trying every node afresh would give."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import decision_body
from scheduler_core.framework.preemption.reprieve import DryRun, KeptTries, Sampling, dry_run
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from tests.scheduler_core.afresh import afresh
from tests.scheduler_core.preemption.clusters import FullCluster
from tests.scheduler_core.stored import prepare

pytestmark = pytest.mark.usefixtures("every_threshold")


def change(full: FullCluster, random: Random) -> None:
    """Something happens that may change what preemption finds."""
    cluster = full.cluster
    cache, uids = cluster.cache, list(cluster.cache.pod_order())
    names = [name for name in cache.node_order() if cache.node(name) is not None]
    what = random.choice(("add", "remove", "update", "start", "nominate", "unnominate", "node", "budget"))
    pod = cache.pod(random.choice(uids)) if uids else None
    if what == "add":
        cache.add_pod(parse(prepare(full._running(random.choice(names)))).typed)
    elif what == "remove" and pod is not None:
        cache.remove_pod(pod.uid)
    elif what == "update" and pod is not None:
        cache.update_pod(replace(pod, requests={**pod.requests, "cpu": 700}))
    elif what == "start" and pod is not None:
        cache.update_pod(replace(pod, start_ns=random.randint(0, 10**9)))
    elif what == "nominate":
        name = random.choice(names)
        cluster.nominator.add(parse(prepare(full._nominated(name))).typed, name)
    elif what == "unnominate" and cluster.nominator.uids():
        cluster.nominator.remove(random.choice(cluster.nominator.uids()))
    elif what == "node":
        cache.set_node(parse(prepare(full._node(random.randint(0, 6)))).typed)
    elif what == "budget":
        budget = parse(prepare(full._budget(random.randint(0, 1)))).typed
        cache.listers.set("PodDisruptionBudget", budget.meta.namespace, budget.meta.name, budget)


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_kept_tries_and_verdicts_equal_fresh_ones_whatever_happens_between_cycles(seed: int) -> None:
    full = FullCluster(seed, pod_affinity=False)
    random = full.random
    pods: list[Pod] = [full.pod]
    pods += [full.cluster.pending_pod(full._incoming(False)) for _ in range(2)]
    for _ in range(6):
        pod = random.choice(pods)
        kept, new = full.cluster.schedule(pod), afresh(full.cluster).schedule(pod)
        assert decision_body(kept) == decision_body(new)
        assert (kept.post_filter is None) == (new.post_filter is None)
        if kept.post_filter is not None and new.post_filter is not None:
            assert kept.post_filter.trace.explain() == new.post_filter.trace.explain()
            if kept.post_filter.nominated_node_name and random.random() < 0.5:
                # It goes on as a scheduler would: the node has its nomination, the victims go.
                full.cluster.nominator.add(pod, kept.post_filter.nominated_node_name)
                for victim in kept.post_filter.victims:
                    full.cluster.cache.remove_pod(victim.uid)
        for _ in range(random.randint(0, 2)):
            change(full, random)


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
