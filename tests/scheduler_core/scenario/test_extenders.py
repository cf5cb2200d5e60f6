"""Extenders of rules, and recorded ones."""

import json
from typing import Any

import pytest

from scheduler_core.config.wire import Problems
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.scenario import MockExtender, MockTransport
from scheduler_core.scenario.cassette import CassetteTransport, RecordedCall, pod_of, subject_digest
from scheduler_core.scenario.form import part_of
from tests.tables import table

LABELS = {"a": {"rack": "1"}, "b": {"rack": "2"}}


def extender(*rules: dict[str, Any]) -> MockExtender:
    problems = Problems()
    checked = part_of(MockExtender).check({"extender": 0, "rules": list(rules)}, "", problems)
    assert not problems.types and not problems.unknown
    built: MockExtender = part_of(MockExtender).build(checked)
    return built


def asked(verb: str, names: list[str] | None = None, pod: str = "p", **body: Any) -> ExtenderRequest:
    content = {
        "Pod": {"metadata": {"namespace": "default", "name": pod, "labels": {"app": pod}}},
        "NodeNames": names,
        **body,
    }
    return ExtenderRequest("http://x/e", content, 5 * 10**9, None, verb, 0)


def answered(
    mock: MockExtender, verb: str, names: list[str] | None = None, call: int = 0, **body: Any
) -> Any:
    return json.loads(mock.reply(verb, asked(verb, names, **body).body, call, node_labels=LABELS.get).text)


def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    nodes = [{"metadata": {"name": "a", "labels": {"rack": "1"}}}, {"metadata": {"name": "b"}}]
    answer = answered(extender({"deny": {"labels": {"rack": "1"}}}), "filter", Nodes={"items": nodes})
    assert answer["Nodes"] == {"items": [nodes[1]]} and answer["NodeNames"] is None


def test_drop_takes_candidates_back_and_spares_victims() -> None:
    mock = extender({"drop": {"nodes": ["a"]}}, {"drop": {"victims": {"labels": {"app": "db"}}}})
    db = {"metadata": {"uid": "1", "name": "db", "labels": {"app": "db"}}}
    web = {"metadata": {"uid": "2", "name": "web", "labels": {"app": "web"}}}
    victims = {"a": {"Pods": [db], "NumPDBViolations": 0}, "b": {"Pods": [db, web], "NumPDBViolations": 1}}
    answer = answered(mock, "preempt", NodeNameToVictims=victims)
    assert answer == {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "2"}], "NumPDBViolations": 1}}}


@pytest.mark.parametrize(("rule", "status", "text", "error"), table(__file__, "every_way_to_fail"))
def test_every_way_to_fail(rule: dict[str, Any], status: int, text: str, error: str | None) -> None:
    (answer,) = MockTransport([extender(rule)])([asked("filter", ["a"])])
    assert (answer.status, answer.text) == (status, text)
    assert (answer.error or "").startswith(error or "") and (answer.error is None) == (error is None)


def test_an_extender_that_is_not_there_refuses_the_connection() -> None:
    (answer,) = MockTransport([])([asked("filter", ["a"])])
    assert "connection refused" in (answer.error or "")


# ---- recordings


def record(request: ExtenderRequest, answer: ExtenderAnswer) -> RecordedCall:
    digest, body = subject_digest(request.body), json.loads(answer.text)
    return RecordedCall(request.extender_index, request.verb, pod_of(request), digest, answer.status, body)


def test_leaving_the_recording_is_noted_and_answered_by_an_error() -> None:
    request = asked("filter", ["a"])
    replay = CassetteTransport([record(request, MockTransport([extender({"deny": {}})])([request])[0])])
    replay([asked("filter", ["a", "b"])])
    assert replay.changed == ["filter of default/p by extender 0"]
    (answer,) = replay([request])
    assert "holds no answer" in (answer.error or "") and replay.missing == [
        "filter of default/p by extender 0"
    ]
