"""JSON as it is stored: small, and what earlier versions wrote is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    "0123bb6684d581e64ab8ea404895626e606e626a6c6ca26b649e6ca46b6a6061a89b68606caa9b6a699c6862696c9a6a"
    "6c046a3ae3ac3c30923f2c4b62cb2f00"
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


def test_a_uid_takes_no_more_than_its_bytes_and_a_mark() -> None:
    other = json.loads(json.dumps(BOUND).replace(UID, "x"))
    assert len(pack(BOUND)) - len(pack(other)) <= 20
    assert pack(BOUND)[0] == VERSION == 2
    assert len(pack(BOUND)) < len(OF_VERSION_1) - 10


def test_what_earlier_versions_wrote_is_read() -> None:
    assert OF_VERSION_1[0] == 1
    assert unpack(OF_VERSION_1) == BOUND
    assert unpack(json.dumps(BOUND)) == BOUND
    assert unpack(json.dumps(BOUND).encode()) == BOUND


def test_a_later_version_is_named() -> None:
    with pytest.raises(ValueError, match="version 3 cannot be read"):
        unpack(b"\x03" + pack(BOUND)[1:])
