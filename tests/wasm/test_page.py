"""The playground in a page: built, opened in a browser, edited, linked, without a network; no server but of files."""

import gzip
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from playground.remote import page as command
from scheduler_core.cli.conformance import read_cases
from scheduler_core.cli.main import main
from scheduler_core.objects import short
from scheduler_core.scenario import load_scenario, run_scenario, scenario_digest
from scheduler_core.scenario import page as engine
from scheduler_core.scenario.canonical import canonical_manifest
from scheduler_core.scenario.carried import carry
from scheduler_core.scenario.gallery import ORDER, gallery_scenario, gallery_text
from scheduler_core.scenario.standalone import standalone
from tests import servers
from tests.tables import table
from tests.wasm.test_wasm import HERE, RECORDINGS, witness

LOADS_MS = 120_000
"""A machine may be busy with other tests while a browser compiles Python."""
PARTS = ("playground/remote/page.py", "scheduler_core/scenario/page/", "scheduler_core/scenario/standalone/")
MOST_BYTES = 8_500_000


class Files(SimpleHTTPRequestHandler):
    """A plain file server."""

    def log_message(self, *said: Any) -> None:
        del said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "public"
    packages = f"{servers.wasm()}/node_modules"
    assert command.main([str(folder), "--node-modules", packages, "--site", "http://127.0.0.1:1"]) == 0
    return folder


@pytest.fixture
def server(folder: Path) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def _start_s(page: Page) -> float:
    """How long the engine's start took, as the page says."""
    expect(page.locator("#state")).to_contain_text("decides the first example as recorded", timeout=LOADS_MS)
    said = re.search(r"is here \(([0-9.]+) s", page.locator("#state").inner_text())
    assert said is not None
    return float(said[1])


def _is(page: Page, digest: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-digest", digest, timeout=LOADS_MS)


@pytest.mark.wasm
@pytest.mark.slow
@pytest.mark.nightly(*PARTS)
@pytest.mark.timeout(600)
def test_a_page_answers_what_is_edited_and_works_without_a_network(
    folder: Path, server: ThreadingHTTPServer, page: Page
) -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in folder.iterdir()) <= MOST_BYTES
    address = f"http://127.0.0.1:{server.server_port}/"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    answer = page.frame_locator("#answer")
    # The first answer is in the page: nothing of the engine was asked for.
    expect(answer.locator("#proof")).to_contain_text("checked just now")
    assert not [url for url in asked if url.endswith((".bin", "worker.js"))]
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert Axe().run(page).violations_count == 0
    page.set_viewport_size({"width": 1280, "height": 800})

    text = page.locator("#text")
    first = text.input_value()
    assert scenario_digest(load_scenario(first)) in page.locator("#link").input_value()
    edited = first.replace("cpu: 3,", "cpu: 9,")
    text.fill(edited)
    cold_s = _start_s(page)
    scenario = load_scenario(edited)
    _is(page, scenario_digest(scenario))
    expect(page.locator("body")).to_have_attribute("data-decisions", run_scenario(scenario).digest)
    expect(answer.locator("#main")).to_contain_text("report-0")
    expect(page.locator("#loads")).to_contain_text("NumPy")
    page.locator("#release").select_option("1.34")
    older = scenario_digest(load_scenario(f"kubernetesRelease: '1.34'\n{edited}"))
    _is(page, older)
    # The best fix is one more node, in the list of nodes.
    page.get_by_role("button", name="Apply").click(timeout=LOADS_MS)
    expect(text).to_have_value(
        re.compile(r"^kubernetesRelease: '1.34'\n(.*\n)+- \{name: plan-node-1, ", re.M)
    )
    expect(page.locator("#fix")).to_be_hidden()

    text.fill(edited.replace("cpu: 9,", "cpu: two,"))
    expect(page.locator("#problems")).to_contain_text("pods[1].cpu", timeout=LOADS_MS)
    expect(page.locator("#lines b")).to_have_text("7")
    assert text.get_attribute("aria-invalid") == "true"
    text.fill(f"{edited}- {{name: more, ")
    text.press("Control+ ")
    expect(page.locator("#choices")).to_contain_text("nodeSelector", timeout=LOADS_MS)
    assert Axe().run(page).violations_count == 0
    text.press("Enter")
    assert text.input_value().endswith(": ")

    page.locator("#lesson").select_option("nominated-overtaken")
    _is(page, scenario_digest(gallery_scenario("nominated-overtaken")))
    page.set_input_files(
        "#file", [{"name": "r.html", "mimeType": "", "buffer": standalone(scenario).html.encode()}]
    )
    _is(page, scenario_digest(scenario))
    with page.expect_download() as saved:
        page.locator("#save").click()
    assert main(["replay", str(saved.value.path())]) == 0
    assert (page.locator("#site").get_attribute("href") or "").startswith("http://127.0.0.1:1/open/#1.")
    assert all(url.startswith((address, "blob:", "data:", "about:")) for url in asked)

    expect(page.locator("#kept")).to_contain_text("in this browser as it runs", timeout=LOADS_MS)
    # The server is gone: what was fetched is in the browser. A link is opened by the frame in an article, too.
    server.shutdown()
    server.server_close()
    elsewhere = gallery_scenario("non-preempting-priority")
    page.goto("about:blank")
    page.goto(f"{address}?embed#{carry(elsewhere)}")
    expect(page.locator("#cover")).to_be_visible()
    expect(page.locator("#loads li")).to_have_count(0)
    page.get_by_role("button", name="Try it").click()
    _is(page, scenario_digest(elsewhere))
    expect(page.locator("#embed")).to_have_value(re.compile(' name="default/.* fits no node: '))
    page.goto("about:blank")
    page.goto(f"{address}?embed#lesson=nominated-overtaken")
    expect(page.locator("#cover")).to_contain_text("fits no node: 0/")
    page.goto("about:blank")
    page.goto(f"{address}#lesson=nominated-overtaken")
    _is(page, scenario_digest(gallery_scenario("nominated-overtaken")))
    # Python goes on as the first visit left it; a memory that is none is dropped, and the next start needs no other.
    assert _start_s(page) < cold_s
    expect(page.locator("#state")).to_contain_text("s, kept in this browser)")
    page.evaluate(
        "caches.keys().then(([of]) => caches.open(of)).then((store) => store.put('memory', new Response()))"
    )
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#state")).to_contain_text("could not be loaded", timeout=LOADS_MS)
    text.fill(edited)
    _is(page, scenario_digest(scenario))
    expect(page.locator("#state")).to_contain_text("s) and decides")


@pytest.mark.wasm
@pytest.mark.slow
@pytest.mark.nightly("scheduler_core/")
@pytest.mark.timeout(3000)
def test_a_browser_decides_every_lesson_and_recorded_case_as_this_machine(
    folder: Path, server: ThreadingHTTPServer, page: Page
) -> None:
    core = io.BytesIO(gzip.decompress((folder / "core.bin").read_bytes()))
    with zipfile.ZipFile(core, "a") as into:
        into.write(HERE / "witness.py", "core/witness.py")
    (folder / "core.bin").write_bytes(gzip.compress(core.getvalue()))
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    page.set_default_timeout(0)

    def ask(job: dict[str, Any]) -> Any:
        return page.evaluate("job => load().then((ask) => ask('answer', job, 'witness'))", json.dumps(job))

    there = ask({"lessons": ORDER, "cases": {}})
    assert there["bits"] == 32
    assert (
        there["lessons"]
        == json.loads(witness().answer(json.dumps({"lessons": ORDER, "cases": {}})))["lessons"]
    )
    n_cases = 0
    for path in RECORDINGS:
        found = ask({"lessons": [], "cases": {path.name: list(read_cases(path))}})["cases"][path.name]
        n_cases += len(found)
        assert not [name for name, differing in found.items() if differing]
    assert n_cases >= 2_810


@pytest.mark.wasm
@pytest.mark.slow
@pytest.mark.nightly(*PARTS)
def test_a_documentation_page_has_a_link_below_each_yaml_block(
    folder: Path, server: ThreadingHTTPServer, page: Page
) -> None:
    address = f"http://127.0.0.1:{server.server_port}/"
    text = "nodes:\n- {name: ä, cpu: 1, memory: 1Gi}\n"
    (folder / "docs.html").write_text(
        '<meta charset="utf-8"><script src="embed.js" defer></script>'
        f"<pre><code>{text}</code></pre><pre><code>ls</code></pre>"
    )
    page.goto(f"{address}docs.html")
    link = page.get_by_role("link", name="Open in the scheduling playground")
    expect(link).to_have_count(1)
    link.click()
    expect(page.locator("#text")).to_have_value(text)
    # An article's frame says what came of it before anything of the engine is loaded.
    (folder / "article.html").write_text(
        '<iframe src="./?embed#1.x.y" name="x/p fits no node: &lt;b>"></iframe>'
    )
    page.goto(f"{address}article.html")
    expect(page.frame_locator("iframe").locator("#cover")).to_contain_text("x/p fits no node: <b>")


def test_a_link_of_the_page_is_one_of_the_command_line_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = json.loads(engine.answer("nodes: [{name: n, cpu: 1, memory: 1Gi}]\npods: [{name: p, cpu: 1}]\n"))
    file = tmp_path / "link"
    file.write_text(f"http://127.0.0.1/#{given['line']}")
    assert main(["replay", str(file)]) == 0
    assert given["digest"][:12] in capsys.readouterr().out
    for back in (
        engine.carried(given["line"]),
        engine.opened(file.read_text()),
        engine.opened(given["html"]),
    ):
        assert json.loads(engine.answer(json.loads(back)["text"]))["line"] == given["line"]
    assert "is no carried scenario" in json.loads(engine.carried("x"))["problems"][0]["words"]
    assert "no lesson" in json.loads(engine.lesson("x"))["problems"][0]["words"]


def test_manifests_are_answered_and_mistakes_are_told_by_line() -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
    assert "bound to n" in json.loads(engine.answer(f"{node}---\n{pod}"))["html"]
    [problem] = json.loads(engine.answer("pods:\n- {name: p, cpu: one}\n"))["problems"]
    assert problem["line"] == 2 and "pods[0].cpu" in problem["words"]
    assert json.loads(engine.answer("a: ["))["problems"][0]["line"]


def _ask(name: str, **asked: Any) -> str:
    return str(json.loads(getattr(engine, name)(json.dumps(asked)))["text"])


MANIFESTS = """\
kind: Node
apiVersion: v1
metadata: {name: n}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}
---
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {containers: [{name: c, resources: {requests: {cpu: 5}}}]}
"""


def test_a_release_is_chosen_in_the_text() -> None:
    text = "# mine\nnodes: [{name: n, cpu: 1, memory: 1Gi}]\n"
    older = _ask("released", text=text, release="1.34")
    assert older == f"kubernetesRelease: '1.34'\n{text}"
    assert _ask("released", text=older, release="1.36") == older.replace("1.34", "1.36")
    assert json.loads(engine.answer(older))["release"] == "1.34"
    assert load_scenario(_ask("released", text=MANIFESTS, release="1.35")).release.name == "1.35"
    [problem] = json.loads(engine.released(json.dumps({"text": "a: [", "release": "1.35"})))["problems"]
    assert problem["words"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "packing-and-spreading", "gpu-isolation", "differs-node-phase"])
def test_the_best_fix_is_made_in_the_text_and_places_what_waits(name: str) -> None:
    text = gallery_text(name) if name else MANIFESTS
    [found] = json.loads(engine.counsel(text))["found"]
    made = _ask("applied", text=text, change=found["change"])
    assert json.loads(engine.answer(made))["waiting"] == 0
    if not name:
        assert made.startswith(f"{text}---\n")


SHORT = """\
kubernetesRelease: '1.36'
nodes:
- {name: n, type: m6i.xlarge, zone: [a, b], pool: web, labels: {disk: ssd}, count: 3}
- {name: gpu, cpu: 3500m, memory: 8Gi, devices: {nvidia.com/gpu: 1}, taints: ['a=b:NoSchedule', 'c:NoExecute']}
pods:
- {name: high, cpu: 1, priority: -5, namespace: x, labels: {tier: web}, count: 2}
- {name: p, devices: {nvidia.com/gpu: 1}, nodeSelector: {disk: ssd}, tolerations: [a, 'c=d:NoExecute'], spread: zone}
"""


def test_ten_lines_come_back_from_the_whole_scenario() -> None:
    scenario = load_scenario(SHORT)
    assert scenario.release.name == "1.36"
    found = short.shortened(scenario.objects, canonical_manifest)
    assert [(item["name"], item.get("count")) for item in found["nodes"]] == [("n", 3), ("gpu", None)]
    assert [(item["name"], item.get("count")) for item in found["pods"]] == [("high", 2), ("p", None)]
    assert "objects" not in found
    whole = json.dumps({"apiVersion": "x", "kind": "Scenario"})
    assert json.loads(engine.shorter(whole))["text"] == whole
    [line] = [json.loads(engine.answer(SHORT))["line"]]
    again = json.loads(engine.carried(line))["text"]
    assert scenario_digest(load_scenario(again)) == scenario_digest(scenario)
    assert len(again.splitlines()) <= len(SHORT.splitlines()) + 1
    # What the short form cannot say is written as Kubernetes does.
    for name in ORDER[:6]:
        own = gallery_scenario(name)
        assert scenario_digest(
            load_scenario(json.loads(engine.carried(carry(own)))["text"])
        ) == scenario_digest(own)


@pytest.mark.parametrize("text, expected", table(__file__, "what_may_be_written_is_of_the_schemas"))
def test_what_may_be_written_is_of_the_schemas(text: str, expected: str | None) -> None:
    found = json.loads(engine.complete(json.dumps({"text": text, "at": len(text)})))
    assert (expected is None and not found["choices"]) or expected in [
        one["insert"] for one in found["choices"]
    ]


def test_a_short_document_is_of_the_release_that_new_clusters_have() -> None:
    text = "nodes: [{name: n, cpu: 1, memory: 1Gi}]\n"
    assert load_scenario(text).release.name == "1.37"
    assert load_scenario(f"emulates: v1.34\n{text}").release.name == "1.34"


def test_a_page_with_pyodide_names_its_address_and_nothing_else(tmp_path: Path) -> None:
    assert command.main([str(tmp_path), "--pyodide", "https://files.example/pyodide"]) == 0
    html = (tmp_path / "index.html").read_text()
    assert "script-src &#x27;self&#x27;" in html and "https://files.example/pyodide/" in html
    assert len(html) < 58_000
    assert "'https://files.example/pyodide/'" in (tmp_path / "worker.js").read_text()
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"index.html", "page.css", "page.js", "embed.js", "sw.js", "worker.js", "core.zip"}


def test_what_is_missing_for_a_page_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([str(tmp_path / "a")])
    assert "one of the arguments --pyodide --node-modules is required" in capsys.readouterr().err
    assert command.main([str(tmp_path / "b"), "--node-modules", str(tmp_path)]) == 2
    assert "npm install python-wasm" in capsys.readouterr().err
