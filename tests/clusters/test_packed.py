"""JSON as it is stored: small, and read only in its version."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.clusters import packed
from playground.clusters.packed import VERSION, pack, unpack

UID = "70745334-27c2-5081-a035-e93a4935e322"
BOUND = {
    "manifest": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p7", "namespace": "default", "uid": UID, "resourceVersion": "15"},
        "status": {"phase": "Pending"},
    },
    "reason": "bound",
}
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
