"""Compare what is asked of extenders, and what becomes of their answers, with the recorded attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.cli.conformance_scheduling import CaseCluster, decision_body, differences
from scheduler_core.cli.difference import Difference
from scheduler_core.extender.chain import ExtenderBinding
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderCall, ExtenderRequest
from scheduler_core.framework.status import Code, Status
from scheduler_core.schedule_one import Decision

SERVER = "http://extender.test"
CONTENT_TYPE = "application/json"
_MILLISECOND_NS = 1_000_000

_KEYS = ("filter", "feasible", "total", "best")


class ScriptedServer:
    """A transport that answers by a case's script.

    Parameters
    ----------
    script : mapping
        Path -> `{status, body | text, delayMs}`. Any other path is not found.
    """

    def __init__(self, script: Mapping[str, Mapping[str, Any]]) -> None:
        self.script = script

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        said = self.script.get(request.url.removeprefix(SERVER))
        if said is None:
            return ExtenderAnswer(404, "404 page not found\n")
        delay_ns = int(said.get("delayMs", 0)) * _MILLISECOND_NS
        if delay_ns >= request.timeout_ns:
            return ExtenderAnswer(
                error=f'Post "{request.url}": context deadline exceeded', duration_ns=request.timeout_ns
            )
        text = said["text"] if "text" in said else json.dumps(said.get("body"))
        return ExtenderAnswer(said["status"], text, duration_ns=delay_ns)


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `extender-wire`: a whole scheduling attempt, binding included.

    Returns
    -------
    list of Difference
        Empty when every key of `expect` agrees. Words of errors that the HTTP or JSON library finds may differ.
    """
    cluster = CaseCluster(case["objects"], case["config"], ScriptedServer(case["script"]))
    pod = cluster.pending_pod(case["pod"])
    decision = cluster.schedule(pod)
    binding = ExtenderBinding(False)
    calls = list(decision.extender_calls)
    status = Status()
    if decision.node_name is not None:
        binding = cluster.extenders.bind(pod, decision.node_name)
        calls += binding.calls
        if not binding.handled:
            status = cluster.framework_for(pod).run_bind(pod, decision.node_name)
        elif binding.error is not None:
            status = Status(Code.Error, (binding.error,))
    body = decision_body(decision)
    got = {key: body.get(key) for key in _KEYS}
    got["requests"] = recorded_requests(calls)
    got["error"] = decision.error
    got["outcome"] = _outcome(decision, binding, status)
    expect = _with_our_words(case["expect"], got, calls)
    return list(differences(expect, got))


def recorded_requests(calls: Sequence[ExtenderCall]) -> list[dict[str, Any]]:
    """Requests as recorded: lists of nodes by name, prioritize requests (sent together) by path."""
    requests = []
    together: list[dict[str, Any]] = []
    for call in calls:
        request = {
            "method": "POST",
            "path": call.request.url.removeprefix(SERVER),
            "contentType": CONTENT_TYPE,
            "body": _by_name(call.request.body),
        }
        if call.request.verb == "prioritize":
            together.append(request)
            continue
        requests += _by_path(together)
        together = []
        requests.append(request)
    return requests + _by_path(together)


def _by_path(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(requests, key=lambda request: str(request["path"]))


def _by_name(body: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(body)
    if result.get("NodeNames"):
        result["NodeNames"] = sorted(result["NodeNames"])
    if result.get("Nodes"):
        items = sorted(result["Nodes"]["items"], key=lambda node: str(node["metadata"].get("name", "")))
        result["Nodes"] = {**result["Nodes"], "items": items}
    return result


def _outcome(decision: Decision, binding: ExtenderBinding, status: Status) -> dict[str, Any]:
    outcome: dict[str, Any] = {"bound": None}
    if decision.node_name is not None and status.is_success:
        outcome["bound"] = decision.node_name
        outcome["boundBy"] = "extender" if binding.handled else "default"
    elif decision.node_name is not None:
        outcome["failure"] = {"code": status.code.name, "message": status.message, "nominatedNode": ""}
    elif decision.error is not None:
        outcome["failure"] = {"code": Code.Error.name, "message": decision.error, "nominatedNode": ""}
    else:
        result = decision.post_filter
        outcome["failure"] = {
            "code": Code.Unschedulable.name,
            "message": decision.message,
            "nominatedNode": None if result is None else result.nominated_node_name,
        }
        if result is not None and result.victims:
            outcome["preempted"] = sorted(victim.key for victim in result.victims)
    if len(decision.ties) > 1:
        outcome["ambiguous"] = True
    return outcome


def _with_our_words(
    expect: Mapping[str, Any], got: Mapping[str, Any], calls: Sequence[ExtenderCall]
) -> dict[str, Any]:
    """The expectations, with our words for what a library found where only those differ."""
    found = [call.error for call in calls if call.error is not None and _is_found_by_library(call)]
    result = dict(expect)
    result["error"] = _same_but_for(expect["error"], got["error"], found)
    failure = expect["outcome"].get("failure")
    ours = got["outcome"].get("failure")
    if failure is not None and ours is not None:
        message = _same_but_for(failure["message"], ours["message"], found)
        result["outcome"] = {**expect["outcome"], "failure": {**failure, "message": message}}
    return result


def _is_found_by_library(call: ExtenderCall) -> bool:
    return call.answer.error is not None or str(call.error).startswith("invalid answer from ")


def _same_but_for(expected: str | None, got: str | None, found: Sequence[str]) -> str | None:
    if expected is None or got is None:
        return expected
    for words in found:
        before, separator, after = got.partition(words)
        if (
            separator
            and len(expected) > len(before) + len(after)
            and expected.startswith(before)
            and expected.endswith(after)
        ):
            return got
    return expected
