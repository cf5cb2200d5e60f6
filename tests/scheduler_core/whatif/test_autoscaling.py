"""What the autoscaler adds and removes beside the scheduler, in virtual time, and what it says of each pod and node."""

from typing import Any

import pytest

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import MachineGroup
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.pasted import read_autoscaler
from scheduler_core.errors import InvalidObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import scaling
from scheduler_core.whatif.answers import answer_question, answer_text
from tests.manifests import deployment
from tests.tables import table

from .test_descheduling import cluster, node, pod

TYPE = "node.kubernetes.io/instance-type"


def pending(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    made = pod(name, "", cpu, **spec)
    del made["spec"]["nodeName"], made["status"]
    return made


def of_pool(name: str, pool: str, kind: str = "m6i.xlarge", **labels: str) -> dict[str, Any]:
    return node(name, **{"pool": pool, TYPE: kind, **labels})


def asked(simulation: Simulation, groups: Any = None, **options: Any) -> dict[str, Any]:
    given = {"options": {key.replace("_", "-"): value for key, value in options.items()}}
    if groups is not None:
        given["nodeGroups"] = groups
    return answer_question(simulation, {"ask": "autoscale", "autoscaler": given})


def group(name: str, least: int, most: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "minSize": least, "maxSize": most, **more}


def told(answer: dict[str, Any]) -> dict[str, str]:
    return {line["text"]: line["note"] for line in answer["lines"]}


def said_of(answer: dict[str, Any]) -> dict[str, str]:
    return {item["node"]: item["text"] for item in answer["nodes"]}


def test_a_group_grows_for_pods_that_wait_and_the_others_say_why_not() -> None:
    simulation = cluster(
        of_pool("web-a", "web", disk="ssd"),
        of_pool("db-a", "db"),
        pod("full-a", "web-a", "3"),
        pod("full-b", "db-a", "3"),
        *(pending(f"new-{n}", "1500m", nodeSelector={"disk": "ssd"}) for n in range(3)),
    )
    before = simulation.checkpoint()
    answer = asked(simulation, [group("web", 1, 3), group("db", 1, 5)])
    assert simulation.checkpoint() == before
    assert answer["verdict"] == "The autoscaler adds 2 nodes in 1m10s; 3 of 3 pending pods find a node."
    assert answer["tone"] == "good"
    assert told(answer)["web grows from 1 to 3 nodes at 10s, of 3 at most."] == (
        "the only option, web: 2 nodes for 3 pods"
    )
    helps = told(answer)["shop/new-0, shop/new-1 and shop/new-2: web helps."]
    assert helps == "db: node(s) didn't match Pod's node affinity/selector"
    assert {move["node"] for move in answer["moves"]} <= {"web-new-1", "web-new-2"}
    added = [step["apply"]["metadata"]["name"] for step in answer["steps"]]
    assert added == ["web-new-1", "web-new-2"]
    figures = {figure["words"]: figure["value"] for figure in answer["figures"]}
    assert (figures["cost an hour"], figures["in the end"], figures["added an hour"]) == (
        "$0.46",
        "$0.92",
        "$0.46",
    )
    assert answer["bound"] <= 0.46


def test_a_group_at_its_maximum_leaves_pods_pending() -> None:
    simulation = cluster(
        of_pool("web-a", "web"), pod("full", "web-a", "3"), *(pending(f"new-{n}", "3") for n in range(2))
    )
    answer = asked(simulation, [group("web", 1, 2)])
    assert answer["verdict"] == "The autoscaler adds 1 node in 1m10s; 1 of 2 pending pods finds a node."
    assert answer["tone"] == "bad"
    none = asked(simulation, [group("web", 1, 1)])
    assert none["verdict"] == "The autoscaler changes nothing; 0 of 2 pending pods find a node."
    assert told(none)["shop/new-0 and shop/new-1: no group helps."] == "web: max node group size reached"


def test_the_expander_is_named_with_what_it_leaves() -> None:
    objects = (
        of_pool("cheap-a", "cheap", "m6i.xlarge"),
        of_pool("costly-a", "costly", "m6i.16xlarge"),
        pod("full-a", "cheap-a", "3"),
        pod("full-b", "costly-a", "3"),
        pending("new", "3"),
    )
    groups = [group("costly", 1, 5), group("cheap", 1, 5)]
    answer = asked(cluster(*objects), groups, expander="price")
    assert answer["groups"][0]["added"] == 0 and answer["groups"][1]["added"] == 1
    note = told(answer)["cheap grows from 1 to 2 nodes at 10s, of 5 at most."]
    assert note.startswith("--expander=price: price leaves cheap. Options: cheap: 1 node for 1 pod; costly")
    chosen = {
        "priorities": "10: [costly]\n1: [.*]\n",
        "options": {"expander": "priority"},
        "nodeGroups": groups,
    }
    answer = answer_question(cluster(*objects), {"ask": "autoscale", "autoscaler": chosen})
    assert "priority leaves costly" in told(answer)["costly grows from 1 to 2 nodes at 10s, of 5 at most."]


def test_every_node_says_why_it_stays_or_goes() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "held"}}},
        "status": {"disruptionsAllowed": 0},
    }
    held = pod("held", "c")
    held["metadata"]["labels"] = {"app": "held"}
    simulation = cluster(
        *(of_pool(name, "web") for name in ("a", "b", "c", "d", "full")),
        node("alone"),
        pod("moves", "a"),
        pod("bare", "b", owned=False),
        held,
        pod("large", "full", "3"),
        budget,
    )
    answer = asked(simulation, [group("web", 1, 9)])
    assert answer["verdict"] == "The autoscaler removes 2 nodes in 10m50s."
    said = said_of(answer)
    assert said["d"] == "Goes at 10m10s: not needed since 0s; no pod has to move."
    assert said["a"].startswith("Goes at ") and "room for its 1 pod is on " in said["a"]
    assert said["b"] == "Stays: shop/bare has no controller that would make it again."
    assert said["c"] == "Stays: a disruption budget of shop/held allows no eviction."
    assert said["full"] == "Stays: its pods ask for 75% of its cpu, above 50%."
    assert said["alone"] == "Stays: it is in no node group."
    assert [step for step in answer["steps"] if "drain" in step] == [{"drain": "d"}, {"drain": "a"}]
    states = {name: state for part in answer["map"] for name, state, *_ in part["nodes"]}
    assert (states["d"], states["b"]) == ("gone", "same")
    later = said_of(asked(simulation, [group("web", 1, 9)], scale_down_unneeded_time="2m"))
    assert later["d"] == "Goes at 2m10s: not needed since 0s; no pod has to move."
    kept = said_of(asked(simulation, [group("web", 5, 9)]))
    assert kept["d"] == "Stays: its group web is at its least size, 5."


def test_where_no_group_is_given_each_pool_is_one_and_said_to_be_guessed() -> None:
    simulation = cluster(of_pool("a", "web"), pod("full", "a", "3"), pending("new", "3"))
    answer = answer_question(simulation, {"ask": "autoscale"})
    assert [(one["name"], one["minSize"], one["maxSize"]) for one in answer["groups"]] == [("web", 0, 10)]
    assert any("is guessed" in words for words in answer["leavesOut"])
    assert answer_text(answer) == answer_text(answer_question(simulation, {"ask": "autoscale"}))


def test_a_group_without_nodes_is_made_of_its_type_or_template() -> None:
    simulation = cluster(of_pool("a", "web"), pod("full", "a", "3"), pending("new", "7"))
    template = {"kind": "Node", "status": {"allocatable": {"cpu": "8", "memory": "9Gi", "pods": "9"}}}
    for more in ({"instanceType": "m6i.2xlarge"}, {"template": template}):
        answer = asked(simulation, [group("web", 1, 3), group("large", 0, 3, **more)])
        assert [move["node"] for move in answer["moves"]] == ["large-new-1"]
    with pytest.raises(InvalidObject, match=r"nodeGroups\[0\].name.*is of no node of the cluster"):
        asked(simulation, [group("large", 0, 3)])


def test_the_limit_that_ends_a_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "MOST_LOOPS", 1)
    answer = asked(cluster(of_pool("a", "web"), pod("full", "a", "3"), pending("new", "3")))
    assert "when the limit of 1 loops ends the run" in answer["verdict"]


def test_flags_are_read_from_a_deployment_a_command_line_and_a_config_map() -> None:
    wanted = {
        "options": {"expander": "price", "balance-similar-node-groups": "true", "v": "4"},
        "nodeGroups": [{"name": "web", "minSize": "1", "maxSize": "10"}],
    }
    words = "--expander=price --balance-similar-node-groups --v=4 \\\n --nodes=1:10:web"
    assert read_autoscaler(words) == wanted
    listed = ", ".join(f"'{word}'" for word in words.replace("\\\n", "").split())
    deployment = (
        "kind: Deployment\nspec: {template: {spec: {containers: [{command: [./cluster-autoscaler, "
        + listed
        + "]}]}}}\n"
    )
    priorities = "kind: ConfigMap\ndata: {priorities: '10: [web]'}\n"
    assert read_autoscaler(f"{deployment}---\n{priorities}") == {**wanted, "priorities": "10: [web]"}
    simulation = cluster(of_pool("a", "web"))
    answer = answer_question(simulation, {"ask": "autoscale", "autoscaler": read_autoscaler(words)})
    assert "These flags are not modelled: --v." in answer["leavesOut"]


@pytest.mark.parametrize(("given", "said"), table(__file__, "what_cannot_be_used_is_named"))
def test_what_cannot_be_used_is_named(given: Any, said: str) -> None:
    with pytest.raises(InvalidObject, match=said):
        answer_question(cluster(of_pool("a", "web")), {"ask": "autoscale", "autoscaler": given})


@pytest.mark.parametrize(
    "pods",
    [[pod("one", "a", "1"), pod("two", "b", "1")], [deployment("web", 2)]],
    ids=["here", "by its Deployment"],
)
def test_an_evicted_pod_is_made_again_and_placed(pods: list[dict[str, Any]]) -> None:
    simulation = cluster(of_pool("a", "web"), of_pool("b", "web"), *pods)
    run = scaling.run_loops(simulation, scaling.Given(), scaling.PriceList(()))
    assert len(run.removed) == 1 and run.evictions == 1
    placed = [stored.typed for stored in run.simulation.world.all("Pod")]
    assert {one.node_name for one in placed} == {"a", "b"} - set(run.removed) and len(placed) == 2


NOW_NS = 1_800_000_000 * 10**9
"""2027-01-15T08:00:00Z"""


def looped(*objects: dict[str, Any], least: int = 0, seconds: int = 0, **options: Any) -> Loop:
    """The last of a loop now, and one so many seconds later, over nodes of one group."""
    names = [one["metadata"]["name"] for one in objects if one["kind"] == "Node"]
    fresh = of_pool("template", "web")
    machines = MachineGroup("web", least, 9, len(names), fresh)
    flags = {key.replace("_", "-"): value for key, value in options.items()}
    program = Autoscaler(flags, [machines], LiveCluster(objects, dict.fromkeys(names, "web")))
    for at in range(0, seconds + 1, seconds or 1):
        loop = program.run_once(NOW_NS + at * 10**9)
    return loop


def waiting(name: str, cpu: str = "3", scheduler: str = "default-scheduler", **marks: str) -> dict[str, Any]:
    made = pending(name, cpu, schedulerName=scheduler)
    made["metadata"] |= {"creationTimestamp": "2020-01-01T00:00:00Z", "annotations": marks}
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {**made, "status": {"phase": "Pending", "conditions": [said]}}


@pytest.mark.parametrize(("why", "marks", "options", "grown"), table(__file__, "some_pods_let_no_group_grow"))
def test_some_pods_let_no_group_grow(why: str, marks: Any, options: dict[str, Any], grown: int) -> None:
    assert looped(waiting("a", **marks), **options).target_sizes == {"web": grown}, why


def test_pods_of_schedulers_that_are_not_allowed_take_no_room() -> None:
    objects = [of_pool("a", "web"), pod("full", "a", "3", schedulerName="batch"), waiting("b")]
    assert looped(*objects).target_sizes == {"web": 2}
    assert looped(*objects, allowed_scheduler_names=["default-scheduler"]).target_sizes == {"web": 1}


@pytest.mark.parametrize(
    ("text", "said"), table(__file__, "priorities_that_cannot_be_read_are_said_and_let_every_group_be")
)
def test_priorities_that_cannot_be_read_are_said_and_let_every_group_be(text: str, said: str) -> None:
    name = {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"priorities": text}}
    loop = looped(waiting("a"), config, expander="priority")
    assert loop.target_sizes == {"web": 1}
    [warning] = [event for event in loop.events if event.type == "Warning"]
    assert warning.reason == "PriorityConfigMapInvalid"
    assert said in warning.message


def test_a_scale_up_that_was_not_tried_is_not_told_where_the_least_sizes_are_enforced() -> None:
    objects = [of_pool("a", "web"), waiting("b", "9")]
    assert looped(*objects, max_nodes_total=1).events
    assert not looped(*objects, max_nodes_total=1, enforce_node_group_min_size=True).events


def test_the_grace_period_of_a_pod_s_spec_says_how_long_its_node_is_used() -> None:
    leaving = pod("old", "a", "1", terminationGracePeriodSeconds=5)
    since = {"deletionTimestamp": "2027-01-15T07:59:00Z", "deletionGracePeriodSeconds": 3600}
    leaving["metadata"] |= since
    assert looped(of_pool("a", "web"), leaving).scale_down.utilization["a"]["utilization"] == 0


def test_virtual_nodes_do_not_count_for_the_least_cores_of_a_cluster() -> None:
    options: dict[str, Any] = {"cores_total": "4:100", "scale_down_unneeded_time": "1s", "seconds": 10}
    gone = looped(of_pool("a", "web"), of_pool("b", "web"), **options)
    assert len(gone.scale_down.deleting) == 1
    kept = looped(of_pool("a", "web"), of_pool("b", "web", type="virtual-kubelet"), **options)
    assert kept.scale_down.unremovable["a"]["reason"] == "MinimalResourceLimitExceeded"


def test_a_host_port_is_in_use_as_long_as_one_of_two_pods_that_claim_it_is_there() -> None:
    ports: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    there, waits, nominated = pod("a", "a", **ports), waiting("b"), waiting("c")
    for one in (waits, nominated):
        one["spec"] |= ports
    nominated["status"]["nominatedNodeName"] = "a"
    live = LiveCluster([of_pool("a", "web"), there, nominated], {"a": "web"})
    program = Autoscaler({}, [MachineGroup("web", 0, 9, 1, of_pool("template", "web"))], live)
    program.run_once(NOW_NS)
    live.delete("Pod", "shop", "c")
    live.put(waits)
    assert program.run_once(NOW_NS + 10**10).target_sizes == {"web": 2}


def test_nodes_of_no_group_do_not_make_a_cluster_unhealthy() -> None:
    lost = of_pool("a", "web")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    lost["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    for group_of, result in (({"a": "web"}, "ScaleUpNotTried"), ({}, "ScaleUpNotNeeded")):
        machines = MachineGroup("web", 0, 9, len(group_of), of_pool("template", "web"))
        live = LiveCluster([lost, waiting("b", "3500m")], group_of)
        program = Autoscaler({"ok-total-unready-count": 0}, [machines], live)
        assert program.run_once(NOW_NS).scale_ups[0].result == result


def test_pods_that_a_group_which_is_left_out_would_take_wait_for_another_loop() -> None:
    objects = [waiting("a", "1"), waiting("b", "9")]
    large = of_pool("large", "large")
    large["status"] = {**large["status"], "allocatable": {"cpu": "16", "memory": "8Gi", "pods": "9"}}
    machines = [
        MachineGroup("web", 0, 9, 0, of_pool("template", "web")),
        MachineGroup("full", 0, 0, 0, large),
    ]
    flags = {"scaleup-simulation-for-skipped-node-groups-enabled": True}
    [found] = Autoscaler(flags, machines, LiveCluster(objects, {})).run_once(NOW_NS).scale_ups
    assert [pod.name for pod in found.awaiting] == ["b"]


def test_an_empty_node_to_which_pods_came_is_kept_and_tried_again() -> None:
    live = LiveCluster([of_pool("a", "web")], {"a": "web"})
    flags = {"scale-down-unneeded-time": "0s", "scale-down-delay-type-local": True}
    program = Autoscaler(flags, [MachineGroup("web", 0, 9, 1, of_pool("template", "web"))], live)
    assert program.run_once(NOW_NS).scale_down.deleting
    live.put(pod("late", "a"))
    program.advance(NOW_NS + 10**10)
    live.delete("Pod", "shop", "late")
    loop = program.run_once(NOW_NS + 2 * 10**10)
    assert "new pods scheduled" in "".join(event.message for event in loop.events)
    assert loop.scale_down.deleting
