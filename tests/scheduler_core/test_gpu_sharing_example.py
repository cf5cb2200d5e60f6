"""The GPU-sharing package of `examples/`: the FGD paper's policies through the scheduler, held against a record.

`data/gpu_sharing.json.gz` is what another program decided, written from the description of workload, policies and
measure, one node and one device at a time: each policy's placements of the small trace, and the fragmentation of 200
nodes.

FGD_DATA names a folder with the experiment's traces and the authors' results; the small trace here needs none.
"""

import gzip
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler_core.objects.defaults import prepare
from scheduler_core.plugin_kit import check
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from tests.changes import one_in
from tests.manifests import make_object, scheduler_config
from tests.plugin_packages import installed_examples
from tests.scheduler_core.sim.builders import pod_named
from tests.tables import table

DETERMINISTIC = ("DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
DATA = os.environ.get("FGD_DATA", "")
RECORD = json.loads(gzip.decompress((Path(__file__).parent / "data" / "gpu_sharing.json.gz").read_bytes()))

TYPICAL = table(__file__, "TYPICAL")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Gives modules of the installed package by name."""
    with (
        pytest.MonkeyPatch.context() as patch,
        installed_examples(tmp_path_factory.mktemp("site"), patch),
    ):
        yield lambda name: importlib.import_module(f"example_gpu_sharing.{name}".rstrip("."))


@pytest.fixture(scope="module")
def trace(package: Any) -> Any:
    return package("traces").synthetic_trace(1, n_nodes=25)


# ---- one node


def gpu_node(name: str, *, cpu: str = "8", gpus: int = 2, model: str = "T4") -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "50", "alibabacloud.com/gpu-count": str(gpus)}
    labels = {"alibabacloud.com/gpu-card-model": model}
    return make_object("v1", "Node", name, labels=labels, status={"allocatable": allocatable})


def gpu_pod(name: str, *, cpu: str = "2", count: Any = 1, milli: Any = 1000, **more: Any) -> dict[str, Any]:
    annotations = {"alibabacloud.com/gpu-count": str(count), "alibabacloud.com/gpu-milli": str(milli)}
    for key in ("card-model", "index"):
        if key in more:
            annotations[f"alibabacloud.com/gpu-{key}"] = more.pop(key)
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more}
    return make_object("v1", "Pod", name, annotations=annotations, spec=spec)


def cluster(policy: str, *objects: dict[str, Any], args: dict[str, Any] | None = None) -> Simulation:
    multi = {"enabled": [{"name": "GpuDevices"}, {"name": policy}]}
    config = scheduler_config(
        profiles=[{"plugins": {"multiPoint": multi}, "pluginConfig": [{"name": policy, "args": args or {}}]}]
    )
    simulation = Simulation(config, seed=1, options=SimulationOptions(first_of_ties=True))
    for manifest in objects:
        simulation.submit(WriteObject(prepare(manifest)))
    return simulation


def given(simulation: Simulation) -> dict[str, tuple[int, ...]]:
    """Devices by the name of the pod."""
    plugin: Any = simulation.scheduler.profiles["default-scheduler"].plugins["GpuDevices"]
    pods = {stored.typed.uid: stored.typed.name for stored in simulation.world.all("Pod")}
    return {pods[uid]: devices for uid, devices in plugin.devices.given.items() if uid in pods}


@pytest.mark.parametrize(
    ("policy", "points", "device"),
    [("FGD", 57, 1), ("BestFit", 91, 1), ("DotProd", 99, 1), ("GpuPacking", 97, 1), ("GpuClustering", 95, 1)],
)
def test_the_worked_example_is_met(package: Any, policy: str, points: int, device: int) -> None:
    args = {"typicalPods": TYPICAL} if policy == "FGD" else None
    there = gpu_pod("there", cpu="1", milli=700, index="1", nodeName="n")
    simulation = cluster(policy, gpu_node("n", cpu="9"), there, gpu_pod("p", milli=300), args=args)
    simulation.run_until_idle()
    assert given(simulation)["p"] == (device,)
    plugin: Any = simulation.scheduler.profiles["default-scheduler"].plugins[policy]
    more: Any = (np.zeros(1, np.int64), ["T4"]) if policy == "FGD" else np.ones(1, np.int64)
    request = package("request").GpuRequest(1, 300)
    scored = plugin.points(2000, request, np.array([8000]), np.array([[1000, 300]]), more)
    assert int(scored.max()) == points


@pytest.mark.nightly("examples/gpu_sharing/", "scheduler_core/plugin_kit.py")
def test_every_plugin_conforms(package: Any) -> None:
    objects = [gpu_node(f"gpu-{index}", gpus=1 + index % 3) for index in range(4)]
    objects += [
        gpu_pod(f"gpu-pod-{index}", cpu="500m", milli=(300, 1000, 550)[index % 3]) for index in range(9)
    ]
    objects.append(gpu_pod("vip", count=2, priorityClassName="class-2"))
    devices = package("devices").GpuDevices
    assert check(devices, objects=objects) == []
    for policy in package("").POLICIES:
        args = {"typicalPods": TYPICAL} if policy.name == "FGD" else None
        assert check(policy, objects=objects, beside=[devices], args=args) == [], policy.name


def test_a_share_is_left_pending_with_the_words_and_comes_when_a_gpu_is_free(package: Any) -> None:
    simulation = cluster(
        "BestFit", gpu_node("n", gpus=1), gpu_pod("a", milli=600), gpu_pod("b", milli=500), gpu_pod("x", milli=5000),
        gpu_pod("v", milli=100, **{"card-model": "A10|G2"}), gpu_pod("two", count=2),
    )  # fmt: skip
    simulation.run_until_idle()
    said = {one.pod: one.message for one in simulation.drain_cycles() if one.message}
    assert "Insufficient alibabacloud.com/gpu-milli" in said["default/b"]
    wrong = 'annotation alibabacloud.com/gpu-milli: "5000" is not a whole number from 1 to 1000'
    assert wrong in said["default/x"]
    assert "node(s) didn't match alibabacloud.com/gpu-card-model" in said["default/v"]
    assert "Insufficient alibabacloud.com/gpu-count" in said["default/two"]
    simulation.submit(DeleteObject("Pod", "default", "a", 0))
    simulation.run_until_idle()
    pod = pod_named(simulation, "b")
    assert pod is not None and pod.node_name == "n"
    assert given(simulation) == {"b": (0,)}


def test_a_pod_of_higher_priority_takes_the_device_of_the_least(package: Any) -> None:
    objects = table(__file__, "a_pod_of_higher_priority_takes_the_device_of_the_least")
    objects += [gpu_node("n", gpus=2), gpu_pod("small", milli=200), gpu_pod("whole")]
    simulation = cluster("BestFit", *objects)
    simulation.run_until_idle()
    assert given(simulation) == {"small": (0,), "whole": (1,)}
    urgent = gpu_pod("urgent", milli=900, priorityClassName="high")
    simulation.submit(WriteObject(prepare(urgent, simulation.world.priority_classes)))
    simulation.run_until_idle()
    assert pod_named(simulation, "urgent").node_name == "n"  # type: ignore[union-attr]
    gone = {"small", "whole"} - set(given(simulation))
    assert len(gone) == 1


def test_devices_outlive_a_checkpoint(package: Any) -> None:
    simulation = cluster(
        "FGD", gpu_node("n"), gpu_pod("a", milli=600), gpu_pod("b", milli=300), args={"typicalPods": TYPICAL}
    )
    simulation.run_until_idle()
    before = given(simulation)
    restored = Simulation.restore(json.loads(json.dumps(simulation.checkpoint())))
    restored.submit(WriteObject(prepare(gpu_pod("c", milli=700))))
    restored.run_until_idle()
    after = given(restored)
    assert {name: after[name] for name in before} == before
    assert after["c"] not in (before["a"],)


# ---- the experiment


@pytest.mark.parametrize("policy", one_in(3, DETERMINISTIC, "examples/gpu_sharing/"))
def test_every_placement_is_the_records(package: Any, trace: Any, policy: str) -> None:
    outcome = package("experiment").run(trace, policy, 0)
    ours = [one and [one[0], sorted(one[1])] for one in outcome.placements]
    assert ours == RECORD["placements"][policy]
    assert None in ours and any(one is not None and len(one[1]) > 1 for one in ours)


def test_frequencies_are_rounded_as_the_authors_round_them(package: Any) -> None:
    fragmentation, fgd = package("fragmentation"), package("fgd")
    typical = [fragmentation.TypicalPod(1000, None, weight) for weight in (2373, 5411)]
    # All pods first, then the part that is typical: one division gives 0.30485611510791366.
    share = fragmentation.Fragmentation(typical, 8152).share[0]
    assert share == 2373 / 8152 / (7784 / 8152) == 0.3048561151079137
    assert fragmentation.Fragmentation(typical).share[0] == 2373 / 7784
    args = fgd.FgdArgs((fgd.TypicalPodArgs(weight=5),), 4)
    assert ["args.nPods" in str(problem) for problem in args.problems("args")] == [True]


def test_fragmentation_of_the_cluster_is_the_records(package: Any, trace: Any) -> None:
    fragmentation = package("fragmentation")
    kinds = [pod.kind for pod in trace.pods]
    measure = fragmentation.Fragmentation(fragmentation.typical_pods(kinds), len(kinds))
    draw = np.random.default_rng(1)
    free = draw.choice([0, 190, 340, 460, 530, 1000], (200, 8))
    free[:50, 4:] = -1
    cpu, models, names = draw.integers(0, 70_000, 200), draw.integers(-1, 3, 200), ["G2", "T4", "P100"]
    for _ in ("fresh", "kept"):
        assert measure.of(cpu, free, models, names).tolist() == RECORD["fragmentation"]


def test_ties_are_drawn_by_the_seed_and_random_scatters(package: Any, trace: Any) -> None:
    run = package("experiment").run
    first, drawn, again = (run(trace, "FGD", 1, ties=ties, limit=120) for ties in ("first", "drawn", "drawn"))
    assert drawn.placements == again.placements != first.placements
    by_chance, packed = (run(trace, policy, 1, limit=20).placements for policy in ("Random", "BestFit"))
    assert len({one[0] for one in by_chance}) > len({one[0] for one in packed})


def test_values_at_a_load_are_means_of_the_arrivals_that_round_to_it(package: Any) -> None:
    values = [0.4, 1.5, 2.5, 4.6], [1, 2, 4, 8], [10, 20, 40, 80], [1, 2, 3, 4]
    columns = [np.array(column, float) for column in values]
    outcome = package("experiment").Outcome(*columns, [], 1000, 0.0)
    alloc, amount, ratio = outcome.curves()
    assert alloc[:6].tolist() == [1, 2.33, 3, 3, 8, 8]
    assert amount[:3].tolist() == [1, 2.33, 3] and ratio[5] == 4
    assert np.isnan(alloc[7])


# ---- the command


@pytest.mark.nightly("examples/gpu_sharing/")
def test_runs_are_kept_shown_drawn_and_checked(
    package: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = package("__main__")
    small = package("traces").synthetic_trace(1, n_nodes=40)
    monkeypatch.setattr(main, "synthetic_trace", lambda: small)
    results = tmp_path / "results.jsonl"
    arguments = f"run {results} --policies BestFit FGD --ties first drawn --seeds 0".split()
    assert main.main(arguments) == 0
    text = results.read_text()
    assert main.main([*arguments, "--processes", "2"]) == 0
    assert results.read_text() == text, "what is there is not run again"
    capsys.readouterr()

    found = package("runs").read_results(results)
    one = found["synthetic-1", "FGD", 0, "first"]
    expected = tmp_path / "expected"
    expected.mkdir()
    load = int(np.flatnonzero(~np.isnan(one.alloc))[-1])
    head = f"trace,policy,seed,alloc_{load},frag_amount_{load},frag_ratio_{load}"
    values = f"synthetic-1,FGD,0,{one.alloc[load]},{one.frag_amount[load]},{one.frag_ratio[load]:.4f}"
    (expected / "per_seed.csv").write_text(f"{head}\n{values}\n")
    (expected / "headline.csv").write_text("trace,policy,alloc_pct_at_100\nsynthetic-1,FGD,95.00\n")
    (expected / "curves.csv").write_text(
        "trace,policy,arrived_pct,alloc_mean,alloc_median,frag_amount_mean,frag_ratio_mean\n"
        "synthetic-1,FGD,80,80,79.5,5,20\nsynthetic-1,FGD,90,90,89.5,5,30\n"
    )
    assert main.main(["check", str(results), str(expected)]) == 0
    assert "FGD: 1 runs, 3 of 3 values equal" in capsys.readouterr().out
    (expected / "per_seed.csv").write_text(f"{head}\nsynthetic-1,FGD,0,1,2,3\n")
    assert main.main(["check", str(results), str(expected)]) == 1
    assert "not every figure holds" in capsys.readouterr().out

    assert main.main(["table", str(results), "--expected", str(expected)]) == 0
    said = capsys.readouterr().out
    assert "synthetic-1, equals drawn" in said and "95.00" in said
    drawing = tmp_path / "curves.svg"
    drawn = f"curves {results} {drawing} --trace synthetic-1 --expected {expected}".split()
    assert main.main(drawn) == 0
    assert drawing.read_text().count("<polyline") == 2 * (2 * 2 + 1)
    assert main.main(["curves", str(results), str(drawing), "--trace", "other"]) == 2
    results.write_text("{}\n")
    assert main.main(["table", str(results)]) == 2
    assert f"{results}:1: not a result" in capsys.readouterr().err


def test_files_are_read_and_what_is_wrong_is_named(package: Any, tmp_path: Path) -> None:
    traces = package("traces")
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nb,1,2,3,T4\na,4,5,6,G2\n"
    )
    pods = tmp_path / "openb_pod_list_t.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np2,1,2,0,1000,T4\np1,1,2,1,500,A|B\n"
    )
    with gzip.open(tmp_path / "arrivals_t.csv.gz", "wt") as text:
        text.write("seed,what,indices\n42,pods,1 0 1\n42,nodes,1 0\n43,pods,9\n43,nodes,0 1\n")
    found = traces.read_trace(tmp_path, "t", seeds={42})
    assert [node.name for node in found.nodes] == ["a", "b"]
    assert [(pod.name, pod.kind) for pod in found.pods] == [("p1", (1, 500, 1, "A|B")), ("p2", (1, 0, 0, ""))]
    assert found.arrivals[42].pods == (1, 0, 1)
    with pytest.raises(ValueError, match="seed 43: pods: 9 is not below 2"):
        traces.read_trace(tmp_path, "t")
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,many,1\n")
    with pytest.raises(ValueError, match=r'openb_pod_list_t\.csv:2: num_gpu: "many" is not a whole number'):
        traces.read_trace(tmp_path, "t")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not DATA, reason="NOT HELD AGAINST THE AUTHORS: FGD_DATA names no folder with traces/ and expected/"
)
@pytest.mark.parametrize("policy", ["BestFit", "FGD"])
def test_the_authors_figures_are_met(package: Any, tmp_path: Path, policy: str) -> None:
    main, folder = package("__main__").main, Path(DATA)
    results = tmp_path / "results.jsonl"
    seed = ["--policies", policy, "--seeds", "42"]
    assert main(["run", str(results), "--data", str(folder / "traces"), *seed]) == 0
    assert main(["check", str(results), str(folder / "expected")]) == 0
