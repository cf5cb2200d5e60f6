"""Inputs of public reports whose plan was wrong or weak; each test is named by its input."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.answers import answer_question
from scheduler_core.whatif.fix import fix
from scheduler_core.whatif.workloads import pending_pods
from tests.manifests import deployment, make_object
from tests.scheduler_core.whatif.clusters import cluster_of, node, pod
from tests.tables import table

DATA = Path(__file__).parent / "data"


def _documents(name: str) -> list[dict[str, Any]]:
    return [loaded.value for loaded in load_documents((DATA / name).read_bytes())]


def _cluster(name: str) -> Simulation:
    """The cluster of a dump, run to idle."""
    body = scenario_of_dump(_documents(name))
    return run_scenario(load_scenario(body), full_traces=False).simulation


# ---- budget-spread-drain: a removed node is no domain of a spread any more (kubernetes/autoscaler 9111)


def test_budget_spread_drain() -> None:
    simulation = _cluster("budget-spread-drain.yaml")
    answer = answer_question(simulation, {"ask": "consolidate"})
    gone = [step["drain"] for step in answer["steps"] if "drain" in step]
    assert len(gone) == answer["saved"] == 5 and answer["gap"] < 0.001
    assert answer["verdict"].startswith("1 of 6 nodes is enough: 5 fewer")
    # Each is deleted before the next is drained.
    deleted = [step["delete"]["name"] for step in answer["steps"][1::2]]
    assert deleted == gone
    any_node = answer_question(simulation, {"ask": "any-node"})
    assert any_node["verdict"].startswith("Any one of the 6 nodes can be lost")


def test_budget_spread_drain_says_until_when_the_pod_waits() -> None:
    simulation = _cluster("budget-spread-drain.yaml")
    answer = answer_question(simulation, {"ask": "drain", "nodes": ["s0"]})
    assert answer["verdict"] == "Its one pod, default/w-0, finds no other node until the node is deleted."
    [move] = answer["moves"]
    assert (move["outcome"], move["node"]) == ("pending", None)
    assert move["onceDeleted"] in {f"s{number}" for number in range(1, 6)}
    assert move["to"] == f"{move['onceDeleted']} once deleted"
    assert answer["tone"] == "warning"
    assert answer_question(simulation, {"ask": "lose", "nodes": ["s0"]})["tone"] == "good"


def test_budget_spread_drain_a_budget_that_only_the_deletion_ends_is_said() -> None:
    """With two pods on each of three nodes the first eviction waits for the node's end, and holds the budget."""
    answer = answer_question(_cluster("budget-spread-drain.yaml"), {"ask": "consolidate"})
    held = [line for line in answer["lines"] if "when the node is deleted" in line["text"]]
    assert [line["node"] for line in held] == ["s3", "s4"]
    assert {line["tone"] for line in held} == {"warning"}
    assert "allows no disruption now" in held[0]["note"]
    assert "no budget broken" not in answer["verdict"]


def test_budget_spread_drain_scenario() -> None:
    run = run_scenario(load_scenario(_documents("budget-spread-drain.scenario.yaml")[0]))
    assert [finding.holds for finding in run.findings] == [True, True]


@pytest.mark.parametrize("ask", ["drain", "lose"])
def test_pods_of_the_node_and_pods_evicted_elsewhere_are_counted_apart(ask: str) -> None:
    objects = [
        node("a", cpu="8"), node("b", cpu="4"),
        *(pod(f"low-{index}", on="b", owner="ReplicaSet/low") for index in range(4)),
        *(pod(f"web-{index}", on="a", owner="ReplicaSet/web", priority=10) for index in range(5)),
        pod("agent", on="a", owner="DaemonSet/agent", cpu="100m"),
    ]  # fmt: skip
    answer = answer_question(cluster_of(objects), {"ask": ask, "nodes": ["a"]})
    assert answer["verdict"] == (
        "4 of its 5 pods find another node, 1 finds none;"
        " 4 pods elsewhere are evicted for them, 4 of which find no other node."
    )
    figures = {figure["words"]: figure["value"] for figure in answer["figures"]}
    own = ("land elsewhere", "find no node", "go with their node")
    assert figures["pods on it"] == 6 == sum(figures[words] for words in own)
    assert figures["evicted elsewhere"] == figures["evicted elsewhere, without a node"] == 4


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "rack"])
@pytest.mark.parametrize("rule", ["spread", "minimum"])
def test_a_removed_node_is_no_domain_of_its_kind(key: str, rule: str) -> None:
    """Others of the kind: another topology key, and a pod that only fewer domains would place."""
    documents = _documents("budget-spread-drain.yaml")
    for item in documents:
        if item["kind"] == "Node":
            item["metadata"]["labels"]["rack"] = item["metadata"]["name"]
        specs = [item["spec"], item["spec"].get("template", {}).get("spec", {})] if "spec" in item else []
        for spec in specs:
            for constraint in spec.get("topologySpreadConstraints", ()):
                constraint["topologyKey"] = key
                if rule == "minimum":
                    constraint["minDomains"] = 6
    run = run_scenario(load_scenario(scenario_of_dump(documents)), full_traces=False)
    answer = answer_question(run.simulation, {"ask": "consolidate"})
    # With fewer domains than minDomains the minimum is 0: a second pod of one domain would be one too many.
    assert len(answer["steps"]) // 2 == (5 if rule == "spread" else 0)


# ---- all that is pending


def test_what_was_not_looked_for_is_said_with_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [node("a", cpu="4")]
    for app in range(4):
        objects += [
            pod(f"w{app}-{n}", cpu="5", owner=f"ReplicaSet/w{app}", labels={"app": str(app)}) for n in "ab"
        ]
    monkeypatch.setattr("scheduler_core.whatif.fix.MOST_DECISIONS", 1)
    answer = fix(cluster_of(objects), {})
    assert answer.limit == "6 pods were not looked at: the limit of 1 decisions was reached."
    assert (len(answer.workloads), answer.untried) == (1, 3)


# ---- one pod: the cause, and the fix that its owner would thank for


def _asked(documents: list[dict[str, Any]] | str, key: str = "") -> dict[str, Any]:
    """What it takes to place the pod that waits, or the one whose key begins so."""
    documents = _documents(documents) if isinstance(documents, str) else documents
    simulation = run_scenario(load_scenario(scenario_of_dump(documents)), full_traces=False).simulation
    [waiting] = [pod for pod in pending_pods(simulation)[0] if pod.key.startswith(key)]
    return fix(simulation, {"pod": waiting.key}).document()


def test_spread_cordoned() -> None:
    found = _asked("spread-cordoned.yaml")
    assert (
        found["fixes"][0]["title"] == "Set nodeTaintsPolicy: Honor in the spread over kubernetes.io/hostname"
    )
    last = [fix for fix in found["fixes"] if fix["kind"] == "changes"][-1]
    assert last["what"] == "tolerate" and not last["headline"]
    assert found["causes"] == [
        "The empty domain of the spread over kubernetes.io/hostname, old, is a node that is cordoned: no pod can go"
        " there, so every other domain may hold 1 at most."
    ]
    assert found["workload"] == "ReplicaSet default/web" and found["headline"] == found["causes"][0]


@pytest.mark.parametrize(
    ("key", "value", "words"), table(__file__, "an_empty_domain_of_other_nodes_that_no_pod_can_enter")
)
def test_an_empty_domain_of_other_nodes_that_no_pod_can_enter(key: str, value: str, words: str) -> None:
    documents = _documents("spread-cordoned.yaml")
    taint = {"key": key, "effect": "NoSchedule"} | ({"value": value} if value else {})
    documents[2]["spec"] = {"taints": [taint]}
    if "kubernetes.io/not-ready" in key or "unreachable" in key:
        status = "Unknown" if "unreachable" in key else "False"
        documents[2]["status"]["conditions"] = [{"type": "Ready", "status": status}]
    found = _asked(documents)
    assert found["fixes"][0]["what"] == "honor-policy"
    assert f"old, is a node that is {words}: no pod can go there" in found["causes"][0]
    assert not [fix["title"] for fix in found["fixes"] if fix["what"] == "tolerate" and fix["headline"]]


def test_tolerating_a_taint_of_broken_nodes_is_never_the_first_edit() -> None:
    """A new node comes before, also where all that there is belongs to the control plane."""
    control = node("cp", **{"node-role.kubernetes.io/control-plane": ""})
    control["spec"] = {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}
    found = _asked([control, pod("web", cpu="1")])
    assert [edit["title"] for edit in found["fixes"]] == [
        "Add a node like cp",
        "Tolerate the taint node-role.kubernetes.io/control-plane:NoSchedule",
    ]
    assert "taints" not in found["best"]["change"]["write"][0]["spec"]


def test_daemonset_full_node() -> None:
    found = _asked("daemonset-full-node.yaml")
    assert found["fixes"][0]["title"] == "Raise to the priority class system-node-critical"
    assert {edit["what"] for edit in found["fixes"]} == {"raise-priority", "delete-pod"}
    assert {node for edit in found["fixes"] for node in edit["lands"].values()} == {"w1"}
    assert found["causes"] == [
        f"{found['name']} is for node w1 alone: DaemonSet agent makes one pod for each node."
        " w1 is refused by NodeResourcesFit: no room for a pod."
    ]


def test_a_daemonset_outside_the_system_gets_a_class_of_the_cluster_or_a_new_one() -> None:
    documents = _documents("daemonset-full-node.yaml")
    documents[-1]["metadata"]["namespace"] = "default"
    first = _asked(documents)["fixes"][0]
    assert first["title"] == "Create the priority class high-priority (1,000,000) and use it"
    assert [item["kind"] for item in first["change"]["write"]] == ["PriorityClass", "DaemonSet"]
    own = make_object("scheduling.k8s.io/v1", "PriorityClass", "agents", value=7)
    assert _asked([*documents, own])["fixes"][0]["title"] == "Raise to the priority class agents"


def test_a_field_that_the_owner_did_not_write_is_not_edited() -> None:
    """An admission plugin put the selector on the pod: dropping it in the template would change nothing."""
    documents = _documents("spread-cordoned.yaml")[:2]
    owner = make_object("apps/v1", "ReplicaSet", "web", uid="u", spec=deployment("web", 1)["spec"])
    made = pod("web-1", owner="ReplicaSet/web", labels={"app": "web"})
    made["spec"]["nodeSelector"] = {"pool": "injected"}
    made["metadata"]["ownerReferences"][0]["uid"] = "u"
    titles = [edit["title"] for edit in _asked([*documents, owner, made])["fixes"]]
    assert titles and not any("Drop the node selector pool" in title for title in titles)
    alone = [edit["title"] for edit in _asked([*documents, made])["fixes"]]
    assert "Drop the node selector pool=injected" in alone


def test_volume_zone_without_node() -> None:
    found = _asked("volume-zone-without-node.yaml")
    assert [edit["title"] for edit in found["fixes"]] == ["Add a node like a1 in zone us-b"]
    labels = found["fixes"][0]["change"]["write"][0]["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "us-b"
    assert found["causes"] == [
        "PersistentVolume pv-b of claim d is tied to topology.kubernetes.io/zone=us-b, where there is no node."
    ]
    backlog = answer_question(_cluster("volume-zone-without-node.yaml"), {"ask": "backlog"})
    assert len(backlog["steps"]) == 1 and backlog["map"][-1]["nodes"][0][4] == "us-b"


def _volume(kind: str) -> list[dict[str, Any]]:
    documents = _documents("volume-zone-without-node.yaml")
    volume, claim = documents[1], documents[2]
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    if kind == "label":
        del volume["spec"]["nodeAffinity"]
        volume["metadata"]["labels"] = {"topology.kubernetes.io/zone": "us-b"}
    elif kind == "csi":
        terms[0]["matchExpressions"][0]["key"] = "topology.ebs.csi.aws.com/zone"
    elif kind == "host":
        terms[0]["matchExpressions"][0] |= {"key": "kubernetes.io/hostname", "values": ["a7"]}
    elif kind == "class":
        topology = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["us-b"]}]}]
        documents[1] = {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3"},
            "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topology,
        }  # fmt: skip
        del claim["spec"]["volumeName"], claim["metadata"]["annotations"], claim["status"]
    return documents


@pytest.mark.parametrize(
    ("kind", "title"), table(__file__, "a_volume_that_is_tied_to_a_place_without_a_node")
)
def test_a_volume_that_is_tied_to_a_place_without_a_node(kind: str, title: str) -> None:
    found = _asked(_volume(kind))
    assert found["fixes"][0]["title"] == title
    assert "where there is no node" in found["causes"][0]
