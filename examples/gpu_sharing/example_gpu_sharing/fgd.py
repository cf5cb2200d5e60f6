"""FGD: the node, and the device, where the pod adds least to the fragmentation that the workload's pods would meet."""

from dataclasses import dataclass

import numpy as np

from example_gpu_sharing.devices import CHOOSE, DEVICES, best_fit, free_cpu
from example_gpu_sharing.fragmentation import Fragmentation, TypicalPod
from example_gpu_sharing.request import MODEL, WHOLE, GpuRequest, request_of
from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.interface import (
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ScorePlugin,
)


@dataclass(frozen=True)
class TypicalPodArgs:
    """One typical pod as a configuration writes it: how many of `weight` there are beside the others'."""

    cpu_milli: int = 0
    gpu_count: int = 0
    gpu_milli: int = WHOLE
    gpu_models: tuple[str, ...] = ()
    weight: int = 1


@dataclass(frozen=True)
class FgdArgs(PluginArgs):
    """What is known of the workload, in descending order of weight."""

    typical_pods: tuple[TypicalPodArgs, ...] = ()
    n_pods: int = 0
    """All pods of the workload, typical or not; 0 where the typical ones are all that is known."""

    def problems(self, path):
        if self.n_pods and self.n_pods < sum(one.weight for one in self.typical_pods):
            yield invalid(
                f"{path}.nPods", self.n_pods, "must not be less than the weights of typicalPods together"
            )
        for index, one in enumerate(self.typical_pods):
            where = f"{path}.typicalPods[{index}]"
            if one.cpu_milli < 0:
                yield invalid(f"{where}.cpuMilli", one.cpu_milli, "must not be negative")
            if not 0 <= one.gpu_count <= 64:
                yield invalid(f"{where}.gpuCount", one.gpu_count, "not in valid range [0, 64]")
            if not 1 <= one.gpu_milli <= WHOLE:
                yield invalid(f"{where}.gpuMilli", one.gpu_milli, "not in valid range [1, 1000]")
            if one.weight < 1:
                yield invalid(f"{where}.weight", one.weight, "must be at least 1")


class FGD(PreFilterPlugin[None], ScorePlugin[None]):
    """Scores how much a pod would bring fragmentation down: floor(100 sigmoid(milli / 1000)), 50 for no change."""

    name = "FGD"
    Args = FgdArgs
    score_reads = Reads.USAGE

    def __init__(self, args, handle):
        super().__init__(args, handle)
        typical = [
            TypicalPod(
                one.cpu_milli,
                GpuRequest(one.gpu_count, one.gpu_milli, one.gpu_models) if one.gpu_count else None,
                one.weight,
            )
            for one in args.typical_pods
        ]
        self.fragmentation = Fragmentation(typical, args.n_pods)

    def sign(self, pod):
        return pod.requests.get("cpu", 0), request_of(pod)

    def pre_filter(self, pod, snapshot):
        self.handle.cycle_state.write(CHOOSE, self.choose)
        return PreFilterResult()

    def score(self, state, pod, nodes, rows):
        free = self.handle.cycle_state.read(DEVICES).free[rows]
        models = nodes.label_column(MODEL)[rows], nodes.vocabulary.label_values[MODEL]
        cpu, asked = free_cpu(nodes, rows), pod.requests.get("cpu", 0)
        # Nodes without room are asked about too; what is said of them does not count.
        return np.maximum(self.points(asked, request_of(pod), cpu, free, models).max(axis=1), 0)

    def choose(self, pod, request, row):
        """For a share the first device of the highest score; whole devices by their numbers."""
        nodes, free = self.handle.snapshot.nodes, self.handle.cycle_state.read(DEVICES).free[row]
        if not request.is_share:
            return best_fit(free.tolist(), request)
        # The pod is assumed to be there already: its cpu is given back to ask about the node without it.
        rows, asked = np.array([row]), pod.requests.get("cpu", 0)
        models = nodes.label_column(MODEL)[rows], nodes.vocabulary.label_values[MODEL]
        scores = self.points(asked, request, free_cpu(nodes, rows) + asked, free[None, :], models)[0]
        return (int(scores.argmax()),) if scores.max() >= 0 else None

    def points(self, cpu, request, free_cpu, free, models):
        """Scores of each way to place the pod on each row, -1 for no room: by device for a share, else one way."""
        ways = _ways(cpu, request, free_cpu, free)
        row, device = ways.nonzero()
        after = free[row]
        if request is not None:
            is_share = request.is_share
            taken = np.arange(free.shape[1]) == device[:, None] if is_share else _first(after, request)
            after = after - request.milli * taken
        # Devices of one row are asked about side by side; the row as it is, once.
        has_way = ways.any(axis=1)
        rows, place = has_way.nonzero()[0], (has_way.cumsum() - 1)[row]
        now = self.fragmentation.of(free_cpu[rows], free[rows], models[0][rows], models[1])[place]
        then = self.fragmentation.of(free_cpu[row] - cpu, after, models[0][row], models[1])
        scores = np.full(ways.shape, -1, np.int64)
        scores[ways] = np.floor(100 * (1 / (1 + np.exp((then - now) / WHOLE))))
        return scores


def _ways(cpu, request, free_cpu, free):
    """Where there is room: a mask by row and device for a share, by row and one column for other pods."""
    has_cpu = free_cpu >= cpu
    if request is None:
        return has_cpu[:, None]
    fits = free >= request.milli
    if request.is_share:
        return fits & has_cpu[:, None]
    return (has_cpu & (fits.sum(axis=1) >= request.count))[:, None]


def _first(free, request):
    """A mask of the first devices with room."""
    fits = free >= request.milli
    return fits & (fits.cumsum(axis=1) <= request.count)
