"""Scenarios made of a cluster's log decide what the cluster decided."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.extender.transport import ExtenderRequest
from scheduler_core.framework.record import CycleTrace
from scheduler_core.releases import OLDEST, RELEASES, Release
from scheduler_core.scenario import (
    MockTransport,
    dump_scenario,
    load_scenario,
    lucky_cycles,
    run_scenario,
    verify,
)
from scheduler_core.scenario.make import MadeScenario, make_scenario
from scheduler_core.scenario.redact import redact, verify_redaction
from scheduler_core.sim.admission import with_default_tolerations
from scheduler_core.sim.changes import DeleteObject, ObjectDeleted, ObjectWritten, PermitDecision, WriteObject
from scheduler_core.sim.checkpoint import is_before_chance, manifests_of
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from tests.manifests import make_object, priority_class, scheduler_config
from tests.scheduler_core.scenario.builders import Recorded, leaked_names, make_budget, make_node, make_pod
from tests.scheduler_core.scenario.test_extenders import extender
from tests.scheduler_core.stored import prepare

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 10**9
RELEASES_WITH_DEVICES = [
    pytest.param(release, devices, id=f"{release.name}{'-devices' if devices else ''}")
    for release in RELEASES.values()
    for devices in (False, True)
]
APPROVAL = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "ManualApproval"}]}}}]}
EXTENDER = {
    "extenders": [{"urlPrefix": "http://x.example", "filterVerb": "filter", "nodeCacheCapable": True}]
}


def config(*parts: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = scheduler_config()
    for part in parts:
        document |= part
    return document


class LiveCluster:
    """A cluster and its log, as a playground keeps them: inputs, then what each run read, called and brought about."""

    def __init__(
        self,
        configuration: dict[str, Any] | None = None,
        rules: tuple[dict[str, Any], ...] = (),
        release: Release = OLDEST,
    ) -> None:
        self.config, self.release = configuration, release
        self.mock = MockTransport([extender(*rules)])
        self.answers: list[dict[str, Any]] = []
        options = SimulationOptions(default_tolerations=True)
        self.simulation = Simulation(
            configuration,
            seed=11,
            start_ns=START_NS,
            transport=self.carry,
            options=options,
            release=release,
        )
        self.records: list[Recorded] = []
        self.unread: list[tuple[Recorded, Any]] = []
        self.traces: list[CycleTrace] = []
        self.clock_ns = START_NS
        self.n_uids = 0

    def carry(self, requests: Any) -> Any:
        answers = self.mock(requests)
        for request, answer in zip(requests, answers, strict=True):
            assert isinstance(request, ExtenderRequest)
            call = {"url": request.url, "verb": request.verb, "extender": request.extender_index}
            said = {"status": answer.status, "text": answer.text, "error": answer.error, "durationNs": 0}
            self.answers.append({"call": call, "answer": said})
        return answers

    def log(self, source: str, kind: str, payload: dict[str, Any], cycle: int | None = None) -> Recorded:
        record = Recorded(len(self.records) + 1, source, kind, self.clock_ns, payload, cycle)
        self.records.append(record)
        return record

    def write(self, manifest: dict[str, Any]) -> None:
        meta = dict(manifest["metadata"])
        current = self.simulation.world.get(manifest["kind"], meta.get("namespace", "default"), meta["name"])
        if current is None:
            self.n_uids += 1
            meta |= {"uid": f"0000-{self.n_uids}", "creationTimestamp": "2023-11-14T22:13:20Z"}
        meta["resourceVersion"] = str(len(self.records) + 1)
        prepared = prepare({**manifest, "metadata": meta}, self.classes())
        if manifest["kind"] == "Pod":
            prepared["spec"] = with_default_tolerations(prepared["spec"])
        self.unread.append((self.log("api", "write", {"manifest": prepared}), WriteObject(prepared)))

    def classes(self) -> list[Any]:
        return [stored.manifest for stored in self.simulation.world.all("PriorityClass")]

    def change(self, kind: str, name: str, **labels: str) -> None:
        stored = self.simulation.world.get(kind, "default" if kind == "Pod" else "", name)
        assert stored is not None
        meta = {
            **stored.manifest["metadata"],
            "labels": {**stored.manifest["metadata"].get("labels", {}), **labels},
        }
        manifest = {**stored.manifest, "metadata": meta}
        self.unread.append((self.log("api", "write", {"manifest": manifest}), WriteObject(manifest)))

    def delete(self, name: str, kind: str = "Pod") -> None:
        namespace, grace_s = ("default", 0) if kind == "Pod" else ("", None)
        about = {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
        payload = about | {"gracePeriodSeconds": grace_s, "gone": True}
        self.unread.append((self.log("api", "delete", payload), DeleteObject(kind, namespace, name, grace_s)))

    def permit(self, name: str, decision: str) -> None:
        payload = {"namespace": "default", "name": name, "plugin": None, "decision": decision}
        payload["reason"] = "because"
        change = PermitDecision("default", name, decision == "allow", None, "because")
        self.unread.append((self.log("api", "permit", payload), change))

    def wait(self, seconds: int) -> None:
        self.clock_ns += seconds * SECOND_NS

    def run(self, *calls: tuple[str, int, int]) -> None:
        simulation = self.simulation
        for record, change in self.unread:
            if record.at_ns > simulation.now_ns:
                simulation.advance(record.at_ns - simulation.now_ns)
            simulation.submit(change)
        if self.unread:
            simulation.advance(0, max_cycles=0)
        read = self.unread[-1][0].seq if self.unread else 0
        self.unread = []
        stop = ""
        for name, argument, bound in calls:
            if name == "idle":
                stop = simulation.run_until_idle(max_cycles=bound).stop
            elif name == "advance":
                stop = simulation.advance(argument, max_cycles=bound).stop
            else:
                stop = simulation.step().stop
        traces = simulation.drain_cycles()
        self.traces += traces
        self.clock_ns = simulation.now_ns
        for outcome in simulation.drain_outcomes():
            if isinstance(outcome, ObjectWritten):
                payload = {"manifest": dict(outcome.manifest), "reason": outcome.reason}
                self.log("engine", "write", payload, outcome.cycle)
            elif isinstance(outcome, ObjectDeleted):
                payload = {"kind": outcome.kind, "namespace": outcome.namespace, "name": outcome.name}
                self.log("engine", "delete", payload, outcome.cycle)
        for answer in self.answers:
            self.log("api", "extender", answer, 1)
        self.answers = []
        stop = "batch" if stop == "budget" else stop
        payload = {"read": read, "calls": [list(call) for call in calls], "cycles": len(traces)}
        self.log("engine", "ran", {**payload, "clock_ns": self.clock_ns, "stop": stop})

    def made(self, **options: Any) -> MadeScenario:
        return make_scenario(
            self.records,
            config=self.config,
            seed=11,
            start_ns=START_NS,
            traces=self.traces,
            name="live",
            release=self.release,
            **options,
        )


def reproduced(made: MadeScenario) -> str:
    scenario = load_scenario(dump_scenario(made.scenario))
    assert scenario == made.scenario
    verification = verify(run_scenario(scenario))
    assert verification is not None
    return verification.sentence


def priorities_of(simulation: Simulation) -> dict[str, int]:
    return {
        pod.manifest["metadata"]["name"]: pod.manifest["spec"]["priority"]
        for pod in simulation.world.all("Pod")
    }


def busy_cluster(release: Release = OLDEST, *, devices: bool = False) -> LiveCluster:
    """Permit waits, an extender, preemption, a controller's pods and a clock that runs on between inputs.

    With devices, pods beside these have claims: one of a template waits at Permit, two share one that was there.
    """
    live = LiveCluster(config(APPROVAL, EXTENDER), ({"deny": {"nodes": ["n3"]}},), release)
    for index in range(4):
        node = make_node(f"n{index}", "4", disk="hdd")
        if devices and index < 2:
            node["metadata"]["annotations"] = {"playground.dev/devices": "gpu=1"}
        live.write(node)
    if devices:
        exactly = {"deviceClassName": "gpu.playground.dev"}
        spec = {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}
        for kind, what in (("ResourceClaimTemplate", {"spec": spec}), ("ResourceClaim", spec)):
            head = {"apiVersion": "resource.k8s.io/v1", "kind": kind}
            live.write({**head, "metadata": {"name": "accelerator"}, "spec": what})
        for name, how in (
            ("own", {"resourceClaimTemplateName": "accelerator"}),
            ("one", {"resourceClaimName": "accelerator"}),
            ("two", {"resourceClaimName": "accelerator"}),
            ("late", {"resourceClaimTemplateName": "accelerator"}),
        ):
            pod = make_pod(f"claims-{name}", "100m", resourceClaims=[{"name": "device", **how}])
            if name == "own":
                pod["metadata"]["annotations"] = {"playground.dev/approval": "required"}
            live.write(pod)
    live.write(make_budget("guard", "web"))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": make_pod("x")["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    live.write(
        make_object(
            "apps/v1", "ReplicaSet", "web", spec={"replicas": 5, "selector": selector, "template": template}
        )
    )
    live.run(("idle", 0, 1), ("idle", 0, 2))
    live.run(("idle", 0, 64))
    live.wait(7)
    held = make_pod("held")
    held["metadata"]["annotations"] = {"playground.dev/approval": "required"}
    live.write(held)
    live.write(make_pod("picky", nodeSelector={"disk": "ssd"}))
    live.run(("idle", 0, 64))
    live.permit("held", "allow")
    live.change("Node", "n1", disk="ssd")
    live.run(("advance", 40 * SECOND_NS, 1))
    live.run(("advance", 40 * SECOND_NS, 64))
    live.write(make_pod("urgent", "4", priority=1000))
    live.run(("step", 0, 1))
    live.delete("held")
    live.wait(3)
    live.change("Pod", "picky", tier="front")
    live.run(("idle", 0, 64))
    return live


@pytest.mark.parametrize(("release", "devices"), RELEASES_WITH_DEVICES)
def test_a_busy_clusters_decisions_are_reproduced_from_its_inputs_with_the_extender_gone(
    release: Release, devices: bool
) -> None:
    live = busy_cluster(release, devices=devices)
    if devices:
        placed = {trace.pod: trace.node for trace in live.traces if trace.pod.startswith("default/claims-")}
        assert len(placed) == 4 and placed["default/claims-one"] == placed["default/claims-two"] != ""
    outcomes = {trace.outcome for trace in live.traces}
    assert {"bound", "preempting"} <= outcomes
    made = live.made()
    count = made.scenario.decisions.count if made.scenario.decisions else 0
    assert reproduced(made) == f"reproduced {count}/{count} decisions"
    assert made.notes == ()


@pytest.mark.parametrize("first", ["pod", "DaemonSet"])
def test_pods_of_a_controller_keep_their_turn_among_others(first: str) -> None:
    live = LiveCluster()
    live.write(make_node("n0", "4"))
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet" if first == "pod" else "DaemonSet",
        "metadata": {"name": "web"},
        "spec": WEB if first == "pod" else {key: WEB[key] for key in ("selector", "template")},
    }
    if first == "pod":
        live.write(make_pod("alone", "1"))
        live.write(workload)
    else:
        live.write(workload)
        live.write(make_pod("alone", "1"))
        live.write(make_node("n1", "4"))
    live.run(("idle", 0, 64))
    pods = [trace.pod for trace in live.traces]
    assert pods.index("default/alone") == (0 if first == "pod" else 1)
    made = live.made()
    assert reproduced(made) == f"reproduced {len(pods)}/{len(pods)} decisions"


@pytest.mark.parametrize(("release", "devices"), RELEASES_WITH_DEVICES)
def test_a_busy_cluster_can_be_shown_to_strangers(release: Release, devices: bool) -> None:
    scenario = busy_cluster(release, devices=devices).made().scenario
    redacted = redact(scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    assert leaked_names(redacted, ["because"]) == []


def test_bound_pods_become_pending_again_and_only_inputs_and_what_they_changed_are_taken_over() -> None:
    live = LiveCluster()
    live.write(make_node("n"))
    live.write(make_pod("p"))
    live.run(("idle", 0, 64))
    live.change("Pod", "p", tier="front")
    live.run(("idle", 0, 64))
    scenario = live.made().scenario
    node, pod = scenario.objects
    assert pod == {**make_pod("p"), "metadata": {"name": "p", "namespace": "default"}}
    assert node["metadata"] == {"name": "n"} and "uid" not in json.dumps(scenario.objects)
    assert [step.verb for step in scenario.steps] == ["run", "patch", "run"]
    patch = scenario.steps[1].patch
    assert patch is not None and patch.patch == {"metadata": {"labels": {"tier": "front"}}}


def test_deleting_what_is_not_there_is_noted_and_left_out() -> None:
    live = LiveCluster()
    live.delete("p")
    made = live.made()
    assert made.notes == ("record 1 deletes Pod default/p, which is not there",)


CRITICAL = {"metadata": {"name": "critical"}, "value": 1000}
WEB = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": make_pod("x")["spec"]},
}


def chancy_cluster() -> tuple[LiveCluster, int, dict[str, Any]]:
    """Placed pods and a checkpoint before the first decision; then draws, evictions, controllers, permits, a clock.

    Returns
    -------
    The cluster, the number of its records at the checkpoint, and the checkpoint.
    """
    live = LiveCluster(config(APPROVAL))
    live.write({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **CRITICAL})
    for index in range(6):
        live.write(make_node(f"n{index}", "4", disk="hdd"))
    live.wait(5)
    for index in range(6):
        live.write(make_pod(f"there-{index}", "2", node=f"n{index}"))
    live.write(make_pod("waits", "1"))
    live.run()
    kept = json.loads(json.dumps(live.simulation.checkpoint()))
    n_records = len(live.records)
    live.run(("idle", 0, 64))
    live.wait(7)
    for index in range(4):
        live.write(make_pod(f"late-{index}", "2"))
    held = make_pod("held")
    held["metadata"]["annotations"] = {"playground.dev/approval": "required"}
    live.write(held)
    live.delete("there-0")
    live.run(("idle", 0, 64))
    live.permit("held", "allow")
    live.change("Node", "n1", disk="ssd")
    live.write({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": WEB})
    live.change("Pod", "waits", tier="front")
    live.run(("advance", 40 * SECOND_NS, 2))
    live.run(("advance", 40 * SECOND_NS, 64))
    live.write(make_pod("there-0", "1"))
    for index in range(2):
        live.write(make_pod(f"vip-{index}", "4", priorityClassName="critical"))
    live.run(("step", 0, 1))
    live.run(("idle", 0, 64))
    return live, n_records, kept


def test_every_seed_runs_on_from_a_checkpoint_of_before_any_chance_as_it_runs_the_whole_log() -> None:
    live, n_records, kept = chancy_cluster()
    whole = make_scenario(live.records, config=live.config, seed=11, start_ns=START_NS).scenario
    rest = make_scenario(
        live.records[n_records:], seed=11, start_ns=kept["nowNs"], initial=manifests_of(kept), goes_on=True
    ).scenario
    assert rest.objects == () and len(rest.steps) < len(whole.steps) + len(whole.objects)
    again = run_scenario(rest, checkpoint=kept)
    assert {trace.number: trace.digest for trace in again.cycles} == {
        trace.number: trace.digest for trace in live.traces
    }
    ends = set()
    for seed in range(12):
        a, b = run_scenario(whole, seed=seed), run_scenario(rest, seed=seed, checkpoint=kept)
        assert a.cycle_lines() == b.cycle_lines() and a.digest == b.digest
        assert a.placement() == b.placement() and a.metrics() == b.metrics()
        assert lucky_cycles(a) == lucky_cycles(b)
        assert a.simulation.now_ns == b.simulation.now_ns
        ends.add(tuple(a.placement().items()))
    assert len(ends) > 4


def test_a_checkpoint_that_hangs_on_its_seed_is_no_beginning_for_others() -> None:
    live, _, kept = chancy_cluster()
    assert is_before_chance(kept)
    later = live.simulation.checkpoint()
    assert not is_before_chance(later)
    with pytest.raises(ValueError, match="its own seed"):
        run_scenario(live.made().scenario, seed=3, checkpoint=later)
    drawn = LiveCluster()
    drawn.write({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": WEB})
    drawn.run()
    assert not is_before_chance(drawn.simulation.checkpoint())  # the names of its pods


def test_pods_keep_what_their_classes_said_when_they_were_made() -> None:
    live = LiveCluster()
    live.write(make_node("n1", "4"))
    live.write(priority_class("high", 1000, preemptionPolicy="Never"))
    live.write(make_pod("first", "3"))
    live.run(("idle", 0, 50))
    live.write(make_pod("plain", "3"))
    live.write(make_pod("patient", "3", priorityClassName="high"))
    live.run(("idle", 0, 50))
    live.delete("high", "PriorityClass")
    live.write(priority_class("usual", 7, globalDefault=True))
    live.run(("idle", 0, 50))
    live.write(priority_class("high", 5))
    live.run()
    live.write(make_pod("impatient", "3", priorityClassName="high"))
    live.write(make_pod("usual", "3"))
    bare = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 1,
            "template": {"metadata": {"labels": {"a": "b"}},
                         "spec": {"priority": 9, "containers": [{"name": "c", "image": "x"}]}}}  # fmt: skip
    live.write({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "refused"}, "spec": bare})
    live.run(("idle", 0, 50))
    live.write(make_node("n2", "4"))
    live.change("Pod", "patient", a="b")
    live.run(("idle", 0, 50))
    # The one of 5 evicted the first, the one of 7 that one.
    said = {"plain": 0, "patient": 1000, "usual": 7}
    assert priorities_of(live.simulation) == said
    again, count = reproduced(live.made()), len(live.traces)
    assert again.startswith(f"reproduced {count}/{count} decisions"), again
    # A cluster that is shared as it stands, with the classes of today, keeps the values too.
    stored = manifests_of(live.simulation.checkpoint())
    kept = make_scenario([], start_ns=START_NS, initial=stored).scenario
    run = run_scenario(load_scenario(dump_scenario(kept)))
    assert priorities_of(run.simulation) == said
