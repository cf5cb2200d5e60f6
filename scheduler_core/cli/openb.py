"""`openb`: turn the CSV files of the openb production trace into manifests.

The data set is Alibaba's cluster-trace-gpu-v2023: 1,523 nodes and 8,152 tasks. GPUs become the extended resource
`nvidia.com/gpu` (a task with a share of a GPU asks for a whole one), a node's GPU model the label `gpu-model`, and
a task's `gpu_spec` a required node affinity over that label. Creation and deletion times become annotations.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

NODES_FILE = "openb_node_list_all_node.csv"
PODS_FILE = "openb_pod_list_gpuspec33.csv"
GPU = "nvidia.com/gpu"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="folder that holds the CSV files")
    parser.add_argument("--pods", type=int, help="only so many pods, in order")
    parser.add_argument("--pod-file", default=PODS_FILE, help=f"which pod list (default {PODS_FILE})")
    parser.add_argument("--json", action="store_true", help="one List as JSON instead of YAML documents")
    parser.add_argument("-o", "--output", help="file to write; standard output without it")


def run(options: argparse.Namespace) -> int:
    """Run the command; 2 when a file is missing or is not what it should be."""
    directory = Path(options.directory)
    try:
        items = [
            *node_manifests(directory / NODES_FILE),
            *pod_manifests(directory / options.pod_file, options.pods),
        ]
    except OSError as error:
        print(f"openb: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (KeyError, ValueError) as error:
        print(f"openb: {error}", file=sys.stderr)
        return 2
    if options.json:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        text = yaml.dump_all(items, Dumper=yaml.CSafeDumper, sort_keys=False)
    if options.output:
        Path(options.output).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


def node_manifests(path: Path) -> Iterator[dict[str, Any]]:
    """A Node for each line."""
    for line, row in _rows(path):
        name = row["sn"]
        labels = {"kubernetes.io/hostname": name}
        allocatable = {
            "cpu": f"{_integer(row, 'cpu_milli', path, line)}m",
            "memory": f"{_integer(row, 'memory_mib', path, line)}Mi",
            "pods": "110",
        }
        gpus = _integer(row, "gpu", path, line)
        if gpus:
            allocatable[GPU] = str(gpus)
        if row["model"]:
            labels["gpu-model"] = row["model"]
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": allocatable},
        }


def pod_manifests(path: Path, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """A pending Pod for each line."""
    for count, (line, row) in enumerate(_rows(path)):
        if limit is not None and count >= limit:
            return
        requests = {
            "cpu": f"{_integer(row, 'cpu_milli', path, line)}m",
            "memory": f"{_integer(row, 'memory_mib', path, line)}Mi",
        }
        resources: dict[str, Any] = {"requests": requests}
        gpus = _integer(row, "num_gpu", path, line)
        if gpus:
            requests[GPU] = str(gpus)
            resources["limits"] = {GPU: str(gpus)}
        spec: dict[str, Any] = {"containers": [{"name": "c", "resources": resources}]}
        if row["gpu_spec"]:
            term = {
                "matchExpressions": [{"key": "gpu-model", "operator": "In", "values": row["gpu_spec"].split("|")}]
            }
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            spec["affinity"] = {"nodeAffinity": required}
        metadata: dict[str, Any] = {"name": row["name"]}
        if row.get("creation_time"):
            metadata["annotations"] = {
                f"openb/{key}": row[f"{key}_time"] for key in ("creation", "deletion") if row.get(f"{key}_time")
            }
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    with path.open(newline="") as lines:
        reader = csv.DictReader(lines)
        for row in reader:
            yield reader.line_num, row


def _integer(row: Mapping[str, str], column: str, path: Path, line: int) -> int:
    text = row.get(column)
    try:
        return int(text or "")
    except ValueError:
        raise ValueError(f'{path.name}:{line}: {column}: "{text}" is not a whole number') from None
