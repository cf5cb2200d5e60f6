"""The packages in `examples/` are installed as any other, conform, and do what they say; the guide's examples run.

The reader of the openb trace: releases are compared by one command.
"""

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scheduler_core import installed_plugins
from scheduler_core.plugin_kit import check
from scheduler_core.sim.simulation import Simulation
from tests.manifests import scheduler_config
from tests.plugin_packages import installed_examples
from tests.scheduler_core.sim.builders import START_NS, make_node, make_pod, pod_named, write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    with installed_examples(tmp_path, monkeypatch) as plugins:
        yield plugins


def cluster(name: str, args: dict[str, Any] | None = None, *, sorts: bool = False) -> Simulation:
    multi: dict[str, Any] = {"enabled": [{"name": name, "weight": 10}]}
    if sorts:
        multi["disabled"] = [{"name": "PrioritySort"}]
    profile = {"plugins": {"multiPoint": multi}, "pluginConfig": [{"name": name, "args": args or {}}]}
    return Simulation(scheduler_config(profiles=[profile]), seed=1, start_ns=START_NS)


def node_of(simulation: Simulation, name: str) -> str:
    pod = pod_named(simulation, name)
    return "" if pod is None else pod.node_name


def test_every_example_conforms(known: dict[str, Any]) -> None:
    assert {"CapacityQuota", "Gang", "TargetLoad"} <= set(known)
    assert installed_plugins.problems() == ()
    for name in ("CapacityQuota", "Gang", "TargetLoad"):
        assert check(known[name]) == []


def test_a_gang_is_bound_together_or_not_at_all(known: dict[str, Any]) -> None:
    simulation = cluster("Gang", {"waitSeconds": 30}, sorts=True)
    write(simulation, make_node("n0", cpu="2"))
    labels = {"example.com/gang": "g", "example.com/gang-size": "3"}
    write(simulation, *(make_pod(f"g{index}", cpu="1", labels=labels) for index in range(3)))
    simulation.run_until_idle()
    simulation.advance(31 * 10**9)
    assert [node_of(simulation, f"g{index}") for index in range(3)] == ["", "", ""]
    write(simulation, make_node("n1", cpu="2"))
    simulation.advance(60 * 10**9)
    assert all(node_of(simulation, f"g{index}") for index in range(3))


def test_a_quota_holds_a_namespace_and_lets_go_when_a_pod_leaves(known: dict[str, Any]) -> None:
    from scheduler_core.sim.changes import DeleteObject

    simulation = cluster("CapacityQuota", {"limits": {"default": 1500}})
    write(simulation, make_node("n0"), make_pod("a", cpu="1"), make_pod("b", cpu="1"))
    simulation.run_until_idle()
    assert (node_of(simulation, "a"), node_of(simulation, "b")) == ("n0", "")
    (said,) = {trace.message for trace in simulation.drain_cycles() if trace.message}
    assert "namespace default uses 1000 of 1500 cpu, the pod asks 1000" in said
    simulation.submit(DeleteObject("Pod", "default", "a", 0))
    simulation.run_until_idle()
    assert node_of(simulation, "b") == "n0"


def test_load_is_read_from_data(known: dict[str, Any]) -> None:
    simulation = cluster("TargetLoad", {"targetPercent": 50})
    for name, load in (("idle", "0"), ("right", "45"), ("hot", "90")):
        node = make_node(name)
        node["metadata"]["annotations"] = {"example.com/load": load}
        write(simulation, node)
    write(simulation, make_pod("a"))
    simulation.run_until_idle()
    assert node_of(simulation, "a") == "right"


FILE = Path(__file__).parents[2] / "examples" / "openb" / "openb.py"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,65536,1,T4\nn-1,64000,262144,0,\n"
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,4000,8192,1,1000,T4,LS,Running,0,,0
p-1,4000,8192,1,1000,T4,LS,Running,1,,1
"""


@pytest.fixture
def openb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location("openb_example", FILE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "openb_example", module)
    spec.loader.exec_module(module)
    return module


def test_releases_are_compared_by_one_command(
    openb: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / openb.NODES_FILE).write_text(NODES)
    (tmp_path / openb.PODS_FILE).write_text(PODS)
    assert openb.main([str(tmp_path), "--upgrade", "1.36", "1.37"]) == 0
    said = capsys.readouterr().out
    assert "Upgrading to 1.37 changes 1 of 2 pods: 1 stays pending with a different message." in said
    assert "NoClaimsUnsaid: 1; verified by reverting only this change" in said
    assert "no gate and no change takes these away" not in said
    assert openb.main([str(tmp_path), "--upgrade", "1.35", "1.37", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unexplained"] == []
    assert [step["after"]["name"] for step in found["steps"]] == ["1.36", "1.37"]
