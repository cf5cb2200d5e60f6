"""What extenders are asked, in which order, and what their answers do, where the recorded attempts leave it open."""

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


def test_no_extender_is_asked_about_no_nodes() -> None:
    answers = Answers({"http://x/f": {}})
    chain = make_chain(answers, extender("http://x", filterVerb="f"), extender("http://y", filterVerb="f"))
    assert names(chain.filter_nodes(make_pod(), NODES)) == []
    assert answers.urls == ["http://x/f"]


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
