"""What the descheduler evicts, and where the pods land: on another node, back where they were, nowhere."""

from typing import Any

import pytest

from scheduler_core import prepare
from scheduler_core.descheduler.policy import PolicyError, read_policy
from scheduler_core.errors import InvalidObject
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.answers import answer_question
from tests.manifests import make_object


def cluster(*objects: dict[str, Any]) -> Simulation:
    simulation = Simulation(seed=1)
    for manifest in objects:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.run_until_idle()
    return simulation


def node(name: str, **labels: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return make_object("v1", "Node", name, labels=labels, status=status)


def pod(name: str, on: str, cpu: str = "500m", owned: bool = True, **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "shop", **({"ownerReferences": [owner]} if owned else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def policy(
    plugin: str, point: str = "balance", evictor: dict[str, Any] | None = None, **arguments: Any
) -> Any:
    configs = [{"name": plugin, "args": arguments}, {"name": "DefaultEvictor", "args": evictor or {}}]
    plugins = {point: {"enabled": [plugin]}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "default", "pluginConfig": configs, "plugins": plugins}],
    }


def asked(simulation: Simulation, given: Any) -> dict[str, Any]:
    return answer_question(simulation, {"ask": "deschedule", "policy": given})


def test_duplicates_land_on_another_node() -> None:
    simulation = cluster(node("a"), node("b"), *(pod(f"web-{n}", "a") for n in range(4)))
    answer = asked(simulation, policy("RemoveDuplicates"))
    assert answer["verdict"] == "The descheduler evicts 2 pods: 2 land on other nodes."
    assert {(move["pod"], move["from"], move["node"]) for move in answer["moves"]} == {
        ("shop/web-2", "a", "b"),
        ("shop/web-3", "a", "b"),
    }
    assert answer["tone"] == "good"
    assert [step["delete"]["name"] for step in answer["steps"]] == ["web-2", "web-3"]


def test_a_pod_that_may_be_on_its_node_alone_comes_back() -> None:
    simulation = cluster(
        node("hot", disk="ssd"),
        node("cold"),
        *(pod(f"db-{n}", "hot", "900m", nodeSelector={"disk": "ssd"}) for n in range(4)),
    )
    answer = asked(
        simulation, policy("LowNodeUtilization", thresholds={"cpu": 20}, targetThresholds={"cpu": 50})
    )
    assert answer["verdict"] == "The descheduler evicts 2 pods: 2 come back to the node they left."
    assert answer["tone"] == "warning"


def test_what_is_protected_is_told_with_the_reason() -> None:
    simulation = cluster(node("a"), node("b"), *(pod(f"web-{n}", "a", owned=n != 0) for n in range(2)))
    answer = asked(simulation, policy("RemoveDuplicates"))
    assert answer["verdict"] == "The descheduler evicts no pod."
    told = {line["text"]: line["note"] for line in answer["lines"]}
    assert told["shop/web-0 is not evicted."] == "pod does not have any ownerRefs"


def test_a_pod_without_an_owner_that_its_annotation_evicts_is_lost() -> None:
    bare = pod("bare", "a", owned=False)
    bare["metadata"]["annotations"] = {"descheduler.alpha.kubernetes.io/evict": "true"}
    given = policy("PodLifeTime", "deschedule", states=["Running"])
    answer = asked(cluster(node("a"), node("b"), bare), given)
    assert answer["verdict"] == "The descheduler evicts 1 pod: 1 has no owner that recreates it."
    assert answer["tone"] == "bad"


def test_one_node_alone_is_not_descheduled() -> None:
    answer = asked(cluster(node("a")), policy("RemoveDuplicates"))
    assert answer["verdict"] == "The descheduler does nothing: it needs two ready nodes and has 1."


@pytest.mark.parametrize(
    ("arguments", "evicted"),
    [
        ({}, {"a", "b"}),
        ({"excludedTaints": ["gpu"]}, {"b"}),
        ({"excludedTaints": ["gpu=no"]}, {"a", "b"}),
        ({"includedTaints": ["gpu=yes"]}, {"a"}),
    ],
)
def test_taints_that_a_policy_names_count(arguments: dict[str, Any], evicted: set[str]) -> None:
    simulation = cluster(node("a"), node("b"), node("c"), *(pod(f"on-{name}", name) for name in "abc"))
    for name, key, value in (("a", "gpu", "yes"), ("b", "old", "")):
        tainted = {**node(name), "spec": {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]}}
        simulation.submit(WriteObject(prepare(tainted)))
    simulation.run_until_idle()
    answer = asked(simulation, policy("RemovePodsViolatingNodeTaints", "deschedule", **arguments))
    assert {move["from"] for move in answer["moves"]} == evicted


def test_a_policy_that_cannot_be_used_is_refused_in_the_descheduler_s_words() -> None:
    with pytest.raises(InvalidObject, match=r"policy.*no resource threshold is configured"):
        asked(cluster(node("a")), policy("HighNodeUtilization"))
    with pytest.raises(InvalidObject, match="policy"):
        answer_question(cluster(node("a")), {"ask": "deschedule"})


def test_a_policy_is_read_out_of_its_config_map() -> None:
    text = "kind: ConfigMap\ndata:\n  policy.yaml: |\n    kind: DeschedulerPolicy\n    profiles: []\n"
    assert read_policy(text) == {"kind": "DeschedulerPolicy", "profiles": []}
    with pytest.raises(PolicyError, match="one DeschedulerPolicy is needed, and there are 0"):
        read_policy("kind: Pod\n")
    with pytest.raises(PolicyError, match="line 1"):
        read_policy("kind: [")
