"""Which checkpoints are kept for looking back.

JSON as it is stored: small, and read only in its version.
"""

import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.clusters import packed
from playground.clusters.drive.commit import LONGEST_STRETCH, _checkpoint_data, _keep_checkpoint
from playground.clusters.models import Checkpoint, Cluster
from playground.clusters.packed import VERSION, pack, unpack
from tests.clusters.builders import make_cluster
from tests.tables import table


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
    steps = [randomness.randrange(1, stretch) for _ in range(30)]
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


UID = "70745334-27c2-5081-a035-e93a4935e322"
BOUND = table(__file__, "BOUND")
OF_VERSION_1 = bytes.fromhex(
    "0120ce950100638205a9baae37b1dae4b0f728cc3f8dca9022ef36a383480207fc8b1c1adcb92f648d85acaf5b8ed651"
    "ac55cd5ec3f51e04"
)

WORDS = st.sampled_from(
    ["", "a", '"', "\\", "ÿ", "\xff", "\n", UID[:-1], UID.upper(), f'"{UID}"', f"{UID}{UID}"]
)
TEXTS = st.one_of(
    st.uuids().map(str),
    st.lists(st.one_of(WORDS, st.uuids().map(str)), max_size=4).map("".join),
    st.text(max_size=20),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_packed_comes_back(value: Any) -> None:
    assert unpack(pack(value)) == value


def test_what_a_log_says_of_a_pod_takes_little_room() -> None:
    assert pack(BOUND)[0] == VERSION == 1
    # Its uid is most of it: 36 digits, of which each is worth half a byte.
    assert len(pack(BOUND)) < len(json.dumps(BOUND)) / 3


def test_a_later_version_is_named() -> None:
    with pytest.raises(ValueError, match="version 4 cannot be read"):
        unpack(b"\x04" + pack(BOUND)[1:])


def test_the_dictionary_is_the_one_that_was_written_with() -> None:
    """Whatever is stored cannot be read with another one."""
    dictionary = Path(packed.__file__).with_name("packed.dictionary").read_bytes()
    assert hashlib.sha256(dictionary).hexdigest() == (
        "079122c9e346caf1b25bf2b5c3a8157e105896df530d971450c47a901988e7b2"
    )
    assert unpack(OF_VERSION_1) == BOUND


def test_threads_pack_and_read_at_once() -> None:
    values = [{**BOUND, "reason": str(number) * 50} for number in range(400)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda value: unpack(pack(value)), values)) == values
