"""Whatever happens: a pod is in one place, sums are sums, no timer is lost, and a checkpoint changes nothing.

So it is in each release, also when a cluster is taken from one to the next, with devices and without.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.objects.pod import Pod
from scheduler_core.releases import RELEASES, Release
from scheduler_core.sim.changes import (
    BindCallAnswered,
    DeleteObject,
    PermitDecision,
    SetConfiguration,
    WriteObject,
)
from scheduler_core.sim.controllers.device_driver import DEVICES
from scheduler_core.sim.controllers.node_lifecycle import CRASHES
from scheduler_core.sim.kubelet import DURATION, FINISHES, STARTS, TERMINATED, is_heard_of
from scheduler_core.sim.load import LOAD
from scheduler_core.sim.options import FaultOptions, SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.thresholds import INFINITY, Thresholds, using
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    claim,
    make_budget,
    make_node,
    make_pod,
    make_priority_class,
    make_workload,
    state,
    storage_class,
)
from tests.scheduler_core.stored import prepare

NODES = st.sampled_from([f"node-{index}" for index in range(4)])
PODS = st.sampled_from([f"pod-{index}" for index in range(8)])
CPUS = st.sampled_from(["0", "500m", "1500m", "3"])
KINDS = st.sampled_from(
    ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicationController"]
)
CLAIMS = ("whole", "part", "shared")
"""Pods with claims: of a template for a GPU, of one for a part of it, of a claim that is there for several."""
CLAIMING = st.sampled_from(["approval", "", "duration"])
ANY_RELEASE = st.sampled_from(list(RELEASES.values()))
HARDWARE = st.sampled_from(["gpu=2,mig=1", "gpu=1", ""])
EXTRAS = st.sampled_from(
    ["", "approval", "gang", "duration", "gate", "stranger", "delay", "volume", *["device"] * 4]
)
FAULTS = st.sampled_from(
    [
        FaultOptions(),
        FaultOptions(slow_binds_percent=50, failed_binds_percent=20),
        FaultOptions(slow_binds_percent=30, lost_events_percent=40, relist_ms=7_000),
    ]
)
DEVICE = "example.com/device"
BOUND, REFUSED, LOST = (
    ExtenderAnswer(200, "{}"),
    ExtenderAnswer(200, '{"Error": "busy"}'),
    ExtenderAnswer(error="EOF"),
)
ANSWERS = st.sampled_from([BOUND, REFUSED, LOST])


def config(ignorable: bool) -> dict[str, Any]:
    """Both Permit plugins, and an extender that filters and binds the pods that ask for a device."""
    extender = {
        "urlPrefix": "http://extender.example",
        "filterVerb": "filter",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
        "ignorable": ignorable,
        "managedResources": [{"name": DEVICE, "ignoredByScheduler": True}],
    }
    return {**PERMIT_CONFIG, "extenders": [extender]}


def node_with(name: str, hardware: str, **more: Any) -> dict[str, Any]:
    """A node whose driver publishes devices, and which crashes under load."""
    node = make_node(name, **more)
    if hardware:
        node["metadata"]["annotations"] = {DEVICES: hardware, CRASHES: "cpu=50% for 40s"}
    return node


def claim_template(name: str) -> dict[str, Any]:
    """A template for a whole GPU, or for a part of one."""
    exactly: dict[str, Any] = {"deviceClassName": f"{'gpu' if name == 'whole' else 'mig'}.playground.dev"}
    spec = {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    return prepare({**head, "metadata": {"name": name}, "spec": spec})


def moody(requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
    """The extender: what it says follows from whom it is asked about, and is not always what one hopes for."""

    def answer(request: ExtenderRequest) -> ExtenderAnswer:
        if request.verb == "bind":
            return (BOUND, BOUND, REFUSED, LOST)[zlib.crc32(request.body["PodUID"].encode()) % 4]
        uid = request.body["Pod"]["metadata"]["uid"]
        left = [name for name in request.body["NodeNames"] if zlib.crc32(f"{uid}{name}".encode()) % 3]
        return ExtenderAnswer(200, json.dumps({"NodeNames": left}))

    return [answer(request) for request in requests]


def waiting_for_their_binding(simulation: Simulation, called: Sequence[str] = ()) -> list[Pod]:
    """Pods an extender said it has bound, whose Binding is not posted yet; those of open calls too."""
    scheduler = simulation.scheduler
    return [
        stored.typed
        for stored in simulation.world.all("Pod")
        if not stored.typed.node_name
        and stored.typed.uid in scheduler.cache.assumed
        and (stored.typed.uid in called or stored.typed.uid not in scheduler.bindings)
    ]


class SimulationMachine(RuleBasedStateMachine):
    """Drives one simulation, now and then through a checkpoint; its twin goes through the same at the end.

    Attributes
    ----------
    thresholds
        Of the first; the twin has the usual ones.
    """

    thresholds = Thresholds()

    @initialize(
        seed=st.integers(0, 3),
        faults=FAULTS,
        posting=st.booleans(),
        ignorable=st.booleans(),
        release=ANY_RELEASE,
        hardware=HARDWARE,
    )
    def begin(
        self, seed: int, faults: FaultOptions, posting: bool, ignorable: bool, release: Release, hardware: str
    ) -> None:
        self.ends = ExitStack()
        self.ends.enter_context(using(self.thresholds))
        options = SimulationOptions(faults=faults, default_tolerations=True, extenders_post_bindings=posting)
        self.config = config(ignorable)
        self.new: Callable[[], Simulation] = lambda: Simulation(
            self.config, seed=seed, start_ns=START_NS, options=options, transport=moody, release=release
        )
        self.simulation = self.new()
        self.calls: list[Callable[[Simulation], Any]] = []
        self.outcomes: list[Any] = []
        self.n_written = 0
        self.denied: set[str] = set()
        for index in range(2):
            node = node_with(f"node-{index}", hardware)
            self.do(lambda it, node=node: it.submit(WriteObject(node)))
        for name in ("whole", "part"):
            self.do(lambda it, name=name: it.submit(WriteObject(claim_template(name))))
        self.do(lambda it: it.submit(WriteObject(make_priority_class("high", 1000))))
        self.do(lambda it: it.submit(WriteObject(storage_class("fast"))))

    def do(self, call: Callable[[Simulation], Any]) -> None:
        self.calls.append(call)
        call(self.simulation)
        self.outcomes.extend(self.simulation.drain_outcomes())

    # ---- inputs

    @rule(
        name=NODES,
        ready=st.sampled_from(["True", "False", "Unknown"]),
        cordoned=st.booleans(),
        hardware=HARDWARE,
    )
    def write_node(self, name: str, ready: str, cordoned: bool, hardware: str) -> None:
        node = node_with(name, hardware, ready=ready, unschedulable=cordoned)
        self.do(lambda it: it.submit(WriteObject(node)))

    @rule(name=NODES)
    def delete_node(self, name: str) -> None:
        self.do(lambda it: it.submit(DeleteObject("Node", "", name)))

    @rule(
        name=PODS,
        cpu=CPUS,
        high=st.booleans(),
        extra=EXTRAS,
    )
    def write_pod(self, name: str, cpu: str, high: bool, extra: str) -> None:
        self.put_pod(name, cpu, high, extra)

    def put_pod(self, name: str, cpu: str, high: bool, extra: str, claim_of: str = "") -> None:
        labels: dict[str, str] = {"app": "bare"}
        annotations: dict[str, str] = {}
        spec: dict[str, Any] = {"priority": 1000} if high else {}
        match extra:
            case "approval":
                annotations |= {
                    "playground.dev/approval": "required",
                    "playground.dev/approval-timeout": "20s",
                }
            case "gang":
                labels |= {"scheduling.x-k8s.io/pod-group": "gang", "scheduling.x-k8s.io/min-available": "2"}
            case "duration":
                annotations[DURATION] = "12s"
            case "delay":
                annotations |= {"playground.dev/start-delay": "3s", LOAD: "0s cpu=1; 30s cpu=3"}
            case "gate":
                spec["schedulingGates"] = [{"name": "later"}]
            case "volume":
                volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{name}"}}
                spec["volumes"] = [volume]
            case "stranger":
                spec["schedulerName"] = "another"
        if claim_of:
            how = "resourceClaimName" if claim_of == "shared" else "resourceClaimTemplateName"
            spec["resourceClaims"] = [{"name": "device", how: claim_of}]
        self.n_written += 1
        uid = f"uid-{self.n_written}"
        pod = make_pod(name, cpu=cpu, uid=uid, labels=labels, annotations=annotations, **spec)
        if extra == "device":
            pod["spec"]["containers"][0]["resources"]["requests"][DEVICE] = "1"

        def submit(it: Simulation) -> None:
            # An API server refuses a second pod of the same name; a pod that is there is touched instead.
            stored = it.world.get("Pod", "default", name)
            if stored is None:
                it.submit(WriteObject(pod))
            else:
                meta = {**stored.manifest["metadata"], "labels": {**stored.typed.labels, "touched": uid}}
                gone = {
                    key: value for key, value in stored.manifest["spec"].items() if key != "schedulingGates"
                }
                it.submit(WriteObject({**stored.manifest, "metadata": meta, "spec": gone}))

        self.do(submit)

    @rule(name=PODS, there=st.booleans())
    def write_or_delete_claim(self, name: str, there: bool) -> None:
        self.n_written += 1
        new = claim(f"claim-{name}", "fast")
        new["metadata"]["uid"] = f"claim-{self.n_written}"

        def submit(it: Simulation) -> None:
            stored = it.world.get("PersistentVolumeClaim", "default", f"claim-{name}")
            if there and stored is None:
                it.submit(WriteObject(new))
            elif not there:
                it.submit(DeleteObject("PersistentVolumeClaim", "default", f"claim-{name}"))

        self.do(submit)

    @rule(name=PODS, of=st.sampled_from(CLAIMS), extra=CLAIMING, n_cycles=st.integers(0, 2))
    def write_pod_with_a_claim(self, name: str, of: str, extra: str, n_cycles: int) -> None:
        if of == "shared":
            self.write_or_delete_shared_claim(there=True)
        self.put_pod(name, "0", True, extra, of)
        for _ in range(n_cycles):
            self.do(lambda it: it.step())

    @rule(there=st.booleans())
    def write_or_delete_shared_claim(self, there: bool) -> None:
        self.n_written += 1
        new = {
            **claim_template("whole"),
            "kind": "ResourceClaim",
            "spec": claim_template("whole")["spec"]["spec"],
        }
        new["metadata"] = {"name": "shared", "namespace": "default", "uid": f"shared-{self.n_written}"}

        def submit(it: Simulation) -> None:
            stored = it.world.get("ResourceClaim", "default", "shared")
            if there and stored is None:
                it.submit(WriteObject(prepare(new)))
            elif not there:
                it.submit(DeleteObject("ResourceClaim", "default", "shared"))

        self.do(submit)

    @rule(name=PODS, grace_s=st.sampled_from([None, 0, 5]))
    def delete_pod(self, name: str, grace_s: int | None) -> None:
        self.do(lambda it: it.submit(DeleteObject("Pod", "default", name, grace_s)))

    @rule(kind=KINDS, replicas=st.integers(0, 3), image=st.sampled_from(["a", "b"]), cpu=CPUS)
    def write_workload(self, kind: str, replicas: int, image: str, cpu: str) -> None:
        counts: dict[str, Any] = {"replicas": replicas}
        if kind == "Job":
            counts = {"completions": replicas, "parallelism": 2}
        elif kind == "DaemonSet":
            counts = {}
        annotations = {DURATION: "9s"} if kind == "Job" else {}
        name = kind.lower()

        def submit(it: Simulation) -> None:
            workload = make_workload(kind, name, image=image, cpu=cpu, annotations=annotations, **counts)
            stored = it.world.get(kind, "default", name)
            if stored is not None:
                workload["status"] = stored.manifest.get("status") or {}
            it.submit(WriteObject(workload))

        self.do(submit)

    @rule(kind=KINDS)
    def delete_workload(self, kind: str) -> None:
        self.do(lambda it: it.submit(DeleteObject(kind, "default", kind.lower())))

    @rule(kind=KINDS, least=st.sampled_from([1, "50%"]))
    def write_budget(self, kind: str, least: int | str) -> None:
        self.do(lambda it: it.submit(WriteObject(make_budget("budget", kind.lower(), minAvailable=least))))

    @rule(
        name=PODS,
        allow=st.booleans(),
        plugin=st.sampled_from([None, "ManualApproval", "GangPermit", "Absent"]),
    )
    def decide(self, name: str, allow: bool, plugin: str | None) -> None:
        self.do(lambda it: it.submit(PermitDecision("default", name, allow, plugin, "because")))

    @rule(number=st.integers(0, 3), grace_s=st.sampled_from([None, 0]))
    def delete_pod_under_way(self, number: int, grace_s: int | None) -> None:
        def submit(it: Simulation) -> None:
            under_way = [binding.pod for binding in it.scheduler.bindings.values()]
            under_way += [stored.typed for stored in it.world.all("Pod") if stored.typed.is_terminating]
            if under_way:
                pod = under_way[number % len(under_way)]
                it.submit(DeleteObject("Pod", pod.namespace, pod.name, grace_s))

        self.do(submit)

    @rule(number=st.integers(0, 3), allow=st.booleans())
    def decide_for_one_that_waits(self, number: int, allow: bool) -> None:
        def submit(it: Simulation) -> None:
            waiting = [item.pod for item in it.scheduler.waiting_pods.all()]
            if waiting:
                pod = waiting[number % len(waiting)]
                it.submit(PermitDecision(pod.namespace, pod.name, allow))

        self.do(submit)

    @rule(answer=ANSWERS)
    def answer_a_bind_call(self, answer: ExtenderAnswer) -> None:
        def run_to_the_next_and_answer(it: Simulation) -> None:
            it.run_until_idle(max_cycles=5)
            if calls := it.bind_calls():
                pod = calls[0].pod
                stored = it.world.get("Pod", pod.namespace, pod.name)
                is_bound = stored is not None and stored.typed.uid == pod.uid and stored.typed.node_name
                if answer != BOUND and is_bound:
                    # It posted the Binding and says that it did not: until the scheduler hears of the pod, the room
                    # is given to others, as upstream gives it.
                    self.denied.add(pod.uid)
                it.submit(BindCallAnswered(pod.uid, answer))

        self.do(run_to_the_next_and_answer)

    @rule(number=st.integers(0, 3))
    def post_a_binding(self, number: int) -> None:
        """What an extender does before or after it answers a bind call."""

        def run_to_the_next_and_post(it: Simulation) -> None:
            it.run_until_idle(max_cycles=5)
            called = [call.pod.uid for call in it.bind_calls()]
            nominated = [
                (pod, it.scheduler.cache.assumed[pod.uid].node_name)
                for pod in waiting_for_their_binding(it, called)
            ]
            if nominated:
                pod, node = nominated[number % len(nominated)]
                manifest = it.world.get("Pod", pod.namespace, pod.name).manifest
                it.submit(WriteObject({**manifest, "spec": {**manifest["spec"], "nodeName": node}}))

        self.do(run_to_the_next_and_post)

    @rule(release=ANY_RELEASE)
    def reconfigure(self, release: Release) -> None:
        self.do(lambda it: it.submit(SetConfiguration(self.config, release)))

    # ---- running

    @rule(n_steps=st.integers(1, 4))
    def step(self, n_steps: int) -> None:
        for _ in range(n_steps):
            self.do(lambda it: it.step())

    @rule(max_cycles=st.sampled_from([2, 5, 40]))
    def run(self, max_cycles: int) -> None:
        self.do(lambda it: it.run_until_idle(max_cycles=max_cycles))

    @rule(seconds=st.sampled_from([0, 1, 6, 31, 400]))
    def advance(self, seconds: int) -> None:
        self.do(lambda it: it.advance(seconds * SECOND_NS, max_cycles=40))

    @precondition(lambda self: self.calls)
    @rule()
    def crash_and_come_back(self) -> None:
        before = json.loads(json.dumps(self.simulation.checkpoint()))
        self.outcomes.extend(self.simulation.drain_outcomes())
        self.simulation = Simulation.restore(before, transport=moody)
        assert json.dumps(self.simulation.checkpoint(), sort_keys=True) == json.dumps(before, sort_keys=True)

    # ---- what always holds

    @invariant()
    def no_device_is_given_twice(self) -> None:
        given: set[tuple[str, str, str]] = set()
        for stored in self.simulation.world.all("ResourceClaim"):
            status = stored.manifest.get("status") or {}
            for result in (status.get("allocation") or {}).get("devices", {}).get("results", ()):
                device = result["driver"], result["pool"], result["device"]
                assert device not in given, device
                given.add(device)

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        simulation = self.simulation
        scheduler = simulation.scheduler
        seen = set()
        for stored in simulation.world.all("Pod"):
            pod: Pod = stored.typed
            if (pod.namespace, pod.name) in simulation._untold or pod.is_terminal:
                continue
            seen.add(pod.key)
            places = [
                scheduler.queue.get(pod.key) is not None,
                pod.uid in scheduler.bindings,
                bool(pod.node_name) and pod.uid not in scheduler.bindings,
                pod.key in simulation._strangers,
                pod in waiting_for_their_binding(simulation),
            ]
            assert sum(places) == 1, (pod.key, places)
            waits = scheduler.waiting_pods.get(pod.uid) is not None
            assert waits == (pod.uid in scheduler.bindings and scheduler.bindings[pod.uid].step == "Permit")
        untold = {f"{namespace}/{name}" for namespace, name in simulation._untold}
        for info in (*scheduler.queue.active_pods(), *scheduler.queue.unschedulable_pods()):
            assert info.key in seen | untold

    @invariant()
    def the_cache_holds_what_the_scheduler_knows(self) -> None:
        cache = self.simulation.scheduler.cache
        known = self.simulation.scheduler.pods.items()
        expected = {uid: pod.node_name for uid, pod in known if pod.node_name and not pod.is_terminal}
        expected |= {uid: assumed.node_name for uid, assumed in cache.assumed.items()}
        held = {uid: cache.node_name_of(uid) for uid in cache.pods.id_of}
        assert held == expected
        self.simulation.validate()

    @invariant()
    def no_node_holds_more_than_it_has(self) -> None:
        world = self.simulation.world
        used: dict[str, int] = {}
        for stored in world.all("Pod"):
            pod: Pod = stored.typed
            if pod.node_name and not pod.is_terminal and pod.uid not in self.denied:
                used[pod.node_name] = used.get(pod.node_name, 0) + pod.requests.get("cpu", 0)
        for name, cpu in used.items():
            node = world.node(name)
            assert node is None or cpu <= node.allocatable["cpu"], name

    @invariant()
    def no_timer_is_lost(self) -> None:
        simulation = self.simulation
        for timer in simulation.timers.all():
            assert timer.at_ns > simulation.now_ns or simulation.world.noticed
        for stored in simulation.world.all("Pod"):
            pod: Pod = stored.typed
            subject = (pod.namespace, pod.name, pod.uid)
            if not pod.node_name or not is_heard_of(simulation.world.node(pod.node_name)):
                continue
            if pod.is_terminating:
                assert simulation.timers.is_set(TERMINATED, *subject), pod.key
            elif pod.phase in ("", "Pending"):
                assert simulation.timers.is_set(STARTS, *subject), pod.key
            elif not pod.is_terminal and DURATION in (pod.manifest["metadata"].get("annotations") or {}):
                assert simulation.timers.is_set(FINISHES, *subject), pod.key

    def teardown(self) -> None:
        if hasattr(self, "ends"):
            self.ends.close()
        if not hasattr(self, "simulation"):
            return
        twin = self.new()
        outcomes: list[Any] = []
        for call in self.calls:
            call(twin)
            outcomes.extend(twin.drain_outcomes())
        assert state(twin) == state(self.simulation)
        assert outcomes == self.outcomes


class MachineAtZero(SimulationMachine):
    """Always by the way for many."""

    thresholds = Thresholds.all_at(0)


class MachineAtInfinity(SimulationMachine):
    """Always by the way for few."""

    thresholds = Thresholds.all_at(INFINITY)


def examples(number: int) -> settings:
    return settings(
        max_examples=number, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )


by_night = pytest.mark.nightly(
    "scheduler_core/thresholds.py",
    "scheduler_core/sim/",
    "scheduler_core/plugins/",
    "scheduler_core/framework/",
)
SimulationMachine.TestCase.settings = examples(40)
MachineAtZero.TestCase.settings = examples(75)
MachineAtInfinity.TestCase.settings = examples(100)
TestWhateverHappens = SimulationMachine.TestCase
TestWhateverHappensAtZero = by_night(MachineAtZero.TestCase)
TestWhateverHappensAtInfinity = by_night(MachineAtInfinity.TestCase)
