"""Five of the paper's policies: each scores nodes from 0 to 100, cut to integers as the authors do.

`c` and `G` below are a node's free cpu and GPU milli before the pod, `r` and `R` what the pod asks for.
"""

from dataclasses import dataclass

import numpy as np

from example_gpu_sharing.devices import CHOOSE, DEVICES, free_cpu, idle, tag_of
from example_gpu_sharing.request import WHOLE, request_of
from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.interface import (
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ScorePlugin,
)


@dataclass(frozen=True)
class SizeArgs(PluginArgs):
    """The largest node there is, which what is free is held against."""

    max_cpu_milli: int = 128_000
    max_gpu_milli: int = 8_000

    def problems(self, path):
        for name, value in (("maxCpuMilli", self.max_cpu_milli), ("maxGpuMilli", self.max_gpu_milli)):
            if value < 1:
                yield invalid(f"{path}.{name}", value, "must be at least 1")


class GpuPolicy(ScorePlugin[None]):
    """What the policies share: a score that holds until the row's pods change, by cpu and GPUs asked for."""

    Args = SizeArgs
    score_reads = Reads.USAGE

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.max_cpu, self.max_gpu = args.max_cpu_milli, args.max_gpu_milli

    def sign(self, pod):
        return pod.requests.get("cpu", 0), request_of(pod)

    def score(self, state, pod, nodes, rows):
        devices = self.handle.cycle_state.read(DEVICES)
        free = devices.free[rows]
        asked = pod.requests.get("cpu", 0), request_of(pod)
        scores = self.points(*asked, free_cpu(nodes, rows), free, devices.tags[rows])
        return np.clip(scores, 0, 100).astype(np.int64)

    def points(self, cpu, request, free_cpu, free, tags):
        """Scores of rows; `free` as `Devices.free`, `request` None for a pod without GPUs."""
        raise NotImplementedError


class Random(PreFilterPlugin[None], ScorePlugin[None]):
    """A node drawn uniformly from the feasible ones, and a device of those with room."""

    name = "Random"

    def pre_filter(self, pod, snapshot):
        self.handle.cycle_state.write(CHOOSE, self.choose)
        return PreFilterResult()

    def score(self, state, pod, nodes, rows):
        scores = np.zeros(len(rows), np.int64)
        if len(rows):
            # By place in evaluation order: where a row lies in the table is no matter of the cluster's.
            drawn = self.random.below(len(rows))
            scores[self.handle.snapshot.rank[rows].argsort()[drawn]] = 100
        return scores

    def choose(self, pod, request, row):
        free = self.handle.cycle_state.read(DEVICES).free[row].tolist()
        fits = [device for device, milli in enumerate(free) if milli >= request.milli]
        if len(fits) < request.count:
            return None
        if not request.is_share:
            return fits[: request.count]
        return (fits[self.random.below(len(fits))],)


class DotProd(GpuPolicy):
    """The node whose free room points the least the way of what is asked."""

    name = "DotProd"

    def points(self, cpu, request, free_cpu, free, tags):
        gpu = request.total if request else 0
        along = free_cpu / self.max_cpu * (cpu / self.max_cpu) + idle(free) / self.max_gpu * (
            gpu / self.max_gpu
        )
        return np.trunc(100 * (1 - along / 2))


class GpuClustering(GpuPolicy):
    """Nodes that hold pods of the same kind first, then fuller ones."""

    name = "GpuClustering"

    def points(self, cpu, request, free_cpu, free, tags):
        if request is None:
            return np.zeros(len(free))
        tag = tag_of(request)
        hosts = np.select([tags == tag, (tags & tag) != 0, tags == 0], [75, 50, 25], 0)
        return hosts + 25 * (self.max_gpu - idle(free)) // self.max_gpu


class GpuPacking(GpuPolicy):
    """Devices in use first, then nodes in use, then empty nodes."""

    name = "GpuPacking"

    def points(self, cpu, request, free_cpu, free, tags):
        if request is None:
            return np.zeros(len(free))
        n_whole, n_devices = (free == WHOLE).sum(axis=1), (free >= 0).sum(axis=1)
        # Devices with room, the fullest first, as many as are asked for.
        fullest = np.sort(np.where(free >= request.milli, free, WHOLE + 1), axis=1)[:, : request.count]
        n_opened = (fullest == WHOLE).sum(axis=1)
        room = (fullest * 100 // WHOLE).sum(axis=1) // 10
        in_use = np.where(n_opened > 0, np.maximum(50 - n_opened, 33), np.maximum(100 - room, 50))
        return np.where(n_whole == n_devices, np.maximum(33 - n_whole, n_whole), in_use)


class BestFit(GpuPolicy):
    """The node that is left with the least."""

    name = "BestFit"
    normalizes = True

    def points(self, cpu, request, free_cpu, free, tags):
        gpu = request.total if request else 0
        left = 0.5 * (free_cpu - cpu) / self.max_cpu
        return np.trunc(100 * (1 - left - 0.5 * (idle(free) - gpu) / self.max_gpu))

    def normalize(self, state, pod, nodes, rows, scores):
        lowest, highest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
        if lowest == highest:
            return np.zeros_like(scores)
        return (scores - lowest) * 100 // (highest - lowest)
