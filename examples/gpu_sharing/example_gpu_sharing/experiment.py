"""One run of the paper's experiment through the scheduler: pods arrive one by one and never leave."""

import time
from dataclasses import dataclass

import numpy as np

from example_gpu_sharing import POLICIES, GpuDevices
from example_gpu_sharing.devices import free_cpu
from example_gpu_sharing.fragmentation import Fragmentation, typical_pods
from example_gpu_sharing.request import COUNT, MILLI, MODEL, WHOLE
from scheduler_core.objects.defaults import prepare
from scheduler_core.plugins import REGISTRY
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation

FIRST, DRAWN = "first", "drawn"
"""How equals are told apart: by name, as the authors' changed kube-scheduler does, or by a draw, as kube-scheduler."""
N_PODS_OF_A_NODE = 1_001
LOADS = range(131)


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Attributes
    ----------
    arrived_pct, alloc_pct, frag_milli, frag_ratio_pct : ndarray of shape (n_arrivals,), float64
        After each arrival: GPUs asked for so far and GPUs allocated, percent of all; fragmentation in milli and in
        percent of what is idle.
    placements : list of (node name, tuple of device numbers), or None for a pod that found no node
    total_milli : int
        All GPUs.
    cpu_s : float
        Processor time.
    """

    arrived_pct: np.ndarray
    alloc_pct: np.ndarray
    frag_milli: np.ndarray
    frag_ratio_pct: np.ndarray
    placements: list
    total_milli: int
    cpu_s: float

    def curves(self):
        """(allocation, fragmentation amount, fragmentation ratio), percent, each of 131 values: at load 0 to 130.

        The value at a load is the mean over the arrivals whose arrived percent rounds to it; with none, over those
        one beside it too.
        """
        at = np.rint(self.arrived_pct).astype(np.int64)
        columns = (self.alloc_pct, self.frag_milli, self.frag_ratio_pct)
        found = np.full((3, len(LOADS)), np.nan)
        for load in LOADS:
            here = at == load
            if not here.any():
                here = abs(at - load) <= 1
            if here.any():
                found[:, load] = [column[here].mean() for column in columns]
        return found[0].round(2), (found[1] * 100 / self.total_milli).round(2), found[2]


def configuration(policy, typical=(), n_pods=0):
    """The authors' set-up: kube's fit by cpu, memory and pods, the devices, and one policy that scores."""
    args = (
        {"typicalPods": [_typical_args(one) for one in typical], "nPods": n_pods} if policy == "FGD" else {}
    )
    names = ("PrioritySort", "NodeResourcesFit", "DefaultBinder", "GpuDevices", policy)
    everything = {"name": "*"}
    plugins = {
        "multiPoint": {"enabled": [{"name": name} for name in names], "disabled": [everything]},
        "score": {"enabled": [{"name": policy, "weight": 1000}], "disabled": [everything]},
    }
    profile = {"plugins": plugins, "pluginConfig": [{"name": policy, "args": args}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def _typical_args(one):
    args = {"cpuMilli": one.cpu_milli, "weight": one.weight}
    if one.request is not None:
        count, milli, models = one.request
        args |= {"gpuCount": count, "gpuMilli": milli, "gpuModels": list(models)}
    return args


def run(trace, policy, seed, *, ties=FIRST, limit=None):
    """Run one experiment: `Outcome`.

    Parameters
    ----------
    trace : Trace
    policy : str
    seed : int
        One of the trace's orders of arrival; draws come from it too.
    ties : str
        `FIRST` or `DRAWN`.
    limit : int, optional
        Only so many arrivals.
    """
    began = time.process_time()
    order = trace.arrivals[seed]
    typical = typical_pods(pod.kind for pod in trace.pods)
    options = SimulationOptions(full_traces=False, first_of_ties=ties == FIRST, controllers=False)
    described = configuration(policy, typical, len(trace.pods))
    simulation = Simulation(described, seed=seed, options=options, plugins=_registry())
    for node, rank in zip(trace.nodes, order.node_ranks, strict=True):
        simulation.submit(WriteObject(prepare(_node(node, rank))))
    fragmentation = Fragmentation(typical, len(trace.pods))
    watch = Watch(simulation, fragmentation, sum(node.n_gpus for node in trace.nodes) * WHOLE)
    templates = {}
    for number, place in enumerate(order.pods[:limit]):
        pod = trace.pods[place]
        template = templates.get(pod[1:])
        if template is None:
            template = templates[pod[1:]] = prepare(_pod(pod))
        # A pod may come again as a copy: its name says which arrival it is.
        name = f"{pod.name}-{number}"
        simulation.submit(
            WriteObject({**template, "metadata": {**template["metadata"], "name": name, "uid": name}})
        )
        simulation.step()
        watch.arrived(pod, name)
    return watch.outcome(time.process_time() - began)


class Watch:
    """Looks at the cluster after each arrival: where the pod went, and what is fragmented now."""

    def __init__(self, simulation, fragmentation, total_milli):
        self.simulation = simulation
        self.fragmentation = fragmentation
        self.total_milli = total_milli
        framework = simulation.scheduler.profiles["default-scheduler"]
        self.devices = framework.plugins["GpuDevices"].devices
        self.asked = self.used = 0
        self.of_row = np.zeros(0)
        self.records = []
        self.placements = []

    def arrived(self, pod, name):
        """Note what became of a pod, and take it off where it found no node."""
        simulation = self.simulation
        self.asked += pod.total_milli
        placed = simulation.world.pod("default", name)
        if placed.node_name:
            self.used += pod.total_milli
            self.placements.append((placed.node_name, self.devices.given.get(placed.uid, ())))
        else:
            self.placements.append(None)
            simulation.submit(DeleteObject("Pod", "default", name, 0))
        self._look()
        idle_milli, amount = self.total_milli - self.used, float(self.of_row.sum())
        ratio = 100 * amount / idle_milli if idle_milli else 0.0
        percents = 100 * self.asked / self.total_milli, round(100 * self.used / self.total_milli, 2)
        self.records.append((*percents, round(amount, 2), round(ratio, 2)))
        if len(self.records) % 500 == 0:
            simulation.drain_cycles()
            simulation.drain_moves()
            simulation.drain_outcomes()

    def _look(self):
        """Bring the fragmentation of rows up to date."""
        snapshot = self.simulation.scheduler.cache.snapshot()
        changed = self.devices.refresh(snapshot)
        if len(self.of_row) != snapshot.nodes.capacity:
            changed = snapshot.rows
        if len(changed):
            nodes, rows = snapshot.nodes, np.array(changed, np.int64)
            if len(self.of_row) != nodes.capacity:
                self.of_row = np.zeros(nodes.capacity)
            models = nodes.label_column(MODEL)[rows], nodes.vocabulary.label_values[MODEL]
            self.of_row[rows] = self.fragmentation.of(free_cpu(nodes, rows), self.devices.free[rows], *models)

    def outcome(self, cpu_s):
        columns = np.array(self.records, np.float64).reshape(-1, 4).T
        return Outcome(*columns, self.placements, self.total_milli, cpu_s)


def _registry():
    """The tree and this package, whether it is installed or not."""
    return REGISTRY.plus((GpuDevices, *POLICIES))


def _node(node, rank):
    name = f"{rank:04d}-{node.name}"
    allocatable = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(N_PODS_OF_A_NODE),
    }
    if node.n_gpus:
        allocatable[COUNT] = str(node.n_gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, MODEL: node.model}},
        "status": {"allocatable": allocatable},
    }


def _pod(pod):
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    annotations = {}
    if pod.n_gpus:
        annotations = {COUNT: str(pod.n_gpus), MILLI: str(pod.gpu_milli)}
        if pod.models:
            annotations[MODEL] = pod.models
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "template", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
    }
