"""A folder of files that is a playground: the core in the reader's browser, behind any file server.

The page has its first answer in it, and shows every answer as the standalone file of its replay. Its runtime is
Pyodide by its address, or CPython and NumPy bundled from npm packages; which of them it is only `runtime.js` knows.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from scheduler_core.releases import RELEASES
from scheduler_core.scenario.carried import CarriedError, carried_in, carry, unfold
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery, gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.page.editing import (
    applied_texts,
    choices_at,
    released_text,
    scenario_of,
    shortened_text,
)
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.standalone import Standalone, TooLargeForOneFile, standalone
from scheduler_core.whatif.fix import fix
from scheduler_core.whatif.workloads import waiting_pods

_FOLDER: Final = resources.files(__package__)


def build(folder: Path, runtime: str | Callable[[Path], None], site: str = "") -> None:
    """Write the page.

    Parameters
    ----------
    folder
        Is made; files of these names in it are replaced.
    runtime
        Address of a folder that has Pyodide, or what writes another runtime's `worker.js` and parts into a folder.
    site
        Address of a playground's site, to which the page links; ``..`` where the page is below it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    address = runtime.rstrip("/") + "/" if isinstance(runtime, str) else ""
    if isinstance(runtime, str):
        (folder / "core.zip").write_bytes(archive())
        worker = _text("pyodide.worker.js").replace("{{ADDRESS}}", json.dumps(address)[1:-1])
        (folder / "worker.js").write_text(worker)
    else:
        runtime(folder)
    for name in ("page.css", "page.js", "embed.js"):
        (folder / name).write_text(_text(name).replace("{{LESSONS}}", _lessons()))
    sizes = {
        name: file.stat().st_size
        for name in ("python", "numpy", "core")
        for file in sorted(folder.glob(f"{name}.[bz]i[np]"))
    }
    size = f"{sum(sizes.values()) / 1e6:.1f} MB{' and Pyodide' if address else ''}"
    values = {
        "PARTS": " ".join(f"{name}:{of}" for name, of in sizes.items()),
        "SIZE": size,
        "SITE": site.rstrip("/") + "/" if site else "",
    }
    (folder / "index.html").write_text(_page(address, values))
    (folder / "sw.js").write_text(_text("sw.js"))
    built = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest()
    # Both keep files of this build alone in the browser.
    for name in ("sw.js", "worker.js"):
        text = (folder / name).read_text("utf-8")
        (folder / name).write_text(text.replace("{{BUILD}}", built[:12]), "utf-8")


@lru_cache
def _lessons() -> str:
    """Name, title and what comes of each lesson, as JSON."""
    found = [[one.name, one.title, _words(run_scenario(one))] for one in gallery()]
    return json.dumps(found, ensure_ascii=False)


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


def _page(address: str, values: dict[str, str]) -> str:
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
    values = {
        "POLICY": policy,
        "TEXT": first,
        "DECISIONS": told["decisions"],
        "WORDS": told["words"],
        **values,
    }
    # Of a document in an attribute these two alone need be written otherwise.
    shown = told["html"].replace("&", "&amp;").replace("'", "&#39;")
    releases = "".join(
        f"<option{' selected' if name == told['release'] else ''}>{name}</option>" for name in RELEASES
    )
    filled = {"ANSWER": shown, "RELEASES": releases} | {
        key: html.escape(value) for key, value in values.items()
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: filled[place[1]], _text("page.html"))


def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


# ---- what the page's worker asks: a text for a text


@lru_cache(maxsize=1)
def shown(text: str) -> Standalone:
    """The standalone file of a text; the last one is kept."""
    return standalone(scenario_of(text))


def answer(text: str) -> str:
    """The answer to a scenario or to manifests, as JSON.

    It has `html`, the standalone file of the replay, `line`, which a link carries, the digests, the `release`, how many
    pods are `waiting`, and `words`, a sentence; or `problems`, each with `line` (from 1, or None) and `words`.
    """
    try:
        found = shown(text)
    except ScenarioError as error:
        return json.dumps({"problems": [{"line": one.line, "words": str(one)} for one in error.problems]})
    except TooLargeForOneFile as error:
        return _refused(error)
    line = carry(found.run.scenario)
    return json.dumps(
        {
            "html": found.html,
            "line": line,
            "digest": line.split(".")[1],
            "decisions": found.run.digest,
            "words": _words(found.run),
            "release": found.run.scenario.release.name,
            "waiting": len(waiting_pods(found.run.simulation)),
        }
    )


def _words(run: ScenarioRun) -> str:
    """What became of the last pod that waits, or else of the last one."""
    waiting = {pod.key for pod in waiting_pods(run.simulation)}
    told = [trace for trace in run.cycles if trace.pod in waiting] or run.cycles
    return str(told[-1].explain()["sentence"]) if told else ""


def _refused(error: Exception) -> str:
    return json.dumps({"problems": [{"line": None, "words": str(error)}]})


def counsel(text: str) -> str:
    """What would place the pods that wait at the end of a text that `answer` answers, as JSON.

    Each of `found` has two sentences, `why` and `fix`, and the `change` that `applied` makes, None where there is none.
    Each workload is asked about alone: a browser has no solver for the bound of all of them together.
    """
    simulation = shown(text).run.simulation
    found: list[dict[str, Any]] = []
    told: set[str] = set()
    for pod in waiting_pods(simulation):
        if pod.key in told or len(found) >= MOST_TOLD:
            continue
        answer = fix(simulation, {"pod": pod.key})
        told |= {pod.key, *answer.pods}
        best = answer.best
        words = (
            f"Best fix: {best.title}, {best.price}."
            if best
            else "Nothing that keeps what was asked for places it."
        )
        found.append({"why": answer.headline, "fix": words, "change": dict(best.change) if best else None})
    return json.dumps({"found": found})


MOST_TOLD: Final = 6
"""Workloads that `counsel` asks about."""


def lesson(name: str) -> str:
    """The text of a lesson, as JSON: `text`, or `problems`."""
    if name not in ORDER:
        return _refused(ValueError(f'there is no lesson "{name}"'))
    return json.dumps({"text": gallery_text(name)})


def carried(line: str) -> str:
    """The text of the scenario that a link carries, as JSON: `text`, or `problems`."""
    try:
        return json.dumps({"text": shortened_text(load_scenario(unfold(line).document))})
    except (CarriedError, ScenarioError) as error:
        return _refused(error)


def opened(data: str) -> str:
    """The text of a file, as JSON: a link or a standalone file says the scenario that it carries."""
    try:
        found = carried_in(data.encode())
        return json.dumps({"text": found.text if found else data})
    except CarriedError as error:
        return _refused(error)


def shorter(text: str) -> str:
    """The same scenario with nodes and pods in the short form, where that says all of it, as JSON: `text`."""
    try:
        return json.dumps({"text": min(text, shortened_text(scenario_of(text)), key=len)})
    except ScenarioError:
        # What is wrong with it is told where it is.
        return json.dumps({"text": text})


def released(asked: str) -> str:
    """A `text` with another `release`, both in JSON; as JSON: `text`, or `problems`."""
    said = json.loads(asked)
    try:
        return json.dumps({"text": released_text(said["text"], RELEASES[said["release"]])})
    except ScenarioError as error:
        return _refused(error)


def applied(asked: str) -> str:
    """A `text` with the `change` of a fix, both in JSON, where the fewest pods wait then; as JSON: `text`."""
    said = json.loads(asked)
    run = shown(said["text"]).run
    texts = applied_texts(said["text"], run.scenario, run.simulation.world, said["change"])
    waiting: dict[str, int] = {}
    for text, scenario in texts:
        waiting[text] = len(waiting_pods(run_scenario(scenario).simulation))
        if not waiting[text]:
            break
    return json.dumps({"text": min(waiting, key=lambda text: waiting[text])})


def complete(asked: str) -> str:
    """What may be written at a place, as JSON (`choices_at`), of JSON: `text`, and the place `at` (characters)."""
    said = json.loads(asked)
    return json.dumps(choices_at(said["text"], said["at"]))
