"""The search for devices, told: what stood against each, as the search itself met it."""

from typing import Any

import pytest

from scheduler_core.fork import Fork
from scheduler_core.releases import RELEASES
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.why_not import UnknownNode, devices_of
from tests.scheduler_core.sim.builders import make_cluster, make_node, pod_named, write
from tests.scheduler_core.sim.test_resource_claims import claiming, node_with, template

NEWEST = RELEASES["1.36"]


def told(cluster: Simulation, name: str, node: str = "") -> dict[str, Any]:
    pod = pod_named(cluster, name)
    assert pod is not None
    found = devices_of(Fork(cluster.scheduler), pod, node)
    assert found is not None
    return found


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    """Device -> what stood against it, or what became of it."""
    return {row["device"]: row["check"] or row["outcome"] for row in answer["open"]["devices"]}


def decided(cluster: Simulation, *pods: dict[str, Any]) -> Simulation:
    for pod in pods:
        write(cluster, pod)
        cluster.run_until_idle()
    return cluster


def test_devices_in_use_and_devices_a_selector_leaves_out_are_told_apart() -> None:
    large = 'device.capacity["gpu.playground.dev"].memory.compareTo(quantity("80Gi")) >= 0'
    wanting = template("large", selectors=[{"cel": {"expression": large}}], count=2)
    nodes = (node_with("gpu=2:A100-40GB", "small"), node_with("gpu=2:A100-80GB", "large"), make_node("none"))
    cluster = make_cluster(0, *nodes, template("one-gpu"), template("one-large", selectors=wanting["spec"]["spec"][
        "devices"]["requests"][0]["exactly"]["selectors"]), wanting, release=NEWEST)  # fmt: skip
    decided(cluster, claiming("first", of="one-large"), claiming("second", of="large"))
    on_small, on_large = told(cluster, "second", "small"), told(cluster, "second", "large")
    assert outcomes(on_small) == {"gpu-0": "request selector", "gpu-1": "request selector"}
    assert [row["words"] for row in on_small["open"]["devices"]] == [large, large]
    assert outcomes(on_large) == {"gpu-0": "in use", "gpu-1": "put back"}
    [held, _] = on_large["open"]["devices"]
    assert "first" in held["words"]
    by_node = {item["node"]: (item["verdict"], item["refusals"]) for item in on_large["nodes"]}
    assert by_node == {
        "small": ("rejected", {"request selector": 2}),
        "large": ("rejected", {"in use": 1}),
        "none": ("rejected", {}),
    }
    with pytest.raises(UnknownNode):
        told(cluster, "second", "nowhere")


def test_a_counter_that_is_used_up_is_named_with_what_is_left_of_it() -> None:
    profile = 'device.attributes["gpu.playground.dev"].profile == "{}"'
    small, whole = (
        template(name, kind="mig", selectors=[{"cel": {"expression": profile.format(part)}}])
        for name, part in (("small", "1g.10gb"), ("whole", "7g.80gb"))
    )
    cluster = make_cluster(0, node_with("mig=1", "n"), small, whole, release=NEWEST)
    decided(cluster, claiming("a", of="small"), claiming("b", of="whole"))
    [row] = [item for item in told(cluster, "b")["open"]["devices"] if "7g" in item["device"]]
    assert row["check"] == "counter"
    assert "it takes 7, 6 left" in row["words"]
    failing = [item["check"] for item in row["checks"] if not item["ok"]]
    assert failing == ["counter"]


def test_a_constraint_that_refuses_a_device_is_told_with_both_values() -> None:
    pair = template("pair", count=2)
    constraint = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}
    pair["spec"]["spec"]["devices"]["constraints"] = [constraint]
    # GPUs share a root in pairs: with one of the first pair gone, the other one finds no partner.
    cluster = make_cluster(0, node_with("gpu=3", "n"), template("one-gpu"), pair, release=NEWEST)
    decided(cluster, claiming("a"), claiming("b", of="pair"))
    answer = told(cluster, "b")
    assert outcomes(answer) == {"gpu-0": "in use", "gpu-1": "put back", "gpu-2": "constraint"}
    [last] = [row for row in answer["open"]["devices"] if row["device"] == "gpu-2"]
    assert "pci0000:01 here, pci0000:00 for what is chosen already" in last["words"]
    assert answer["open"]["claims"][0]["constraints"][0]["kind"] == "matchAttribute"


def test_what_was_taken_is_what_the_scheduler_takes_and_the_story_changes_nothing() -> None:
    cluster = make_cluster(0, node_with("gpu=4", "n"), template("two", count=2), release=NEWEST)
    pod = claiming("a", of="two")
    write(cluster, pod)
    cluster.advance(0, max_cycles=0)
    before = outcomes_of(cluster, "a")
    assert before == ["gpu-0", "gpu-1"]
    assert outcomes_of(cluster, "a") == before
    cluster.run_until_idle()
    bound = pod_named(cluster, "a")
    assert bound is not None and bound.node_name == "n"


def outcomes_of(cluster: Simulation, name: str) -> list[str]:
    return [row["device"] for row in told(cluster, name)["open"]["devices"] if row["outcome"] == "taken"]
