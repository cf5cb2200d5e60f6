"""Recorded extender answers: a scenario replays with the extender long gone."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.scenario.form import declare
from scheduler_core.scenario.mock_extender import HTTP_OK, MockExtender, MockTransport
from scheduler_core.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of an extender and what came back, in order; one that names its pod answers only for that."""

    extender: int = 0
    verb: str = ""
    pod: str = ""
    request: str = ""
    status: int = HTTP_OK
    answer: Any = None
    text: str = ""
    error: str = ""
    duration_ns: int = 0

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        if "answer" in document and document.get("text"):
            return "a body is either `answer` (JSON) or `text`"
        return None

    def replayed(self) -> ExtenderAnswer:
        text = self.text or ("" if self.answer is None else json.dumps(self.answer, separators=(",", ":")))
        return ExtenderAnswer(self.status, text, self.error or None, self.duration_ns)


def pod_of(request: ExtenderRequest) -> str:
    """The pod a request is about, `namespace/name`."""
    fields = {key.lower(): value for key, value in request.body.items()}
    if request.verb == "bind":
        return f"{fields.get('podnamespace') or 'default'}/{fields.get('podname')}"
    meta = fields["pod"]["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta.get('name')}"


def subject_digest(body: Mapping[str, Any]) -> str:
    """Names what a request asks: which pod, with its labels, about which nodes; wherever the objects are stored."""
    fields = {key.lower(): value for key, value in body.items()}
    pod = (fields.get("pod") or {}).get("metadata") or {}
    nodes = (
        ((fields.get("nodes") or {}).get("items") or ()) if isinstance(fields.get("nodes"), Mapping) else ()
    )
    asked = {
        "pod": [pod.get("namespace") or "default", pod.get("name"), pod.get("labels") or {}],
        "bind": [fields.get(key) for key in ("podnamespace", "podname", "node")],
        "nodes": [[node["metadata"]["name"], node["metadata"].get("labels") or {}] for node in nodes],
        "names": list(fields.get("nodenames") or ()),
        "victims": [sorted(fields.get(key) or ()) for key in ("nodenametovictims", "nodenametometavictims")],
    }
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class CassetteTransport:
    """Answers out of a recording; what was never asked gets no answer, and is noted.

    Attributes
    ----------
    missing : list of str
        Calls the recording has no answer for.
    changed : list of str
        Calls whose request is not the recorded one: the run has left the recording's path.
    """

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self._left: dict[tuple[int, str, str], deque[RecordedCall]] = {}
        for call in calls:
            self._left.setdefault((call.extender, call.verb, call.pod), deque()).append(call)
        self.missing: list[str] = []
        self.changed: list[str] = []

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        return [self.answer(request) for request in requests]

    def holds(self, request: ExtenderRequest) -> bool:
        """Whether the recording's next answer to such a call is one to this very request, as far as it is known."""
        left = self._next_of(request)
        return bool(left) and left[0].request in ("", subject_digest(request.body))

    def _next_of(self, request: ExtenderRequest) -> deque[RecordedCall]:
        keys = ((request.extender_index, request.verb, name) for name in (pod_of(request), ""))
        return next((found for key in keys if (found := self._left.get(key))), deque())

    def answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        pod = pod_of(request)
        left = self._next_of(request)
        what = f"{request.verb} of {pod} by extender {request.extender_index}"
        if not left:
            self.missing.append(what)
            return ExtenderAnswer(error=f'Post "{request.url}": the recording holds no answer to {what}')
        call = left.popleft()
        if call.request not in ("", subject_digest(request.body)):
            self.changed.append(what)
        return call.replayed()


declare(RecordedCall)


class ScenarioTransport:
    """Where a scenario's extender answers come from: the recording, where it holds the request; else rules."""

    def __init__(self, calls: Sequence[RecordedCall], rules: Sequence[MockExtender]) -> None:
        self.simulation: Simulation | None = None
        self.cassette = CassetteTransport(calls)
        self._mock = MockTransport(rules, self._node_labels, self._pod_of_uid)

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
