"""Inputs that come while the clock catches up: what people wrote is not lost behind what the cluster wrote itself.

Stored documents are small, and JSON of any value.
"""

import json
import lzma
from typing import Any

import pytest
from django.utils.safestring import SafeString

from playground.engine.batch import PUT_TOGETHER, Engine, read
from playground.engine.compressed import compress, decompress, from_json, to_json
from playground.engine.entries import Entry
from scheduler_core.objects.defaults import prepare
from scheduler_core.sim.changes import ObjectWritten
from tests.tables import table

SECOND = 10**9


def pod() -> dict[str, Any]:
    return prepare(table(__file__, "pod"))


class Restless:
    """A simulation that writes a status, and takes it back, whenever its clock moves."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulation, name)

    def advance(self, by_ns: int, *, max_cycles: int) -> None:
        self._simulation.advance(by_ns, max_cycles=max_cycles)
        stored = self._simulation.world.get("Pod", "default", "p")
        if by_ns and stored is not None:
            nominated = {**stored.manifest, "status": {"nominatedNodeName": "n1"}}
            self._simulation.world.put(nominated, "nominated")
            self._simulation.world.put(dict(stored.manifest), "no longer nominated")


def labels_after(*at_s: int) -> tuple[list[str | None], dict[str, str]]:
    """Reasons of what the simulation wrote while people labelled a pod at these times, and its row's labels then."""
    simulation: Any = Restless(Engine.new(config=None, seed=1, start_ns=0).simulation)
    read(simulation, [Entry(1, "api", "write", 0, {"manifest": pod()})])
    simulation.run_until_idle(max_cycles=1)  # it is told that no node is there; that stays so
    simulation.drain_outcomes()
    row = dict(simulation.world.get("Pod", "default", "p").manifest)
    entries = []
    for number, second in enumerate(at_s):
        row = {
            **row,
            "metadata": {**row["metadata"], "labels": {"a": str(number)}, "resourceVersion": str(number)},
        }
        entries.append(Entry(2 + number, "api", "write", second * SECOND, {"manifest": row}))
    read(simulation, entries)
    written = [item for item in simulation.drain_outcomes() if isinstance(item, ObjectWritten)]
    kept = written[-1].manifest if written else entries[-1].payload["manifest"]
    return [item.reason for item in written], kept["metadata"]["labels"]


def test_a_label_outlives_what_the_cluster_wrote_and_took_back_before_it() -> None:
    reasons, labels = labels_after(5, 5)
    assert reasons == ["nominated", "no longer nominated", PUT_TOGETHER, PUT_TOGETHER]
    assert labels == {"a": "1"}


def test_what_the_cluster_left_alone_is_not_written_again() -> None:
    assert labels_after(0, 0) == ([], {"a": "1"})


def test_documents_are_stored_small() -> None:
    text = b'{"name":"p%d"}' * 5000
    stored = compress(text)
    assert stored.startswith(b"\x28\xb5\x2f\xfd")  # Zstandard
    assert len(stored) <= len(lzma.compress(text, preset=1))
    assert decompress(stored) == text


@pytest.mark.parametrize("value", ["\ud800", {"k": ["\udfff"]}, 2**70, 1e300, {"k": SafeString("x")}])
def test_what_the_fast_encoder_does_not_take_is_json_all_the_same(value: Any) -> None:
    assert from_json(to_json(value)) == value == json.loads(to_json(value))
