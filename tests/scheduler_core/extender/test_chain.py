"""What extenders are asked, in which order, and what their answers do, where the recorded attempts leave it open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core.errors import ConfigurationError
from scheduler_core.extender.chain import (
    ExtenderFilterResult,
    bind_request,
    extender_chain,
    parse_bind_answer,
)
from scheduler_core.extender.transport import ExtenderAnswer, no_transport
from scheduler_core.framework.status import Code
from scheduler_core.plugins import load_configuration
from tests.scheduler_core.extender.builders import (
    URL,
    Answers,
    configuration,
    extender,
    make_chain,
    make_cluster,
    make_node,
    make_pod,
    node_manifest,
    pod_manifest,
    policy,
)
from tests.tables import table

NODES = [make_node(name) for name in ("n1", "n2", "n3")]


def filtered(answer: Any, **fields: Any) -> ExtenderFilterResult:
    """What one extender's filter answer leaves of three nodes."""
    answers = Answers({f"{URL}/f": answer})
    return make_chain(answers, extender(filterVerb="f", **fields)).filter_nodes(make_pod(), NODES)


def names(result: ExtenderFilterResult) -> list[str]:
    return [candidate.node.name for candidate in result.candidates]


# ---- filter


def test_managed_fields_and_the_kind_stay_at_home() -> None:
    node = make_node("n1", managedFields=[{"manager": "kubectl"}])
    answers = Answers({f"{URL}/f": {}})
    chain = make_chain(answers, extender(filterVerb="f", nodeCacheCapable=False))
    chain.filter_nodes(make_pod(), [node])
    (sent,) = answers.requests[0].body["Nodes"]["items"]
    assert sent["metadata"] == {"name": "n1", "uid": "n1"}
    assert not {"kind", "apiVersion"} & sent.keys()


def test_a_node_in_neither_the_result_nor_a_failed_map_vanishes() -> None:
    result = filtered({"NodeNames": ["n1"], "FailedNodes": {"n2": "busy"}})
    assert names(result) == ["n1"]
    assert result.failed == {"n2": (Code.Unschedulable, "busy")}


def test_failed_and_unresolvable_wins_over_failed() -> None:
    result = filtered({"FailedNodes": {"n1": "a"}, "FailedAndUnresolvableNodes": {"n1": "b"}})
    assert result.failed == {"n1": (Code.UnschedulableAndUnresolvable, "b")}


def test_a_name_said_twice_counts_twice() -> None:
    assert names(filtered({"NodeNames": ["n2", "n2"]})) == ["n2", "n2"]


def test_a_transport_error_is_the_error() -> None:
    assert filtered(ExtenderAnswer(error="connection refused")).error == "connection refused"


def test_an_ignorable_extender_that_fails_leaves_everything_as_it_was() -> None:
    for answer in (
        ExtenderAnswer(500),
        "{nope",
        {"Error": "x"},
        {"NodeNames": ["zz"]},
        ExtenderAnswer(error="x"),
    ):
        result = filtered(answer, ignorable=True)
        assert result.error is None
        assert names(result) == ["n1", "n2", "n3"]
        assert result.calls[0].error is not None
        assert result.calls[0].ignored


def test_a_failed_call_says_so_in_the_trace() -> None:
    answer = ExtenderAnswer(500, "boom", duration_ns=1_500_000)
    told = filtered(answer).calls[0].explain()
    assert (told["url"], told["verb"], told["answer"], told["status"]) == (f"{URL}/f", "filter", "boom", 500)
    assert told["durationMs"] == 1.5
    assert told["error"] == f"failed f with extender at URL {URL}/f, code 500"


def test_ignorable_extenders_are_asked_after_all_others_and_see_what_is_left() -> None:
    answers = Answers({"http://x/f": {"NodeNames": ["n3"]}, "http://y/f": {"NodeNames": ["n2", "n3"]}})
    chain = make_chain(
        answers,
        extender("http://x/", filterVerb="f", ignorable=True),
        extender("http://y", filterVerb="f"),
    )
    result = chain.filter_nodes(make_pod(), NODES)
    assert answers.urls == ["http://y/f", "http://x/f"]
    assert [request.body["NodeNames"] for request in answers.requests] == [["n1", "n2", "n3"], ["n2", "n3"]]
    assert [request.extender_index for request in answers.requests] == [1, 0]
    assert names(result) == ["n3"]


def test_no_extender_is_asked_about_no_nodes() -> None:
    answers = Answers({"http://x/f": {}})
    chain = make_chain(answers, extender("http://x", filterVerb="f"), extender("http://y", filterVerb="f"))
    assert names(chain.filter_nodes(make_pod(), NODES)) == []
    assert answers.urls == ["http://x/f"]


def test_an_extender_is_sent_on_what_another_answered_with_kind_and_all() -> None:
    answered = {**node_manifest("zz"), "nonsense": 1}
    answers = Answers({"http://x/f": {"nodes": {"Items": [answered]}}, "http://y/f": {}})
    fields = {"filterVerb": "f", "nodeCacheCapable": False}
    chain = make_chain(answers, extender("http://x", **fields), extender("http://y", **fields))
    chain.filter_nodes(make_pod(), NODES)
    (sent,) = answers.requests[1].body["Nodes"]["items"]
    assert sent["kind"] == "Node"
    assert sent["metadata"] == {"name": "zz"}
    assert "nonsense" not in sent


# ---- who is interested


@pytest.mark.parametrize(
    ("spec", "interested"),
    table(__file__, "an_extender_of_managed_resources_cares_for_pods_whose_containers_name_one"),
)
def test_an_extender_of_managed_resources_cares_for_pods_whose_containers_name_one(
    spec: dict[str, Any], interested: bool
) -> None:
    answers = Answers({f"{URL}/f": {"NodeNames": []}})
    chain = make_chain(answers, extender(filterVerb="f", managedResources=[{"name": "x.io/gpu"}]))
    chain.filter_nodes(make_pod(**spec), NODES)
    assert bool(answers.requests) is interested


def test_timeouts_and_tls_go_with_the_request() -> None:
    loaded = load_configuration(
        configuration(
            extender("http://x", filterVerb="f"),
            extender("https://y", filterVerb="f", enableHTTPS=True, httpTimeout="250ms"),
        )
    )
    answers = Answers({"http://x/f": {"NodeNames": ["n1"]}, "https://y/f": {"NodeNames": ["n1"]}})
    extender_chain(loaded, answers).filter_nodes(make_pod(), NODES)
    first, second = answers.requests
    assert (first.timeout_ns, first.tls) == (5_000_000_000, None)
    assert second.timeout_ns == 250_000_000
    # Without a certificate authority upstream does not verify.
    assert second.tls is not None
    assert second.tls.insecure


# ---- prioritize


def test_scores_are_multiplied_by_weight_and_ten_and_not_clamped() -> None:
    answer = [{"Host": "n1", "Score": 100}, {"host": "n2", "score": -50}, {"Host": "zz", "Score": 3}]
    answers = Answers({f"{URL}/p": answer})
    chain = make_chain(answers, extender(prioritizeVerb="p", weight=2))
    scores = chain.prioritize(make_pod(), chain.filter_nodes(make_pod(), NODES).candidates)
    assert scores.total == {"n1": 2000, "n2": -1000, "zz": 60}
    assert scores.by_extender == [(URL, {"n1": 2000, "n2": -1000, "zz": 60})]


def test_prioritize_calls_go_out_together_and_errors_cost_only_their_own_scores() -> None:
    answers = Answers({"http://x/p": ExtenderAnswer(500), "http://y/p": [{"Host": "n1", "Score": 4}]})
    chain = make_chain(
        answers, extender("http://x", prioritizeVerb="p"), extender("http://y", prioritizeVerb="p", weight=3)
    )
    scores = chain.prioritize(make_pod(), chain.filter_nodes(make_pod(), NODES).candidates)
    assert [[request.url for request in batch] for batch in answers.batches] == [["http://x/p", "http://y/p"]]
    assert scores.total == {"n1": 120}
    assert [call.ignored for call in scores.calls] == [True, False]


def test_a_host_named_twice_is_scored_twice_and_sums_wrap_around() -> None:
    big = 2**63 - 1
    answer = [{"Host": "n1", "Score": 1}, {"Host": "n1", "Score": 2}, {"Host": "n2", "Score": big}]
    chain = make_chain(Answers({f"{URL}/p": answer}), extender(prioritizeVerb="p"))
    scores = chain.prioritize(make_pod(), chain.filter_nodes(make_pod(), NODES).candidates)
    assert scores.total == {"n1": 30, "n2": -10}


# ---- preempt

VICTIMS_OBJECTS = [
    *(node_manifest(name) for name in ("n1", "n2")),
    pod_manifest("a", node="n1", priority=1),
    pod_manifest("b", node="n1", priority=2),
    pod_manifest("d", node="n2", priority=5),
]


def preempted(answer: Any, **fields: Any) -> tuple[Any, Answers]:
    answers = Answers({f"{URL}/pre": answer})
    cluster = make_cluster(answers, VICTIMS_OBJECTS, extender(preemptVerb="pre", **fields))
    snapshot = cluster.cache.snapshot()
    pods = {pod.key: pod for pod in (snapshot.pods[pod_id] for pod_id in snapshot.pods.id_of.values())}
    candidates = {"n1": ((pods["default/b"], pods["default/a"]), 1), "n2": ((pods["default/d"],), 0)}
    return cluster.extenders.preempt(make_pod(priority=10), candidates, snapshot), answers


def test_victims_of_null_are_an_error_and_not_a_crash() -> None:
    for answer in (
        {"NodeNameToMetaVictims": {"n1": None}},
        {"NodeNameToMetaVictims": {"n1": {"Pods": [None]}}},
    ):
        result, _ = preempted(answer)
        assert "null is not a list of victims" in result.error


# ---- bind


def test_a_binding_can_be_asked_now_and_answered_later() -> None:
    chain = make_chain(Answers({}), extender(bindVerb="b"))
    (binder,) = chain.binders(make_pod())
    assert bind_request(binder, make_pod(), "n1").url == f"{URL}/b"
    assert parse_bind_answer(binder, ExtenderAnswer(200, "{}")) is None
    assert parse_bind_answer(binder, ExtenderAnswer(200, "")) is not None


# ---- the two wire forms


@pytest.mark.parametrize(
    ("written", "filter_keys", "preempt_keys", "victims"),
    [
        (None, {"Pod", "Nodes", "NodeNames"}, {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}, "UID"),
        ("1.6", {"Pod", "Nodes", "NodeNames"}, {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}, "UID"),
        ("v1.5.7", {"pod", "nodenames"}, {"pod", "nodeNameToMetaVictims"}, "uid"),
    ],
)
def test_extenders_of_a_policy_are_sent_what_the_scheduler_of_its_release_sent(
    written: str | None, filter_keys: set[str], preempt_keys: set[str], victims: str
) -> None:
    verbs = {"filterVerb": "f", "prioritizeVerb": "p", "bindVerb": "b", "preemptVerb": "pre"}
    document = policy(extender("http://x", **verbs))
    if written is not None:
        document["kubernetesVersion"] = written
    answers = Answers(
        {
            "http://x/f": {"nodenames": ["n1", "n2"], "failedNodes": {"n3": "busy"}},
            "http://x/p": [{"host": "n1", "score": 2}],
            "http://x/b": {"error": "no"},
            "http://x/pre": {"nodeNameToMetaVictims": {}},
        }
    )
    chain = extender_chain(load_configuration(document), answers)
    pod = make_pod()
    result = chain.filter_nodes(pod, NODES)
    assert names(result) == ["n1", "n2"]
    assert chain.prioritize(pod, result.candidates).total == {"n1": 20}
    assert chain.bind(pod, "n1").error == "no"
    cluster = make_cluster(Answers({}), VICTIMS_OBJECTS)
    chain.preempt(pod, {"n2": ((make_pod("d"),), 1)}, cluster.cache.snapshot())
    bodies = {request.verb: request.body for request in answers.requests}
    assert bodies["filter"].keys() == bodies["prioritize"].keys() == filter_keys
    assert bodies["bind"] == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": "default/p",
        "Node": "n1",
    }
    assert bodies["preempt"].keys() == preempt_keys
    assert f'"{victims}": "default/d"' in json.dumps(bodies["preempt"])


@pytest.mark.parametrize("written", ["1.23", "1.1", "2.0", "1.5-alpha", "newest"])
def test_a_policy_is_of_a_release_that_read_it_and_called_extenders(written: str) -> None:
    with pytest.raises(ConfigurationError, match=r"kubernetesVersion.*1\.2 to 1\.22"):
        load_configuration(policy(extender("http://x", filterVerb="f")) | {"kubernetesVersion": written})


def test_the_version_early_examples_gave_an_extender_has_no_effect_and_is_named() -> None:
    document = policy(extender("http://x", filterVerb="f", apiVersion="v1beta1"))
    (dropped,) = load_configuration(document).untranslated
    assert (dropped.field, dropped.name) == ("extenders[0].apiVersion", "apiVersion")


def test_without_a_way_out_every_call_fails_with_words() -> None:
    chain = extender_chain(load_configuration(configuration(extender(filterVerb="f"))), no_transport)
    assert (
        chain.filter_nodes(make_pod(), NODES).error == f'Post "{URL}/f": there is no way out of this cluster'
    )
