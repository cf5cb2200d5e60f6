"""`bench`: measure how many pods a second are scheduled, every node filtered and scored.

Times are processor times of one process with one thread, so that what else the machine does matters little; the
cluster is built before the clock starts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
from typing import Any

import numpy as np

from scheduler_core.cli.bench_workloads import ALGORITHM, PERF, BenchWorkload
from scheduler_core.cli.bench_workloads import workload as bench_workload
from scheduler_core.cli.reports import Unusable
from scheduler_core.clock import SECOND_NS, Clock, measure_cpu_ns
from scheduler_core.events import ObjectChanged
from scheduler_core.objects.defaults import StoredPriorities, prepare
from scheduler_core.objects.kinds import parse
from scheduler_core.plugins import load_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.scheduler import Scheduler, SchedulerOptions
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation

CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 100,
}
START_NS = 1_767_225_600 * SECOND_NS
WARM_UP = 20

AS_WRITTEN = StoredPriorities()
"""The workloads give pods priorities without classes."""


def run(options: argparse.Namespace) -> int:
    """Run the command; 2 when no workload has that name."""
    names = [*ALGORITHM, *PERF] if options.name == "all" else [options.name]
    for name in names:
        try:
            workload = bench_workload(name, options.nodes, options.pods + WARM_UP * (name != "preemption"))
        except KeyError:
            raise Unusable(f'bench: "{name}" is not a workload; --help names them') from None
        figures = measure_whole(workload) if workload.whole else measure_scheduler(workload)
        _print({"workload": name, "nodes": workload.n_nodes, **figures}, workload, as_json=options.json)
    return 0


def measure_scheduler(workload: BenchWorkload) -> dict[str, Any]:
    """Time pop, cycle, assume and summary trace of each pod, without an API server around."""
    clock = Clock(START_NS)
    options = SchedulerOptions(full_traces=False)
    scheduler = Scheduler(load_configuration(CONFIGURATION), clock, Randomness(1), options=options)
    for manifest in (*workload.nodes, *workload.prepared, *workload.measured):
        kind, _, _, typed = parse(prepare(manifest, AS_WRITTEN))
        scheduler.handle(ObjectChanged(kind, None, typed))
    times_ns: list[int] = []
    gc.collect()
    gc.freeze()
    while scheduler.can_schedule():
        started_ns = measure_cpu_ns()
        scheduler.schedule_one()
        times_ns.append(measure_cpu_ns() - started_ns)
        clock.move_to(clock.now_ns + 1_000_000)
    return _figures(times_ns[WARM_UP:], [trace.outcome for trace in scheduler.traces[WARM_UP:]])


def measure_whole(workload: BenchWorkload) -> dict[str, Any]:
    """Time the whole simulated cluster: queue, cycle, bind, events, kubelets."""
    simulation = Simulation(
        CONFIGURATION, seed=1, start_ns=START_NS, options=SimulationOptions(full_traces=False)
    )
    for manifest in (*workload.others, *workload.nodes, *workload.prepared):
        simulation.submit(WriteObject(prepare(manifest, AS_WRITTEN)))
    simulation.run_until_idle(max_cycles=1_000_000)
    measured = [prepare(manifest, AS_WRITTEN) for manifest in workload.measured]
    simulation.drain_outcomes()
    simulation.drain_cycles()
    gc.collect()
    gc.freeze()
    times_ns: list[int] = []
    outcomes: list[str] = []
    started_ns = measure_cpu_ns()
    for manifest in measured:
        simulation.submit(WriteObject(manifest))
    submitted_ns = measure_cpu_ns() - started_ns
    while True:
        step_ns = measure_cpu_ns()
        report = simulation.step()
        if report.stop == "idle":
            break
        times_ns.append(measure_cpu_ns() - step_ns)
        if len(times_ns) % 1000 == 0:
            outcomes.extend(trace.outcome for trace in simulation.drain_cycles())
            simulation.drain_outcomes()
            simulation.drain_moves()
    outcomes.extend(trace.outcome for trace in simulation.drain_cycles())
    figures = _figures(times_ns, outcomes)
    n_bound = figures["bound"]
    figures["pods_per_second"] = round(n_bound / ((sum(times_ns) + submitted_ns) / SECOND_NS), 1)
    return figures


def _figures(times_ns: list[int], outcomes: list[str]) -> dict[str, Any]:
    times_ms = np.array(times_ns, np.float64) / 1e6
    total_s = float(times_ms.sum()) / 1e3
    return {
        "cycles": len(times_ns),
        "bound": outcomes.count("bound"),
        "preempting": outcomes.count("preempting"),
        "pods_per_second": round(len(times_ns) / total_s, 1) if total_s else 0.0,
        "ms_p50": round(float(np.percentile(times_ms, 50)), 3) if len(times_ms) else 0.0,
        "ms_p99": round(float(np.percentile(times_ms, 99)), 3) if len(times_ms) else 0.0,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "cores": os.cpu_count(),
    }


def _print(figures: dict[str, Any], workload: BenchWorkload, *, as_json: bool) -> None:
    if workload.pass_mark is not None:
        figures["pass_mark"] = workload.pass_mark
        figures["times_pass_mark"] = round(figures["pods_per_second"] / workload.pass_mark, 2)
    if as_json:
        print(json.dumps(figures), flush=True)
        return
    mark = f", {figures['times_pass_mark']}x the mark of {workload.pass_mark:g}" if workload.pass_mark else ""
    print(
        f"{figures['workload']} ({figures['nodes']} nodes): {figures['pods_per_second']} pods/s{mark}; "
        f"{figures['cycles']} cycles, {figures['bound']} bound, {figures['preempting']} preempting; "
        f"p50 {figures['ms_p50']} ms, p99 {figures['ms_p99']} ms; peak {figures['peak_memory_mb']} MB",
        flush=True,
    )
