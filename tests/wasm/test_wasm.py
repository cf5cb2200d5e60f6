"""The core decides alike where Python and NumPy are compiled to WebAssembly: 32 bits, from an archive, in node."""

import importlib.util
import json
import marshal
import os
import random
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.cli.conformance import read_cases
from scheduler_core.scenario.gallery import ORDER
from tests import servers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDINGS = sorted((ROOT / "tests/scheduler_core/conformance/data").rglob("*.jsonl.gz"))

UNCHECKED = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
"""How a compiled module begins that is not compared with its source."""

pytestmark = [pytest.mark.wasm, pytest.mark.slow]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core and what of PyYAML is Python."""
    path = tmp_path_factory.mktemp("wasm") / "core.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for folder in (ROOT / "scheduler_core", Path(yaml.__file__).parent):
            for file in sorted(folder.rglob("*")):
                if not file.is_file() or file.suffix in (".pyc", ".so"):
                    continue
                place = file.relative_to(folder.parent)
                packed.write(file, place)
                if file.suffix == ".py":
                    # Compiled here, for a Python of this version: there it takes ten times as long.
                    code = compile(file.read_bytes(), str(place), "exec")
                    packed.writestr(f"{place}c", UNCHECKED + marshal.dumps(code))
    return path


def witness() -> Any:
    spec = importlib.util.spec_from_file_location("witness", HERE / "witness.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(share: float) -> dict[str, list[Any]]:
    """Cases drawn of each file: one at least."""
    drawn = {}
    for path in RECORDINGS:
        every = list(read_cases(path))
        n = max(min(1, len(every)), int(len(every) * share))
        drawn[path.name] = random.Random(path.name).sample(every, n)
    return drawn


@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", [0.01, pytest.param(1, marks=pytest.mark.nightly("scheduler_core/"))])
def test_every_decision_is_that_of_this_machine(share: float, archive: Path, tmp_path: Path) -> None:
    folder = servers.wasm()
    assert folder is not None
    given = json.dumps({"lessons": ORDER if share == 1 else ORDER[::8], "cases": cases(share)})
    job, out = tmp_path / "job.json", tmp_path / "out.json"
    job.write_text(given)
    paths = [str(archive), str(HERE), f"{folder}/node_modules/@cowasm/py-numpy/dist/wasm"]
    subprocess.run(
        ["node", str(HERE / "run.js"), json.dumps(paths), str(job), str(out)],
        env={"NODE_PATH": f"{folder}/node_modules", "PATH": os.environ["PATH"]},
        check=True,
    )
    there, here = json.loads(out.read_text()), json.loads(witness().answer(given))
    assert (here.pop("bits"), there.pop("bits")) == (64, 32)
    assert there == here
    assert all(lesson[-1] for lesson in here["lessons"].values())
    assert not [name for file in here["cases"].values() for name, differing in file.items() if differing]
    if share == 1:
        assert sum(map(len, here["cases"].values())) >= 2_810
