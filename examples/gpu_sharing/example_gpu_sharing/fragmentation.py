"""How much of a node's idle GPUs the typical pods of a workload cannot use: the measure FGD descends."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from example_gpu_sharing.request import GpuRequest

_MOST_KEPT = 1_000_000

# Why a typical pod cannot use a node, in the order the authors add up: their sums are met to the last bit, since a
# gain of exactly 0 scores 50 and one of -1e-13 scores 49.
_BOTH, _GPU, _CPU, _NO_GPU_FITS, _NO_GPU_DOES_NOT, _NO_ACCESS = range(6)


@dataclass(frozen=True)
class TypicalPod:
    """A kind of pod, and how many of it there are beside the others."""

    cpu_milli: int
    request: GpuRequest | None
    weight: int


def typical_pods(kinds, percent=95):
    """The most frequent kinds of pods that make up `percent` of a workload.

    Parameters
    ----------
    kinds : iterable of (cpu milli, gpu milli, devices, models joined by "|")
        One for each pod.
    """
    counts = Counter(kinds)
    n_pods, taken, n_taken = sum(counts.values()), [], 0
    for kind in sorted(counts, key=lambda kind: (counts[kind], *kind), reverse=True):
        if n_taken * 100 >= percent * n_pods:
            break
        taken.append(kind)
        n_taken += counts[kind]
    return [TypicalPod(kind[0], _request(*kind[1:]), counts[kind]) for kind in taken]


def _request(milli, count, models):
    return GpuRequest(count, milli, tuple(filter(None, models.split("|")))) if count else None


class Fragmentation:
    """The expected milli that a pod drawn from the typical ones leaves idle on a node, because it cannot use them.

    Parameters
    ----------
    typical : sequence of TypicalPod
    n_pods : int, optional
        Pods of the workload, typical or not; the typical ones alone where nothing is said. Of what is typical it
        changes the last bit of a share, as the authors divide: by all pods, then by the part that is typical.
    """

    def __init__(self, typical, n_pods=0):
        self.typical = list(typical)
        weights = [one.weight for one in self.typical]
        n_typical = sum(weights)
        n_pods = n_pods or n_typical
        self.share = np.array([weight / n_pods / (n_typical / n_pods) for weight in weights], np.float64)
        self.cpu_levels = np.unique([one.cpu_milli for one in self.typical] or [0])
        cpus = np.array([one.cpu_milli for one in self.typical], np.int64)
        self.level = np.searchsorted(self.cpu_levels, cpus)
        requests = [one.request or GpuRequest(0, 1) for one in self.typical]
        self.has_gpu = np.array([one.request is not None for one in self.typical], np.bool_)
        self.count = np.array([one.count for one in requests], np.int64)
        self.milli, self.milli_of = np.unique([one.milli for one in requests] or [1], return_inverse=True)
        self._access = {}
        self._kept = {}

    def of(self, cpu, free, models, names):
        """Milli, for nodes with so much cpu, devices and model: shapes (n,), (n, devices), (n,) and the result's (n,).

        `models` are places in `names`, -1 for none; all calls have the same names. Amounts are kept by what tells
        nodes apart: how many typical pods have cpu enough, the devices in any order, and the model.
        """
        n_nodes, n_devices = free.shape
        told = np.empty((n_nodes, n_devices + 2), np.int16)
        np.maximum(free, 0, out=told[:, :n_devices], casting="unsafe")
        told[:, :n_devices].sort(axis=1)
        told[:, n_devices] = self.cpu_levels.searchsorted(cpu, side="right")
        told[:, n_devices + 1] = models
        keys = told.view(f"S{2 * (n_devices + 2)}").ravel().tolist()
        found = list(map(self._kept.get, keys))
        if None in found:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            missing = {key: place for place, key in enumerate(keys) if key not in self._kept}
            asked = told[list(missing.values())]
            amounts = self._amounts(asked[:, :n_devices].astype(np.int64), *asked[:, n_devices:].T, names)
            self._kept.update(zip(missing, amounts.tolist(), strict=True))
            found = [self._kept[key] for key in keys]
        return np.array(found, np.float64)

    def _amounts(self, free, cpu_level, models, names):
        """`of` without what is kept; `cpu_level` is how many levels of cpu are there."""
        idle = free.sum(axis=1)
        room = free[:, :, None] >= self.milli
        n_room = room.sum(axis=1)
        small = idle[:, None] - (room * free[:, :, None]).sum(axis=1)
        # From here on the first axis is typical pods, the last one nodes: sums go in the order of typical pods.
        lacks_gpu = self.count[:, None] > n_room[:, self.milli_of].T
        lacks_cpu = self.level[:, None] >= cpu_level
        has_gpu = self.has_gpu[:, None]
        access = np.stack([self._accesses(model, names) for model in models.tolist()], axis=1)
        why = np.select(
            [~has_gpu & ~lacks_cpu, ~has_gpu, ~access, lacks_gpu & lacks_cpu, lacks_cpu],
            [_NO_GPU_FITS, _NO_GPU_DOES_NOT, _NO_ACCESS, _BOTH, _CPU],
            _GPU,
        )
        fits = has_gpu & access & ~lacks_gpu & ~lacks_cpu
        part = np.where(fits, small[:, self.milli_of].T, idle)
        weighted = self.share[:, None] * part
        by_reason = ((why[:, None, :] == np.arange(6)[:, None]) * weighted[:, None, :]).sum(axis=0)
        total = by_reason[0]
        for reason in range(1, 6):
            total = total + by_reason[reason]
        return total

    def _accesses(self, model, names):
        """Which typical pods take a node of that model."""
        known = self._access.get(model)
        if known is None:
            name = names[model] if model >= 0 else ""
            asked = [one.request.models if one.request else () for one in self.typical]
            known = self._access[model] = np.array(
                [not wanted or name in wanted for wanted in asked], np.bool_
            )
        return known
