"""The cluster autoscaler and the descheduler beside a cluster: what they do, when, and why not."""

import json
from time import process_time
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from scheduler_core import load_scenario, prepare, run_scenario
from scheduler_core.errors import InvalidObject
from scheduler_core.releases import OLDEST
from scheduler_core.scenario import ScenarioError
from scheduler_core.scenario.gallery import gallery_text
from scheduler_core.sim.changes import ControllerRun, DeleteObject, EventRecorded, WriteObject
from scheduler_core.sim.options import FaultOptions, SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import check
from tests.manifests import budget, make_object, scenario
from tests.scheduler_core.sim.acting import SECOND_NS, deployment, manifest
from tests.tables import table

LOOPS = (
    '{"options": {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "30s"}, "nodeGroups": [%s]}'
)
LOAD = "0s cpu=2\n90s cpu=8\n200s cpu=1"
NODE_POOL = (
    "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, "
    "spec: {disruption: {consolidateAfter: 30s, budgets: [{nodes: 100%}]}}}"
)
WEB = '{"name": "web", "minSize": 1, "maxSize": 4}'


def policy(plugin: str, point: str = "balance", **arguments: Any) -> dict[str, Any]:
    configs = [{"name": plugin, "args": arguments}, {"name": "DefaultEvictor", "args": {}}]
    profile = {"name": "default", "pluginConfig": configs, "plugins": {point: {"enabled": [plugin]}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}


def kube_system(**annotations: str) -> WriteObject:
    given = {f"playground.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    meta = {"name": "kube-system", "annotations": given}
    return WriteObject(prepare({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}))


def machine(name: str, cpu: str = "4", **labels: str) -> WriteObject:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    status = {"allocatable": amounts, "capacity": amounts}
    meta = {"name": name, "labels": {"pool": "web", **labels}}
    return WriteObject(prepare({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}))


def scaler(name: str) -> dict[str, Any]:
    """An autoscaler of the pods of a Deployment, of 4 pods at most."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"maxReplicas": 4, "scaleTargetRef": target}
    return manifest("HorizontalPodAutoscaler", name, "autoscaling/v2", spec)


def vertical(interval: str = "1m", **fields: Any) -> str:
    """Settings of an autoscaler of requests of the Deployment web."""
    target = {"target": "Deployment default/web", "controlledResources": ["cpu"], **fields}
    return json.dumps({"updater-interval": interval, "autoscalers": [target]})


def requests(simulation: Simulation) -> set[tuple[str, str]]:
    """Node and requested cpu of pods that are not ending."""
    pods = [stored.typed for stored in simulation.world.all("Pod") if not stored.typed.is_terminating]
    return {
        (pod.node_name, pod.manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in pods
    }


def test_pods_are_resized_in_place_to_what_was_recommended_at_the_look_before() -> None:
    """Use of 300m and 15 % more, within bounds; new pods have it from the beginning."""
    web = deployment("web", replicas=2, annotations={"playground.dev/load": "0s cpu=600m"})
    simulation = cluster(machine("a"), WriteObject(web), kube_system(vertical_pod_autoscaler=vertical()))
    assert reasons(runs(simulation, 20)) == {"Deployment default/web": "nothing is recommended yet"}
    assert requests(simulation) == {("a", "500m")}
    [first, second] = acts(runs(simulation, 60))
    assert first[1].startswith("resizes Pod default/web-") and first[1].endswith("cpu=345m is recommended")
    assert (first[0], second[0]) == (70, 70) and requests(simulation) == {("a", "345m")}
    simulation.submit(WriteObject({**web, "spec": {**web["spec"], "replicas": 3}}))
    assert acts(runs(simulation, 30)) == [] and requests(simulation) == {("a", "345m")}
    given = vertical(recommendation={"cpu": "3"}, maxAllowed={"cpu": "2"})
    simulation.submit(kube_system(vertical_pod_autoscaler=given))
    did = acts(runs(simulation, 200))
    assert [line.split()[0] for _, line in did][:3] == ["resizes"] * 3, (
        "one fits, the node has no room for others"
    )
    assert any(line.startswith("evicts Pod") for _, line in did)
    assert ("a", "2000m") in requests(simulation)


def test_pods_are_evicted_half_of_them_at_a_look_as_far_as_budgets_let_them() -> None:
    web = deployment("web", replicas=4, cpu="250m")
    text = vertical(updateMode="Recreate", recommendation={"cpu": "600m"})
    simulation = cluster(machine("a"), WriteObject(web), kube_system(vertical_pod_autoscaler=text))
    did = acts(runs(simulation, 75))
    assert [at_s for at_s, _ in did] == [70, 70] and all("evicts Pod" in line for _, line in did)
    assert requests(simulation) == {("a", "250m"), ("a", "600m")}
    simulation.submit(WriteObject(prepare(budget("web", maxUnavailable=0))))
    assert "a disruption budget allows no eviction" in reasons(runs(simulation, 70)).values()
    assert len(requests(simulation)) == 2


def cluster(*changes: Any, **options: Any) -> Simulation:
    simulation = Simulation(seed=1, options=SimulationOptions(**options))
    for change in changes:
        simulation.submit(change)
    simulation.run_until_idle()
    return simulation


def runs(simulation: Simulation, seconds: int) -> list[ControllerRun]:
    simulation.advance(seconds * SECOND_NS)
    return simulation.drain_runs()


def acts(found: list[ControllerRun]) -> list[tuple[float, str]]:
    return [(run.at_ns / SECOND_NS, str(act)) for run in found for act in run.did]


def reasons(found: list[ControllerRun]) -> dict[str, str]:
    told = {name: why for run in found for name, why in run.why_not.items()}
    return {name: why.get("reason") or why["text"] for name, why in told.items()}


def test_nodes_come_a_minute_after_they_were_asked_for_and_go_when_they_are_not_needed() -> None:
    simulation = cluster(
        machine("a"),
        WriteObject(deployment("web", replicas=3, cpu="3")),
        kube_system(cluster_autoscaler=LOOPS % WEB),
    )
    assert len(simulation.world.all("Node")) == 1
    found = runs(simulation, 90)
    assert acts(found) == [(10, "web is resized by +2")]
    nodes = {stored.typed.name: stored.typed for stored in simulation.world.all("Node")}
    assert {name: one.meta.creation_ns // SECOND_NS for name, one in nodes.items() if name != "a"} == {
        "web-new-1": 70,
        "web-new-2": 70,
    }
    assert {stored.typed.node_name for stored in simulation.world.all("Pod")} == set(nodes)
    assert reasons(found)["Node web-new-1"] == "NotUnderutilized"
    events = [one.manifest for one in simulation.drain_outcomes() if isinstance(one, EventRecorded)]
    assert {"TriggeredScaleUp"} <= {event["reason"] for event in events}
    simulation.submit(WriteObject(deployment("web", replicas=1, cpu="3")))
    did = acts(runs(simulation, 300))
    assert [line for _, line in did if line.startswith("removes")] == [
        f"removes Node {name} of web" for name in sorted(nodes) if simulation.world.node(name) is None
    ]
    assert len(simulation.world.all("Node")) == 1


def test_what_changes_is_listed_again_and_a_program_without_its_annotation_ends() -> None:
    simulation = cluster(machine("a"), kube_system(cluster_autoscaler=LOOPS % WEB))
    assert reasons(runs(simulation, 30)) == {"Node a": "NodeGroupMinSizeReached"}
    simulation.submit(WriteObject(deployment("web", replicas=1, cpu="3")))
    simulation.run_until_idle()
    simulation.submit(machine("b"))
    found = runs(simulation, 30)
    assert acts(found) == [] and reasons(found) == {
        "Node a": "NotUnderutilized",
        "Node b": "NotUnneededLongEnough",
    }
    labelled = {**simulation.world.get("Node", "", "a").manifest}  # type: ignore[union-attr]
    labelled["metadata"] = {
        **labelled["metadata"],
        "annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"},
    }
    simulation.submit(WriteObject(labelled))
    assert reasons(runs(simulation, 30))["Node a"] == "ScaleDownDisabledAnnotation"
    simulation.submit(kube_system())
    simulation.submit(WriteObject(deployment("more", replicas=9, cpu="3")))
    assert runs(simulation, 600) == []


def test_a_budget_refuses_the_second_eviction_until_the_first_pod_runs_elsewhere() -> None:
    most = WriteObject(prepare(budget("web", maxUnavailable=1)))
    simulation = cluster(machine("a"), WriteObject(deployment("web", replicas=2)), most)
    simulation.submit(machine("b"))
    simulation.submit(WriteObject(deployment("full", replicas=1, cpu="2500m")))
    simulation.run_until_idle()
    simulation.submit(kube_system(cluster_autoscaler=LOOPS % WEB))
    did = acts(runs(simulation, 400))
    evicted = [(at_s, line) for at_s, line in did if line.startswith(("evicts", "may not"))]
    assert [(line.split(" Pod ")[0], at_s - evicted[0][0]) for at_s, line in evicted] == [
        ("evicts", 0),
        ("may not evict", 0),
        ("evicts", 10),
    ]
    assert len(simulation.world.all("Node")) == 1


def test_a_node_waits_for_the_grace_period_of_its_pods() -> None:
    slow = deployment("web", replicas=1)
    slow["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 200
    simulation = cluster(machine("a"), WriteObject(slow))
    simulation.submit(machine("b"))
    simulation.submit(WriteObject(deployment("full", replicas=1, cpu="2500m")))
    simulation.run_until_idle()
    simulation.submit(kube_system(cluster_autoscaler=LOOPS % WEB))
    did = {line.split()[0]: at_s for at_s, line in acts(runs(simulation, 500))}
    assert did["removes"] - did["evicts"] == 200


@pytest.mark.parametrize(
    ("when", "at"), table(__file__, "the_descheduler_runs_every_so_often_by_a_schedule_or_once")
)
def test_the_descheduler_runs_every_so_often_by_a_schedule_or_once(when: Any, at: list[int]) -> None:
    """Of two replicas on one node one moves to the node that came later; the next cycle finds nothing to do."""
    simulation = cluster(machine("a"), WriteObject(deployment("web", replicas=2)))
    simulation.submit(machine("b"))
    text = json.dumps({"policy": policy("RemoveDuplicates"), "dry-run": True, **when})
    simulation.submit(kube_system(descheduler=text))
    found = runs(simulation, 150)
    assert [run.at_ns / SECOND_NS for run in found] == at
    assert all("RemoveDuplicates would evict Pod default/web-" in str(run.did[0]) for run in found)
    assert {stored.typed.node_name for stored in simulation.world.all("Pod")} == {"a"}
    simulation.submit(kube_system(descheduler=text.replace("true", "false")))
    runs(simulation, 200)
    assert {stored.typed.node_name for stored in simulation.world.all("Pod")} == {"a", "b"}


def test_a_run_until_idle_ends_although_the_descheduler_evicts_for_ever() -> None:
    """Each interval begins as the pod that was evicted last ends: something is under way at all times."""
    text = gallery_text("loops-duplicates")
    text = text.replace("interval: 5m", "interval: 30s").partition("\nsteps:")[0]
    often = load_scenario(f"{text}\nsteps: [{{advance: 11s}}, {{run: idle}}]")
    run = run_scenario(often)
    assert run.stop.startswith("not idle, as autoscalers or the descheduler act again and again")
    assert 30 < len(run.runs) < 100
    twin = Simulation.restore(json.loads(json.dumps(run.simulation.checkpoint())))
    assert twin.run_until_idle() == run.simulation.run_until_idle()


def test_an_autoscaler_of_pods_says_what_it_did_and_why_it_does_nothing() -> None:
    simulation = cluster(
        machine("a"), WriteObject(deployment("web", annotations={"playground.dev/load": "0s cpu=900m"}))
    )
    simulation.submit(WriteObject(scaler("web")))
    found = runs(simulation, 60)
    [scaled] = [line for _, line in acts(found)]
    assert scaled.startswith("scales Deployment default/web from 1 to 3: cpu resource utilization")
    assert found[-1].subject == "HorizontalPodAutoscaler default/web"
    assert found[-1].why_not["AbleToScale"]["text"] == "recommended size matches current size"


@pytest.mark.parametrize(
    ("program", "settings", "said"),
    table(__file__, "settings_that_cannot_be_used_are_refused_with_their_place"),
)
def test_settings_that_cannot_be_used_are_refused_with_their_place(
    program: str, settings: Any, said: str
) -> None:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    meta = {"name": "kube-system", "annotations": {f"playground.dev/{program}": text}}
    with pytest.raises(InvalidObject, match=said):
        check({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, OLDEST)
    with pytest.raises(ScenarioError, match="controllers"):
        load_scenario({"nodes": [], "controllers": {program: {"wrong": text}}})


def test_a_group_of_which_nothing_is_known_is_said_when_the_program_starts() -> None:
    simulation = cluster(machine("a"), kube_system(cluster_autoscaler="--nodes=0:3:gone"))
    assert "is of no node of the cluster" in reasons(runs(simulation, 30))["settings"]


@pytest.mark.parametrize("why", ["OutOfcpu", "TaintToleration"])
def test_pods_of_a_template_that_names_a_node_which_refuses_them_come_one_a_second(why: str) -> None:
    """They would be made without end in no time."""
    node, web = machine("a"), deployment("web", cpu="9" if why == "OutOfcpu" else "1")
    if why == "TaintToleration":
        node.manifest["spec"] = {"taints": [{"key": "x", "effect": "NoExecute"}]}  # type: ignore[index]
    web["spec"]["template"]["spec"]["nodeName"] = "a"
    simulation = cluster(node)
    simulation.submit(WriteObject(web))
    simulation.advance(10 * SECOND_NS)
    assert len(simulation.world.all("Pod")) == 11


@pytest.mark.parametrize(("text", "after", "at"), table(__file__, "a_schedule_s_next_time"))
def test_a_schedule_s_next_time(text: str, after: str, at: str) -> None:
    from scheduler_core.descheduler.settings import schedule_from
    from scheduler_core.objects.fields import format_seconds, parse_time_ns

    found = schedule_from(text).next_ns(parse_time_ns(after))
    assert ("" if found is None else format_seconds(found)) == at


def test_a_scenario_turns_them_on_and_its_replay_says_what_they_did() -> None:
    document = scenario(
        nodes=[{"name": "a", "cpu": 4, "memory": "8Gi", "pool": "web"}],
        objects=[
            make_object("v1", "Namespace", "kube-system", labels={"own": "yes"}),
            deployment("web", replicas=2, cpu="3"),
        ],
        controllers={
            "cluster-autoscaler": json.loads(LOOPS % WEB),
            "descheduler": {"policy": policy("RemoveDuplicates"), "schedule": "0 * * * *"},
        },
        steps=[{"run": "idle"}, {"advance": "2m"}],
    )
    run = run_scenario(load_scenario(document))
    assert acts(run.runs)[0][1] == "web is resized by +1"
    assert run.metrics()["pending"] == 0
    namespace = run.simulation.world.get("Namespace", "", "kube-system")
    assert namespace is not None and namespace.manifest["metadata"]["labels"]["own"] == "yes"
    assert run_scenario(load_scenario(document)).runs == run.runs


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("replicas"), st.sampled_from(["web", "db"]), st.integers(0, 7)),
        st.tuples(st.just("advance"), st.just(""), st.sampled_from([5, 20, 61, 200])),
        st.tuples(st.just("node"), st.sampled_from(["b", "c"]), st.integers(0, 1)),
        st.tuples(st.just("programs"), st.just(""), st.integers(0, 3)),
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, faulty=st.booleans())
def test_a_checkpoint_changes_nothing_of_what_they_do(steps: list[Any], faulty: bool) -> None:
    """A simulation goes on; its twin is written down and read before each step, another goes in pieces of 7 s.

    Outcomes, runs and states are equal, with an autoscaler of pods that follows a load, too.
    """
    faults = FaultOptions(slow_binds_percent=40, failed_binds_percent=20) if faulty else FaultOptions()
    texts = {
        "cluster_autoscaler": LOOPS % WEB,
        "descheduler": json.dumps({"policy": policy("RemoveDuplicates"), "descheduling-interval": "1m"}),
        "vertical_pod_autoscaler": vertical(updateMode="Recreate"),
        "karpenter": NODE_POOL,
    }
    kinds = [
        {},
        {"cluster_autoscaler": texts["cluster_autoscaler"]},
        {"descheduler": texts["descheduler"], "vertical_pod_autoscaler": vertical(), "karpenter": NODE_POOL},
        texts,
    ]
    first = cluster(
        machine("a"),
        WriteObject(deployment("web", replicas=2, cpu="1500m", annotations={"playground.dev/load": LOAD})),
        WriteObject(scaler("web")),
        kube_system(**texts),
        faults=faults,
    )
    twin, pieces = (Simulation.restore(json.loads(json.dumps(first.checkpoint()))) for _ in range(2))
    first.drain_outcomes(), first.drain_runs()
    for what, name, number in steps:
        twin = Simulation.restore(json.loads(json.dumps(twin.checkpoint())))
        said = []
        for simulation in (first, twin, pieces):
            if what == "replicas":
                simulation.submit(WriteObject(deployment(name, replicas=number, cpu="1500m")))
            elif what == "node":
                simulation.submit(machine(name) if number else DeleteObject("Node", "", name))
            elif what == "programs":
                simulation.submit(kube_system(**kinds[number]))
            seconds = number if what == "advance" else 1
            for begun in range(0, seconds, 7 if simulation is pieces else seconds):
                left = seconds - begun
                simulation.advance((min(7, left) if simulation is pieces else left) * SECOND_NS)
            simulation.validate()
            said.append((simulation.drain_outcomes(), simulation.drain_runs()))
        assert said[0] == said[1] == said[2]
    assert json.dumps(first.checkpoint()) == json.dumps(twin.checkpoint()) == json.dumps(pieces.checkpoint())


def _day_of(n_nodes: int, n_apps: int = 20) -> Simulation:
    """Machines of three zones and Deployments whose load has a daily peak, with all three programs on."""
    objects = [machine(f"web-{number}", zone=f"z{number % 3}", cpu="8") for number in range(n_nodes)]
    for number in range(n_apps):
        name, peak_h, most = f"app-{number}", 10 + number % 5, 4 * n_nodes / n_apps
        points = ((0, 0.35), (peak_h - 6, 0.4), (peak_h, 1), (peak_h + 6, 0.4), (24, 0.35))
        load = "; ".join(["every 24h", *(f"{hour}h cpu={share * most:.1f}" for hour, share in points)])
        workload = deployment(name, replicas=int(most / 2), annotations={"playground.dev/load": load})
        target = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
        scaler = {
            "minReplicas": 2,
            "maxReplicas": 1000,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [{"type": "Resource", "resource": target}],
        }

        objects += [
            WriteObject(workload),
            WriteObject(manifest("HorizontalPodAutoscaler", name, "autoscaling/v2", scaler)),
            WriteObject(prepare(budget(name, maxUnavailable="10%"))),
        ]
    group = {"name": "web", "minSize": n_nodes // 10, "maxSize": 2 * n_nodes}
    programs = {
        "cluster_autoscaler": json.dumps({"options": {}, "nodeGroups": [group]}),
        "descheduler": json.dumps({"policy": policy("RemoveDuplicates"), "descheduling-interval": "5m"}),
    }
    return cluster(*objects, kube_system(**programs))


@pytest.mark.nightly("scheduler_core/autoscaler/", "scheduler_core/descheduler/")
def test_half_a_day_of_a_hundred_nodes_takes_seconds() -> None:
    simulation = _day_of(100)
    began_s, sizes = process_time(), set[int]()
    for _ in range(12):
        simulation.advance(3600 * SECOND_NS)
        simulation.drain_outcomes(), simulation.drain_runs(), simulation.drain_cycles()
        sizes.add(len(simulation.world.all("Node")))
    assert process_time() - began_s < 40
    assert len(sizes) > 3, "nodes came and went"
