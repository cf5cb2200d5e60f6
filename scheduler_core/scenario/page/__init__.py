"""A folder of files that is a playground: the core in the reader's browser, behind any file server.

The page has its first answer in it, and shows every answer as the standalone file of its replay. Its runtime is
Pyodide by its address, or CPython and NumPy bundled from npm packages; which of them it is only `runtime.js` knows.
"""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from scheduler_core.errors import InvalidManifest
from scheduler_core.objects.reading import read_posted
from scheduler_core.scenario.carried import CarriedError, carry, unfold
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.gallery import gallery, gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from scheduler_core.scenario.types import API_VERSION, KIND, Scenario

_FOLDER: Final = resources.files(__package__)


def build(folder: Path, runtime: str | Callable[[Path], None]) -> None:
    """Write the page.

    Parameters
    ----------
    folder
        Is made; files of these names in it are replaced.
    runtime
        Address of a folder that has Pyodide, or what writes another runtime's `runtime.js` into a folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "core.zip").write_bytes(archive())
    for name in ("page.css", "page.js"):
        (folder / name).write_text(_text(name))
    address = runtime.rstrip("/") + "/" if isinstance(runtime, str) else ""
    if isinstance(runtime, str):
        (folder / "runtime.js").write_text(_text("pyodide.js"))
        (folder / "worker.js").write_text(
            _text("worker.js").replace("{{ADDRESS}}", json.dumps(address)[1:-1])
        )
    else:
        runtime(folder)
    (folder / "index.html").write_text(_page(address))


def archive() -> bytes:
    """The core, and what of PyYAML is Python."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for package in ("scheduler_core", "yaml"):
            for name, data in _files(resources.files(package), package):
                into.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        name = f"{path}/{item.name}"
        if item.is_dir():
            yield from () if item.name == "__pycache__" else _files(item, name)
        elif not item.name.endswith((".pyc", ".so", ".pyd")):
            yield name, item.read_bytes()


def _page(address: str) -> str:
    first = _text("example.yaml")
    told = json.loads(answer(first))
    # The answer is a document in a frame, to which this page's policy applies too: its script and style by digest.
    digests = re.findall(r"(script|style)-src '(sha256-[^']+)'", told["html"])
    by_kind = {kind: f"'{digest}'" for kind, digest in digests}
    policy = "; ".join(
        (
            "default-src 'none'", f"script-src 'self' 'wasm-unsafe-eval' {by_kind['script']} {address}".strip(),
            f"style-src 'self' {by_kind['style']}", f"connect-src 'self' blob: {address}".strip(),
            "worker-src 'self' blob:", "frame-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'",
        )
    )  # fmt: skip
    titles = {scenario.name: scenario.title for scenario in gallery()}
    lessons = "".join(
        f'<option value="{name}">{html.escape(title)}</option>' for name, title in titles.items()
    )
    values = {
        "POLICY": policy,
        "TEXT": first,
        "DECISIONS": told["decisions"],
    }
    # Of a document in an attribute these two alone need be written otherwise.
    shown = told["html"].replace("&", "&amp;").replace("'", "&#39;")
    filled = {"LESSONS": lessons, "ANSWER": shown} | {
        key: html.escape(value) for key, value in values.items()
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: filled[place[1]], _text("page.html"))


def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


# ---- what the page's worker asks


def answer(text: str) -> str:
    """The answer to a scenario or to manifests, as JSON.

    It has `html`, the standalone file of the replay, `line`, which a link carries, and the digests; or `problems`,
    each with `line` (from 1, or None) and `words`.
    """
    try:
        scenario = scenario_of(text)
        shown = standalone(scenario)
    except ScenarioError as error:
        return json.dumps({"problems": [{"line": one.line, "words": str(one)} for one in error.problems]})
    except TooLargeForOneFile as error:
        return json.dumps({"problems": [{"line": None, "words": str(error)}]})
    line = carry(scenario)
    return json.dumps(
        {"html": shown.html, "line": line, "digest": line.split(".")[1], "decisions": shown.run.digest}
    )


def scenario_of(text: str) -> Scenario:
    """The scenario of a text; of manifests one in which their pending pods are scheduled.

    Raises
    ------
    ScenarioError
    """
    try:
        posted = read_posted(text)
    except InvalidManifest as error:
        raise ScenarioError([Problem(error.path, error.words, None, error.line, error.column)]) from None
    if len(posted) == 1 and (posted[0].kind in ("", KIND)):
        return load_scenario(text)
    manifests: list[dict[str, Any]] = [one.manifest for one in posted]
    return load_scenario({"apiVersion": API_VERSION, "kind": KIND, "objects": manifests})


def lesson(name: str) -> str:
    """The text of a lesson, as JSON: `text`."""
    return json.dumps({"text": gallery_text(name)})


def carried(line: str) -> str:
    """The text of the scenario that a link carries, as JSON: `text`, or `problems`."""
    try:
        return json.dumps({"text": unfold(line).text})
    except CarriedError as error:
        return json.dumps({"problems": [{"line": None, "words": str(error)}]})
