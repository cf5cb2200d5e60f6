"""The workloads of the experiment: nodes and pods as the openb CSV files list them, and the orders they come in."""

import csv
import gzip
import random
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

NODES_FILE = "openb_node_list_gpu_node.csv"


class TraceNode(NamedTuple):
    name: str
    cpu_milli: int
    memory_mib: int
    n_gpus: int
    model: str


class TracePod(NamedTuple):
    name: str
    cpu_milli: int
    memory_mib: int
    n_gpus: int
    gpu_milli: int
    """Of each GPU; 0 where there is none."""
    models: str
    """Those it may run on, joined by `|`; empty for any."""

    @property
    def total_milli(self):
        return self.n_gpus * self.gpu_milli

    @property
    def kind(self):
        """As `fragmentation.typical_pods` counts."""
        return self.cpu_milli, self.gpu_milli, self.n_gpus, self.models


@dataclass(frozen=True)
class Arrivals:
    """One order of arrival.

    Attributes
    ----------
    pods : sequence of int
        Places in the trace's pods by name.
    node_ranks : sequence of int
        For the nodes by name: the number a node's name is prefixed with, which decides among equals.
    """

    pods: tuple[int, ...]
    node_ranks: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """Nodes and pods by name, and orders of arrival by seed."""

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]
    arrivals: dict[int, Arrivals]


def trace_names(folder):
    """The traces a folder of CSV files holds."""
    return sorted(
        path.stem.removeprefix("openb_pod_list_") for path in Path(folder).glob("openb_pod_list_*.csv")
    )


def read_trace(folder, name, *, seeds=None):
    """A trace as its files say.

    Parameters
    ----------
    folder : path
        Holds `openb_node_list_gpu_node.csv`, `openb_pod_list_NAME.csv` and `arrivals_NAME.csv.gz`.
    seeds : container of int, optional
        Only these orders of arrival.

    Raises
    ------
    OSError
    ValueError
        Names file, line and value.
    """
    folder = Path(folder)
    nodes = [
        TraceNode(
            row["sn"], row.number("cpu_milli"), row.number("memory_mib"), row.number("gpu"), row["model"]
        )
        for row in _rows(folder / NODES_FILE)
    ]
    pods = []
    for row in _rows(folder / f"openb_pod_list_{name}.csv"):
        n_gpus = row.number("num_gpu")
        milli, models = (row.number("gpu_milli"), row.get("gpu_spec") or "") if n_gpus else (0, "")
        pods.append(
            TracePod(row["name"], row.number("cpu_milli"), row.number("memory_mib"), n_gpus, milli, models)
        )
    nodes.sort()
    pods.sort()
    found = _read_arrivals(folder / f"arrivals_{name}.csv.gz", len(pods), len(nodes), seeds)
    return Trace(name, tuple(nodes), tuple(pods), found)


def _read_arrivals(path, n_pods, n_nodes, seeds):
    halves = {}
    with gzip.open(path, "rt", newline="") as text:
        csv.field_size_limit(10**7)
        for row in csv.DictReader(text):
            seed = int(row["seed"])
            if seeds is not None and seed not in seeds:
                continue
            what, numbers = row["what"], tuple(map(int, row["indices"].split()))
            bound = n_pods if what == "pods" else n_nodes
            wrong = next((number for number in numbers if not 0 <= number < bound), None)
            if wrong is not None:
                raise ValueError(f"{path.name}: seed {seed}: {what}: {wrong} is not below {bound}")
            halves.setdefault(seed, {})[what] = numbers
    return {seed: Arrivals(one["pods"], one["nodes"]) for seed, one in halves.items()}


class _Row(dict):
    """A line of a CSV file that can say where it stands."""

    def number(self, column):
        text = self.get(column) or ""
        if not text.isdecimal():
            raise ValueError(f'{self.place}: {column}: "{text}" is not a whole number')
        return int(text)


def _rows(path):
    with path.open(newline="") as lines:
        reader = csv.DictReader(lines)
        for row in reader:
            found = _Row(row)
            found.place = f"{path.name}:{reader.line_num}"
            yield found


def synthetic_trace(seed=1, *, n_nodes=200, load=1.3):
    """A small trace drawn from a seed, made up like the real one; needs no files."""
    draw = random.Random(seed)
    shapes = [(96_000, 786_432, 8, "G2"), (64_000, 262_144, 2, "P100"), (96_000, 262_144, 2, "T4"),
              (32_000, 131_072, 1, "V100M16"), (96_000, 393_216, 4, "V100M32")]  # fmt: skip
    nodes = [
        TraceNode(f"node-{index:04d}", *draw.choices(shapes, (45, 12, 33, 5, 5))[0])
        for index in range(n_nodes)
    ]
    kinds = [(3_152, 1, 810, ""), (11_300, 1, 1000, ""), (11_400, 1, 1000, ""), (4_000, 1, 460, ""),
             (8_000, 1, 300, ""), (12_500, 0, 0, ""), (6_000, 1, 500, "T4|P100"), (16_000, 2, 1000, ""),
             (32_000, 4, 1000, ""), (64_000, 8, 1000, ""), (4_000, 1, 150, "G2")]  # fmt: skip
    weights = (20, 18, 12, 12, 8, 8, 8, 4, 3, 4, 3)
    target = load * 1000 * sum(node.n_gpus for node in nodes)
    pods, asked = [], 0
    while asked < target:
        cpu, n_gpus, milli, models = draw.choices(kinds, weights)[0]
        pods.append(TracePod(f"pod-{len(pods):05d}", cpu, 8_192, n_gpus, milli, models))
        asked += n_gpus * milli
    pods.sort()
    orders = {}
    for order in range(10):
        places, ranks = list(range(len(pods))), list(range(len(nodes)))
        draw.shuffle(places)
        draw.shuffle(ranks)
        orders[order] = Arrivals(tuple(places), tuple(ranks))
    nodes.sort()
    return Trace(f"synthetic-{seed}", tuple(nodes), tuple(pods), orders)
