"""Karpenter beside a cluster: nodes for pods that wait, and what goes or makes way for something cheaper."""

import json
from typing import Any

import pytest

from scheduler_core import prepare
from scheduler_core.descheduler.settings import schedule_from
from scheduler_core.errors import InvalidObject
from scheduler_core.karpenter.node_pools import DisruptionBudget, read_node_pools
from scheduler_core.sim.changes import ControllerRun, WriteObject
from scheduler_core.sim.outlook import run_lines
from scheduler_core.sim.simulation import Simulation
from tests.manifests import budget
from tests.scheduler_core.sim.acting import SECOND_NS, deployment
from tests.scheduler_core.sim.test_programs import acts, cluster, kube_system, machine, reasons, runs
from tests.tables import table

TYPE = "node.kubernetes.io/instance-type"


def pool(name: str = "general", types: tuple[str, ...] = (), **fields: Any) -> str:
    template: dict[str, Any] = {"taints": fields.pop("taints", [])}
    if types:
        template["requirements"] = [{"key": TYPE, "operator": "In", "values": [*types]}]
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}], **fields.pop("disruption", {})}
    spec = {"template": {"spec": template}, "disruption": disruption, **fields}
    meta = {"name": name}
    return json.dumps({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta, "spec": spec})


def web(replicas: int, name: str = "web", **more: Any) -> WriteObject:
    return WriteObject(deployment(name, replicas=replicas, cpu=more.pop("cpu", "3"), **more))


def beside(*pools: str, more: tuple[Any, ...] = ()) -> Simulation:
    """A cluster with one small node of its own, and Karpenter with these NodePools."""
    return cluster(machine("own"), *more, kube_system(karpenter="\n---\n".join(pools)))


def launched(simulation: Simulation) -> dict[str, str]:
    nodes = [stored.typed for stored in simulation.world.all("Node")]
    return {node.name: node.labels[TYPE] for node in nodes if TYPE in node.labels}


def told(found: list[ControllerRun]) -> list[str]:
    return [line for _, line in acts([run for run in found if run.controller == "karpenter"])]


def test_pods_are_packed_on_the_cheapest_machine_that_holds_them_which_makes_way_for_a_cheaper_one() -> None:
    simulation = beside(pool(), more=(web(6),))
    found = runs(simulation, 100)
    # One pod fits on the node that is there; 16 CPUs are cheaper as one machine than as two.
    assert acts(found)[0][0] == 10 and launched(simulation) == {"general-new-1": "c6i.4xlarge"}
    assert all(stored.typed.node_name for stored in simulation.world.all("Pod"))
    assert reasons(runs(simulation, 60))["Node general-new-1"] == "Can't replace with a cheaper node"
    simulation.submit(web(2))
    lines = told(runs(simulation, 300))
    assert lines[:2] == [
        "launches m6i.xlarge of NodePool general: in place of the nodes that go",
        "disrupts Node general-new-1: Underutilized",
    ]
    assert lines[-1] == "removes Node general-new-1" and launched(simulation) == {
        "general-new-2": "m6i.xlarge"
    }
    simulation.submit(web(0))
    assert told(runs(simulation, 300))[-2:] == [
        "disrupts Node general-new-2: Empty",
        "removes Node general-new-2",
    ]


def test_several_nodes_go_for_one_and_never_more_than_the_budget_allows() -> None:
    def left(budget: str) -> tuple[list[str], int]:
        simulation = beside(
            pool(types=("m6i.xlarge", "m6i.2xlarge"), disruption={"budgets": [{"nodes": budget}]})
        )
        for number in range(6):
            simulation.submit(web(1, f"web-{number}"))
            runs(simulation, 15)
        runs(simulation, 120)
        for number in range(6):
            simulation.submit(web(1, f"web-{number}", cpu="1"))
        found = runs(simulation, 45)
        n_before = len(launched(simulation))
        gone = [line for line in told(found + runs(simulation, 40)) if line.startswith("disrupts")]
        runs(simulation, 900)
        return gone, n_before - len(launched(simulation))

    at_once, n_gone = left("100%")
    assert len(at_once) > 1 and n_gone > 0
    one_by_one, n_gone_slowly = left("1")
    assert len(one_by_one) <= 1 and n_gone_slowly > 0
    assert left("0") == ([], 0)


@pytest.mark.parametrize(
    ("pools", "wanted"), table(__file__, "the_first_node_pool_by_weight_that_may_takes_the_pods")
)
def test_the_first_node_pool_by_weight_that_may_takes_the_pods(pools: list[Any], wanted: list[str]) -> None:
    simulation = beside(*(pool(**fields) for fields in pools), more=(web(4),))
    found = told(runs(simulation, 100))
    assert [line.rpartition("NodePool ")[2].partition(":")[0] for line in found] == wanted


def test_what_no_node_pool_can_launch_is_said_for_each_of_them() -> None:
    tainted = pool("gpu", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    simulation = beside(
        pool("none", ("t2.micro",)), pool("small", ("m6i.large",)), tainted, pool("end", limits={"cpu": "1"}),
        more=(web(1, cpu="5"),),
    )  # fmt: skip
    (said,) = {why for name, why in reasons(runs(simulation, 30)).items() if name.startswith("Pod ")}
    assert said == (
        "end: its limits leave no room for another node; gpu: its taint gpu=yes:NoSchedule is not tolerated; "
        "none: no type of the price list meets its requirements; "
        "small: no type that it may launch is large enough"
    )


@pytest.mark.parametrize(("more", "disruption", "wanted"), table(__file__, "why_a_node_stays"))
def test_why_a_node_stays(more: dict[str, Any], disruption: dict[str, Any], wanted: str) -> None:
    most = WriteObject(prepare(budget("web", maxUnavailable=more.get("budget", 1))))

    def written(replicas: int) -> WriteObject:
        change = web(replicas)
        change.manifest["spec"]["template"]["metadata"]["annotations"] = more.get("annotations", {})
        return change

    simulation = beside(pool(disruption=disruption), more=(most, written(6)))
    found = runs(simulation, 200)
    simulation.submit(written(2))
    found += runs(simulation, 200)
    assert wanted in reasons(found)["Node general-new-1"]
    assert not [line for line in told(found) if line.startswith("disrupts")]


def test_it_goes_on_from_a_checkpoint_as_if_nothing_had_been() -> None:
    def lines(step_s: int, cut: bool) -> list[str]:
        simulation, found = beside(pool(), more=(web(6),)), list[ControllerRun]()
        for at_s in range(0, 600, step_s):
            if at_s == 120:
                simulation.submit(web(2))
            found += runs(simulation, step_s)
            if cut:
                simulation = Simulation.restore(json.loads(json.dumps(simulation.checkpoint())))
        return [f"{run.at_ns} {line}" for run in found for line in run_lines(run)]

    kept = lines(20, cut=False)
    assert lines(20, cut=True) == kept and "removes Node general-new-1" in " ".join(kept)


@pytest.mark.parametrize(
    ("pools", "where"), table(__file__, "a_node_pool_that_cannot_be_used_is_refused_by_name_and_value")
)
def test_a_node_pool_that_cannot_be_used_is_refused_by_name_and_value(pools: list[Any], where: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read_node_pools("\n---\n".join(pool(**fields) for fields in pools))
    assert where in str(caught.value).replace('"', "")


def test_another_kind_is_refused() -> None:
    with pytest.raises(InvalidObject, match=r"karpenter\[0\].kind.*Deployment"):
        read_node_pools("kind: Deployment")


def test_a_budget_counts_while_its_schedule_says_so() -> None:
    night = DisruptionBudget("0", (), schedule_from("0 22 * * *"), 8 * 3600 * SECOND_NS)
    hour = 3600 * SECOND_NS
    assert [night.allows(10, "Empty", at * hour) for at in (23, 24 + 5, 24 + 7)] == [0, 0, None]
    assert DisruptionBudget("5%").allows(10, "Empty", 0) == 1
    assert DisruptionBudget("1", ("Empty",)).allows(10, "Underutilized", 0) is None
