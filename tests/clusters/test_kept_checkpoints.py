"""Which checkpoints are kept for looking back."""

from __future__ import annotations

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest

from playground.clusters.drive.commit import LONGEST_STRETCH, _checkpoint_data, _keep_checkpoint
from playground.clusters.models import Checkpoint, Cluster
from tests.clusters.builders import make_cluster


def kept_of(cluster: Cluster, steps: list[int], n_bytes: int) -> list[int]:
    for step in steps:
        cluster.engine_seq += step
        result = SimpleNamespace(read_seq=cluster.engine_seq, clock_ns=0)
        _keep_checkpoint(cluster, result, b"x" * n_bytes, 1)  # type: ignore[arg-type]
    return list(
        Checkpoint.objects.filter(cluster=cluster).order_by("engine_seq").values_list("engine_seq", flat=True)
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("n_bytes", "stretch"), [(1_000, 1_000), (75_000, 3_000), (10_000_000, LONGEST_STRETCH)]
)
def test_no_more_lies_between_two_than_a_stretch(n_bytes: int, stretch: int) -> None:
    cluster = make_cluster()
    Checkpoint.objects.all().delete()
    randomness = random.Random(7)
    steps = [randomness.randrange(1, stretch) for _ in range(60)]
    kept = kept_of(cluster, steps, n_bytes)
    gaps = [later - earlier for earlier, later in pairwise(kept)]
    assert kept[0] == cluster.engine_seq - sum(steps[1:]) and kept[-1] == cluster.engine_seq
    assert max(gaps) <= stretch
    # Two at a time stand for more than a stretch: there are not many more than are needed.
    assert all(before + after > stretch for before, after in pairwise(gaps[:-1]))


@pytest.mark.django_db
def test_what_follows_an_import_at_once_is_kept() -> None:
    cluster = make_cluster()
    Checkpoint.objects.all().delete()
    first = cluster.engine_seq + 10
    assert kept_of(cluster, [10, 60_000, 900, 500], 1_000) == [
        first,
        first + 60_000,
        first + 60_900,
        first + 61_400,
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(("n_before", "is_made"), [(5_000, False), (8_000, False), (8_001, True)])
def test_one_that_is_slow_to_make_is_made_before_too_much_lies_behind_the_newest(
    n_before: int, is_made: bool
) -> None:
    cluster = make_cluster()
    kept_of(cluster, [10], 1_000)
    Checkpoint.objects.filter(cluster=cluster).update(took_ms=60_000)
    Cluster.objects.filter(pk=cluster.pk).update(entries_since_checkpoint=n_before)
    engine = SimpleNamespace(checkpoint=lambda: b"made")
    driven = SimpleNamespace(engine=engine, unsaved_s=1.0)
    result = SimpleNamespace(outcomes=[None] * 1_000, ran={"calls": [1]}, finished=False)
    data, _ = _checkpoint_data(SimpleNamespace(cluster_id=cluster.pk), driven, result)  # type: ignore[arg-type]
    assert (data is not None) == is_made
