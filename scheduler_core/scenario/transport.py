"""Where a scenario's extender answers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.scenario.cassette import CassetteTransport
from scheduler_core.scenario.mock_extender import MockTransport
from scheduler_core.scenario.types import Scenario
from scheduler_core.sim.simulation import Simulation


class ScenarioTransport:
    """Where a scenario's extender answers come from: the recording, where it holds the request; else rules."""

    def __init__(self, scenario: Scenario) -> None:
        extenders = scenario.extenders
        self.simulation: Simulation | None = None
        self.cassette = CassetteTransport(extenders.cassette if extenders else ())
        self._mock = MockTransport(extenders.mock if extenders else (), self._node_labels, self._pod_of_uid)

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        if not self._mock.knows(request.extender_index):
            return self.cassette.answer(request)
        # Rules count the calls they leave to the recording, too.
        by_rules = self._mock.answer(request)
        return self.cassette.answer(request) if self.cassette.holds(request) else by_rules

    def _node_labels(self, name: str) -> Mapping[str, str] | None:
        stored = None if self.simulation is None else self.simulation.world.get("Node", "", name)
        return None if stored is None else stored.typed.labels

    def _pod_of_uid(self, uid: str) -> Mapping[str, Any] | None:
        pod = None if self.simulation is None else self.simulation.scheduler.pods.get(uid)
        return None if pod is None else pod.manifest
