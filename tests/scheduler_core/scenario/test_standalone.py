"""A replay in one file: whole, self-contained, escaped, bounded, made by the command line and read by it again."""

import json
import re
import zlib
from base64 import urlsafe_b64decode
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import run_scenario, scenario_digest
from scheduler_core.scenario.carried import CarriedError, carried_in
from scheduler_core.scenario.gallery import ORDER, gallery_scenario, gallery_text
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario

ROOT = Path(__file__).resolve().parents[3]
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- {{STYLE}} & \"'"


def record_in(page: str) -> Any:
    found = re.search(r'id="record" data-sha256="[0-9a-f]{64}">([^<]*)</script>', page)
    assert found
    return json.loads(zlib.decompress(urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))))


@pytest.mark.parametrize("name", ORDER)
def test_every_decision_of_every_gallery_scenario_is_in_its_file_and_so_is_the_scenario(name: str) -> None:
    scenario = gallery_scenario(name)
    expected = run_scenario(scenario)
    made = standalone(scenario)
    assert made.run.digest == expected.digest, "looking at the board changes nothing"
    record = record_in(made.html)
    assert [cycle["digest"] for cycle in record["cycles"]] == [trace.digest for trace in expected.cycles]
    carried = carried_in(made.html.encode())
    assert carried is not None and carried.digest == record["digest"] == scenario_digest(scenario)
    pods: dict[str, Any] = {}
    boards = iter(record["boards"])
    for trace in expected.cycles:
        change = next((one for one in boards if one["cycle"] == trace.number), None)
        if change is None:
            break  # members of a group are looked at together
        pods |= change.get("pods", {})
        if trace.outcome == "bound" and pods[trace.pod]:
            assert record["names"][pods[trace.pod][0]] == trace.node


def test_the_same_scenario_gives_the_same_bytes() -> None:
    one, other = (standalone(gallery_scenario("preemption-budget"), note="x").html for _ in range(2))
    assert one == other


def test_what_a_person_wrote_never_becomes_markup() -> None:
    scenario = make_scenario(
        make_node("a"), make_pod("p", labels={"x": "y"}), title=EVIL, lesson=EVIL, name="evil"
    )
    page = standalone(scenario, note=EVIL, address='https://host.example/"><script>').html
    assert page.count("<script") == 3 and page.count("</script>") == 3
    assert "alert(1)</script>" not in page and "<img" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert record_in(page)["note"] == EVIL == record_in(page)["title"]
    assert page.count("{{STYLE}}") == 2, "the words of a title are not filled in"


def test_the_file_allows_its_own_script_and_style_and_nothing_else() -> None:
    page = standalone(gallery_scenario("preemption-budget")).html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy and policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"unsafe|https?:|\*", policy[1])
    folder = files("scheduler_core.scenario.standalone") / "page"
    for name in ("carried.js", "standalone.js"):
        text = (folder / name).read_text("utf-8")
        assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp|</", text), (
            name
        )


def test_a_replay_that_does_not_fit_is_refused_with_its_size() -> None:
    with pytest.raises(
        TooLargeForOneFile, match=r"replay of 19 cycles has \d\d,\d{3} bytes as a file, and 20,000 are"
    ):
        standalone(gallery_scenario("gpu-isolation"), max_bytes=20_000)


def test_its_colours_are_the_sites() -> None:
    def tokens(text: str) -> dict[str, str]:
        found = re.findall(r"--([a-z0-9-]+):\s*((?:[^;(]|\([^)]*\))+);", text)
        return {name: re.sub(r"\s", "", value) for name, value in found}

    site = tokens((ROOT / "static/css/playground.css").read_text())
    own = tokens(
        files("scheduler_core.scenario.standalone").joinpath("page/standalone.css").read_text("utf-8")
    )
    assert len(own) > 20
    assert {name: site.get(name) for name in own} == own


def test_the_command_writes_a_file_and_reads_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, page = tmp_path / "s.yaml", tmp_path / "s.html"
    source.write_text(gallery_text("preemption-budget"))
    assert main(["replay", str(source), "--html", str(page), "--note", "See node-b.", "--opens-at", "1"]) == 0
    record = record_in(page.read_text())
    assert (record["note"], record["opensAt"]) == ("See node-b.", 1)
    assert main(["replay", str(page), "--check"]) == 0
    assert "7 of 7 expectations hold" in capsys.readouterr().out
    assert main(["replay", str(source), "--html", str(page), "--opens-at", "9"]) == 2
    assert "--opens-at 9: there is no such cycle, the run has 2" in capsys.readouterr().err


def test_a_changed_file_is_refused_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = standalone(gallery_scenario("preemption-budget")).html
    place = page.index('id="scenario">1.') + len('id="scenario">1.')
    mangled = f"{page[:place]}{'0' * 64}{page[place + 64 :]}"
    with pytest.raises(CarriedError):
        carried_in(mangled.encode())
    path = tmp_path / "mangled.html"
    path.write_text(mangled)
    assert main(["replay", str(path)]) == 2
    assert "it was changed" in capsys.readouterr().err
