"""Turn the CSV files of the openb production trace into manifests.

The data set is Alibaba's cluster-trace-gpu-v2023: 1,523 nodes and 8,152 tasks. GPUs become the extended resource
`nvidia.com/gpu` (a task with a share of a GPU asks for a whole one), a node's GPU model the label `gpu-model`, and
a task's `gpu_spec` a required node affinity over that label. Creation and deletion times become annotations.

    python examples/openb/openb.py DIR > manifests.yaml
    python examples/openb/openb.py DIR --scenario -o openb.yaml
    python examples/openb/openb.py DIR --upgrade 1.36 1.37
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from scheduler_core.cli.compare import upgrade_lines
from scheduler_core.clock import SECOND_NS
from scheduler_core.releases import release_named, steps_between
from scheduler_core.scenario import Scenario, ScenarioRun, dump_scenario, run_scenario, scenario_document
from scheduler_core.scenario.openb import GPU, lookalike, trace_scenario
from scheduler_core.scenario.run import with_decisions
from scheduler_core.scenario.types import Advance, Bounds, Expectation, Manifest, Run, Step
from scheduler_core.scenario.upgrade import preview
from scheduler_core.sim.kubelet import DURATION

NODES_FILE = "openb_node_list_all_node.csv"
PODS_FILE = "openb_pod_list_gpuspec33.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", nargs="?", help="folder that holds the CSV files")
    parser.add_argument(
        "--lookalike", action="store_true", help="a scenario drawn from --seed, without the files"
    )
    parser.add_argument("--scenario", action="store_true", help="one scenario instead of manifests")
    parser.add_argument(
        "--times", action="store_true", help="a scenario in which pods come and end at their times"
    )
    parser.add_argument(
        "--upgrade",
        nargs="+",
        metavar="RELEASE",
        help="decide the trace by two or more releases of Kubernetes, and say what causes each difference",
    )
    parser.add_argument(
        "--record", action="store_true", help="run the scenario and have it expect what came of it"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the scenario's draws (default 1)")
    parser.add_argument("--pods", type=int, help="only so many pods, in order")
    parser.add_argument("--pod-file", default=PODS_FILE, help=f"which pod list (default {PODS_FILE})")
    parser.add_argument(
        "--json", action="store_true", help="one List, or the scenario, as JSON: read twice as fast as YAML"
    )
    parser.add_argument("-o", "--output", help="file to write; standard output without it")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 2 when a file is missing or is not what it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.lookalike:
        text = _scenario_text(lookalike(options.seed), options.record, as_json=options.json)
        return _write(text, options.output)
    if options.directory is None:
        print("openb: DIR is needed: the folder that holds the CSV files, or --lookalike", file=sys.stderr)
        return 2
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
    if options.upgrade:
        return _write(_upgrade_text(_scenario(items, options), options), options.output)
    if options.scenario or options.times:
        text = _scenario_text(_scenario(items, options), options.record, as_json=options.json)
    elif options.json:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        text = yaml.dump_all(items, Dumper=yaml.CSafeDumper, sort_keys=False)
    return _write(text, options.output)


def _write(text: str, output: str | None) -> int:
    if output:
        Path(output).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


def _scenario(items: list[dict[str, Any]], options: argparse.Namespace) -> Scenario:
    title = "The openb production trace: 1,523 nodes, 8,152 pods"
    if options.times:
        return timed_scenario(
            items, name="openb-timed", title=title, created_s="openb/creation", deleted_s="openb/deletion",
            seed=options.seed,
        )  # fmt: skip
    for manifest in items:
        manifest["metadata"].pop("annotations", None)
    return trace_scenario(items, name="openb", title=title, seed=options.seed)


def _upgrade_text(scenario: Scenario, options: argparse.Namespace) -> str:
    """What moves from the first release to the last, each difference under its cause."""
    before, *through, after = [release_named(name) for name in options.upgrade]
    found = preview(scenario, before, after, through=through or steps_between(before, after)[1:-1])
    return (json.dumps(found.document()) if options.json else "\n".join(upgrade_lines(found))) + "\n"


def _scenario_text(scenario: Scenario, record: bool, *, as_json: bool) -> str:
    made = with_figures(run_scenario(scenario)) if record else scenario
    return json.dumps(scenario_document(made), ensure_ascii=False) if as_json else dump_scenario(made)


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
                "matchExpressions": [
                    {"key": "gpu-model", "operator": "In", "values": row["gpu_spec"].split("|")}
                ]
            }
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            spec["affinity"] = {"nodeAffinity": required}
        metadata: dict[str, Any] = {"name": row["name"]}
        if row.get("creation_time"):
            metadata["annotations"] = {
                f"openb/{key}": row[f"{key}_time"]
                for key in ("creation", "deletion")
                if row.get(f"{key}_time")
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


def timed_scenario(
    items: Sequence[Manifest], *, name: str, title: str, created_s: str, deleted_s: str, seed: int = 1
) -> Scenario:
    """Pods come at their own time and end by themselves.

    Parameters
    ----------
    created_s, deleted_s : str
        Annotations that hold a pod's times, in seconds since the start.
    """
    nodes = tuple(manifest for manifest in items if manifest["kind"] != "Pod")
    pods = [manifest for manifest in items if manifest["kind"] == "Pod"]
    pods.sort(key=lambda manifest: int(manifest["metadata"]["annotations"][created_s]))
    steps: list[Step] = []
    now_s = 0
    batch: list[Manifest] = []
    for manifest in pods:
        annotations = manifest["metadata"]["annotations"]
        at_s, ends = int(annotations[created_s]), annotations.get(deleted_s)
        if at_s > now_s:
            steps += [Step(apply=tuple(batch))] if batch else []
            steps.append(Step(advance=Advance((at_s - now_s) * SECOND_NS)))
            batch, now_s = [], at_s
        # A trace has zero-second tasks; they end as soon as they run.
        lasts = {DURATION: f"{max(int(ends) - at_s, 0)}s"} if ends is not None else {}
        batch.append({**manifest, "metadata": {**manifest["metadata"], "annotations": lasts}})
    steps += [Step(apply=tuple(batch)), Step(run=Run())]
    return Scenario(
        name=name,
        title=title,
        seed=seed,
        objects=nodes,
        steps=tuple(steps),
        expect=(Expectation(cycles=Bounds(at_least=len(pods))), Expectation(budgets="respected")),
    )


def with_figures(run: ScenarioRun) -> Scenario:
    """The run's scenario, expecting what came of it: how many are bound and pending, and the decisions."""
    figures = run.metrics()
    expected = tuple(
        Expectation(metric=name, count=Bounds(exactly=figures[name]))
        for name in ("bound", "pending", "gpuUtilisation")
    )
    return dataclasses.replace(with_decisions(run), expect=(*run.scenario.expect, *expected))


if __name__ == "__main__":
    sys.exit(main())
