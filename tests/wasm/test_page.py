"""The playground in a page: built, opened in a browser, edited, linked; no server but one of files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from playground.remote import page as command
from scheduler_core.cli.main import main
from scheduler_core.scenario import load_scenario, run_scenario, scenario_digest
from scheduler_core.scenario import page as engine
from scheduler_core.scenario.gallery import gallery_scenario
from tests import servers

LOADS_MS = 120_000
"""A machine may be busy with other tests while a browser compiles Python."""
PARTS = ("playground/remote/page.py", "scheduler_core/scenario/page/", "scheduler_core/scenario/standalone/")


class Files(SimpleHTTPRequestHandler):
    """A file server that lets pages share memory with their workers."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *said: Any) -> None:
        del said


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page") / "public"
    assert command.main([str(folder), "--node-modules", f"{servers.wasm()}/node_modules"]) == 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.wasm
@pytest.mark.slow
@pytest.mark.nightly(*PARTS)
@pytest.mark.timeout(600)
def test_a_page_answers_what_is_edited_and_what_a_link_carries(address: str, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    answer = page.frame_locator("#answer")
    # The first answer is in the page: nothing of the engine was asked for.
    expect(answer.locator("#proof")).to_contain_text("checked just now")
    assert not [url for url in asked if "core.zip" in url]
    assert Axe().run(page).violations_count == 0
    wide = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert wide is not None
    page.set_viewport_size(wide)

    text = page.locator("#text")
    first = scenario_digest(load_scenario(text.input_value()))
    assert first in (page.locator("#link").get_attribute("href") or "")
    edited = text.input_value().replace("cpu: 3,", "cpu: 2,")
    assert edited != text.input_value()
    text.fill(edited)
    expect(page.locator("#state")).to_contain_text("decides the first example as recorded", timeout=LOADS_MS)
    scenario = load_scenario(edited)
    expect(page.locator("body")).to_have_attribute("data-digest", scenario_digest(scenario), timeout=LOADS_MS)
    expect(page.locator("body")).to_have_attribute("data-decisions", run_scenario(scenario).digest)
    expect(answer.locator("#main")).to_contain_text("report-0")

    text.fill(edited.replace("cpu: 2,", "cpu: two,"))
    expect(page.locator("#problems")).to_contain_text("pods[1].cpu", timeout=LOADS_MS)
    assert text.get_attribute("aria-invalid") == "true"

    link = page.locator("#link").get_attribute("href")
    assert link is not None
    page.goto("about:blank")
    page.goto(address + link)
    expect(page.locator("body")).to_have_attribute("data-digest", scenario_digest(scenario), timeout=LOADS_MS)

    page.locator("#lesson").select_option("nominated-overtaken")
    of_lesson = scenario_digest(gallery_scenario("nominated-overtaken"))
    expect(page.locator("body")).to_have_attribute("data-digest", of_lesson, timeout=LOADS_MS)
    assert all(url.startswith((address, "blob:", "data:", "about:")) for url in asked)


def test_a_link_of_the_page_is_one_of_the_command_line_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = json.loads(engine.answer("nodes: [{name: n, cpu: 1, memory: 1Gi}]\npods: [{name: p, cpu: 1}]\n"))
    file = tmp_path / "link"
    file.write_text(f"http://127.0.0.1/#{given['line']}")
    assert main(["replay", str(file)]) == 0
    assert given["digest"][:12] in capsys.readouterr().out
    text = json.loads(engine.carried(given["line"]))["text"]
    assert json.loads(engine.answer(text))["line"] == given["line"]
    assert "is no carried scenario" in json.loads(engine.carried("x"))["problems"][0]["words"]


def test_manifests_are_answered_and_mistakes_are_told_by_line() -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
    assert "bound to n" in json.loads(engine.answer(f"{node}---\n{pod}"))["html"]
    [problem] = json.loads(engine.answer("pods:\n- {name: p, cpu: one}\n"))["problems"]
    assert problem["line"] == 2 and "pods[0].cpu" in problem["words"]
    assert json.loads(engine.answer("a: ["))["problems"][0]["line"]


def test_a_page_with_pyodide_names_its_address_and_nothing_else(tmp_path: Path) -> None:
    assert command.main([str(tmp_path), "--pyodide", "https://files.example/pyodide"]) == 0
    html = (tmp_path / "index.html").read_text()
    assert "script-src &#x27;self&#x27;" in html and "https://files.example/pyodide/" in html
    assert len(html) < 58_000
    assert "'https://files.example/pyodide/'" in (tmp_path / "worker.js").read_text()
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"index.html", "page.css", "page.js", "runtime.js", "worker.js", "core.zip"}


def test_what_is_missing_for_a_page_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([str(tmp_path / "a")])
    assert "one of the arguments --pyodide --node-modules is required" in capsys.readouterr().err
    assert command.main([str(tmp_path / "b"), "--node-modules", str(tmp_path)]) == 2
    assert "npm install python-wasm" in capsys.readouterr().err
