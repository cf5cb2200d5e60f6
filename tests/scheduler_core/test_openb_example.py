"""The reader of the openb trace: releases are compared by one command."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

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
