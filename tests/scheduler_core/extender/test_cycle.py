"""Extenders within a scheduling cycle, and the recorded attempts of the real scheduler."""

from typing import Any

import numpy as np

from scheduler_core.cli.conformance_cycles import decision_body
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from tests.scheduler_core.extender.builders import (
    URL,
    Answers,
    extender,
    make_cluster,
    node_manifest,
    pod_manifest,
)

THREE = [node_manifest(name) for name in ("n1", "n2", "n3")]
ALL = {"NodeNames": ["n1", "n2", "n3"]}


def test_a_failed_node_that_is_unknown_counts_in_the_message() -> None:
    answer = {"NodeNames": [], "FailedNodes": {"n1": "busy", "zz": "busy"}}
    cluster = make_cluster(Answers({f"{URL}/f": answer}), THREE, extender(filterVerb="f"))
    decision = cluster.schedule(cluster.pending_pod(pod_manifest("p")))
    assert decision.fit_error == "0/3 nodes are available: 2 busy."


def test_a_nominated_node_is_asked_about_alone_and_then_with_all() -> None:
    seen: list[list[str]] = []

    def answer(request: ExtenderRequest) -> dict[str, Any]:
        names = request.body["NodeNames"]
        seen.append(names)
        return {"NodeNames": [name for name in names if name != "n2"]}

    cluster = make_cluster(Answers({f"{URL}/f": answer}), THREE, extender(filterVerb="f"))
    pod = {**pod_manifest("p"), "status": {"nominatedNodeName": "n2"}}
    decision = cluster.schedule(cluster.pending_pod(pod))
    assert seen == [["n2"], ["n1", "n2", "n3"]]
    assert decision.n_feasible == 2
    assert len(decision.extender_calls) == 2


def test_an_error_about_the_nominated_node_is_passed_over() -> None:
    turns = iter([ExtenderAnswer(500), ALL])
    cluster = make_cluster(Answers({f"{URL}/f": lambda _: next(turns)}), THREE, extender(filterVerb="f"))
    pod = {**pod_manifest("p"), "status": {"nominatedNodeName": "n2"}}
    decision = cluster.schedule(cluster.pending_pod(pod))
    assert decision.error is None
    assert decision.n_feasible == 3


def test_node_objects_out_of_an_answer_leave_no_trace_in_the_cluster() -> None:
    zone = "topology.kubernetes.io/zone"
    objects = [
        *(node_manifest(f"n{index}", labels={zone: "ab"[index % 2]}) for index in range(64)),
        pod_manifest("e", node="n1"),
    ]
    answered = [node_manifest("n1", labels={zone: "a"}), node_manifest("zz", labels={zone: "c"})]
    answers = Answers({f"{URL}/f": {"Nodes": {"items": answered}}})
    cluster = make_cluster(answers, objects, extender(filterVerb="f", nodeCacheCapable=False))
    constraint = {
        "maxSkew": 1,
        "topologyKey": zone,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    pod = cluster.pending_pod(pod_manifest("p", topologySpreadConstraints=[constraint]))
    nodes = cluster.cache.nodes
    before = (dict(nodes.row_of), nodes.alive.sum(), nodes.allocatable.sum(axis=1).tolist())
    first, second = cluster.schedule(pod), cluster.schedule(pod)
    assert (dict(nodes.row_of), nodes.alive.sum(), nodes.allocatable.sum(axis=1).tolist()) == before
    assert decision_body(first)["total"].keys() == {"n1", "zz"}
    assert decision_body(first)["total"] == decision_body(second)["total"]
    assert first.ties == second.ties
    # Labels of guests are gone from the columns, too.
    assert set(np.unique(nodes.label_column(zone)[64:])) == {-1}
