"""What a scheduler reports of its decisions, as Events or in its log, beside a dump."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.incident.as_scenario import scenario_of
from scheduler_core.incident.reported import NO_VICTIMS, Reported, logged
from scheduler_core.incident.sources import read_incident
from scheduler_core.incident.verdicts import judge_incident
from scheduler_core.objects.defaults import prepare
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import run_scenario
from tests.scheduler_core.whatif.random_clusters import node, pod
from tests.tables import table

DAY = "2026-11-20T02:10"


def created(manifest: dict[str, Any], second: int) -> dict[str, Any]:
    meta = manifest["metadata"] | {"creationTimestamp": f"{DAY}:{second:02}Z"}
    return dict(prepare({**manifest, "metadata": meta}))


DUMP = [
    created(node("n1", cpu="4", labels={"disk": "hdd"}), 0),
    created(node("n2", cpu="4", labels={"disk": "ssd"}), 0),
    created(pod("fine", on="n2", nodeSelector={"disk": "ssd"}, requests={"cpu": "100m"}), 10),
    created(pod("wrong", on="n1", nodeSelector={"disk": "ssd"}, requests={"cpu": "1"}), 11),
    created(pod("full", on="n1", requests={"cpu": "1"}), 12),
    created(pod("huge", requests={"cpu": "9"}), 13),
    created(pod("urgent", requests={"cpu": "3"}), 14),
]


def event(second: int, reason: str, name: str, message: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": name}
    head = {"apiVersion": "v1", "kind": "Event", "metadata": {}, "lastTimestamp": f"{DAY}:{second}Z"}
    return {**head, "reason": reason, "message": message, "involvedObject": about,
            "source": {"component": "default-scheduler"}, **more}  # fmt: skip


REFUSED = "0/2 nodes are available: 2 Insufficient cpu."
EVENTS = table(__file__, "EVENTS")
LOG = table(__file__, "LOG")


def written(what: str, folder: Path) -> Path:
    path = folder / what
    path.write_text(
        json.dumps({"apiVersion": "v1", "items": EVENTS, "kind": "List"}, indent=4)
        if what == "events.json"
        else "\n".join(LOG)
    )
    os.utime(path, (1_795_140_900, 1_795_140_900))  # the log names no year
    return path


FULL = ("unknown", "NodeResourcesFit")
"""The other node is emptier; but what pods were there that are not in the dump?"""


@pytest.mark.parametrize("what", ["events.json", "scheduler.log"])
def test_reports_are_judged_on_what_a_dump_has_by_then(what: str, tmp_path: Path) -> None:
    path = written(what, tmp_path)
    incident = read_incident([path], DUMP)
    found = {one.decision.name: one for one in judge_incident(incident, release=DEFAULT).all}
    assert {name: (one.found.verdict, one.found.plugin) for name, one in found.items()} == {
        "fine": ("agree", ""), "wrong": ("infeasible", "NodeAffinity"), "full": FULL,
        "huge": ("agree", "NodeResourcesFit"), "urgent": ("unknown", ""),
    }  # fmt: skip
    assert found["huge"].decision.message == REFUSED
    assert (found["urgent"].decision.node, found["urgent"].decision.victims) == ("n2", ["default/victim"])
    assert found["urgent"].found.reasons == (NO_VICTIMS,)
    assert any("Pod deletions" in name for name in incident.missing)
    assert sum(incident.missing.values()) == (4 if what == "events.json" else 2)
    recorded = scenario_of(incident, release=DEFAULT, recorded=True)
    assert run_scenario(recorded).placement()["default/fine"] == "n2"


def test_events_and_the_log_of_one_scheduler_are_the_same_decisions(tmp_path: Path) -> None:
    paths = [written(what, tmp_path) for what in ("events.json", "scheduler.log")]
    both = read_incident(paths, DUMP)
    assert sorted(one.name for one in both.decisions if one.kind == "bind") == ["fine", "full", "wrong"]


def test_without_a_dump_all_that_is_known_is_what_was_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written("events.json", tmp_path)
    assert main(["import-incident", str(path)]) == 0
    said = capsys.readouterr().out
    assert "cannot be known 5" in said and "Not known: changes of nodes before the dump." in said
    assert "Not known: 2 failed attempts that say only how many they were." in said
    path.write_text(json.dumps({"items": [{"kind": "Pod"}]}))
    assert main(["import-incident", str(path)]) == 2
    assert "lists a Pod, which is no Event" in capsys.readouterr().err


def test_a_line_says_when_who_and_where() -> None:
    [at_ns] = {one.at_ns for line in LOG[2:3] if (one := logged(line, 1999))}
    text = logged(LOG[4], 2026)
    assert text == Reported(
        at_ns - 7 * 10**9, "no-node", "kube-scheduler", "default", "huge", message=REFUSED
    )
    assert logged("no line of a log", 2026) is None
