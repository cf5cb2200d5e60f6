"""What schedulers decided, from audit logs: what is known of it, each decision beside ours, and a scenario of it."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidObject
from scheduler_core.incident.as_scenario import scenario_of
from scheduler_core.incident.changes import Incident
from scheduler_core.incident.sources import read_incident
from scheduler_core.incident.verdicts import JudgedIncident, LiveIncident, judge_incident
from scheduler_core.incident.watched import IN_A_GAP, WatchRecord
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.fields import format_time_ns, parse_time_ns
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.redact import Renaming
from tests.changes import one_in
from tests.scheduler_core.incident.audited import Audited, Manifest, churn, written, written_long
from tests.scheduler_core.whatif.random_clusters import node, pod
from tests.tables import table

SEEDS = range(6)
KUBE_API = Path(__file__).parents[2] / "kube_api/data"


def incident_of(events: list[Manifest], tmp_path: Path, **more: Any) -> Incident:
    return read_incident([written(events, tmp_path / "audit.log")], **more)


def judged(events: list[Manifest], tmp_path: Path) -> JudgedIncident:
    return judge_incident(incident_of(events, tmp_path), release=DEFAULT)


def is_bind(event: Manifest) -> bool:
    return bool(event["objectRef"].get("subresource") == "binding")


@pytest.mark.parametrize("seed", one_in(3, SEEDS, "scheduler_core/incident/"))
def test_a_scheduler_that_decides_as_ours_is_never_blamed(seed: int, tmp_path: Path) -> None:
    live = churn(seed)
    verdicts = judged(live.events, tmp_path)
    bound = [one for one in verdicts.all if one.decision.kind == "bind"]
    assert len(bound) == sum(map(is_bind, live.events)) > 60
    assert {one.decision.kind for one in verdicts.all} == {"bind", "preempt", "no-node"}
    assert verdicts.counts["unknown"] == 0
    assert [one.document() for one in verdicts.unlike] == []


@pytest.mark.parametrize("seed", one_in(3, SEEDS, "scheduler_core/incident/"))
def test_a_scheduler_whose_cache_is_behind_is_not_blamed(seed: int, tmp_path: Path) -> None:
    """What is written a moment before a Binding, about another object, may not have reached its author."""
    events, draw = churn(seed).events, Random(seed)
    n_late = 0
    for at in range(2, len(events)):
        bind, started, change = events[at - 2 : at + 1]
        about = (
            bind["objectRef"]["name"],
            ((bind.get("requestObject") or {}).get("target") or {}).get("name"),
        )
        is_other = "kubectl" in change["userAgent"] and change["objectRef"]["name"] not in about
        if is_bind(bind) and is_other and draw.random() < 0.7:
            events[at - 2 : at + 1] = {**change, "stageTimestamp": bind["stageTimestamp"]}, bind, started
            n_late += 1
    verdicts = judged(events, tmp_path)
    assert n_late > 10
    assert len(verdicts.unlike) <= len(verdicts.all) // 100, [one.document() for one in verdicts.unlike]


@pytest.mark.parametrize("seed", one_in(3, SEEDS[:3], "scheduler_core/incident/"))
def test_watches_say_what_an_audit_log_says(seed: int, tmp_path: Path) -> None:
    """Followed while it happens, in batches of any length, or read afterwards."""
    live, draw = churn(seed), Random(seed)
    verdicts = judged(live.lines, tmp_path)
    logged = judged(live.events, tmp_path)
    decided = [one.document() | {"by": ""} for one in verdicts.all]
    assert [(one["pod"], one["kind"], one["node"]) for one in decided] == [
        (f"{one.decision.namespace}/{one.decision.name}", one.decision.kind, one.decision.node)
        for one in logged.all
    ]
    assert verdicts.counts["unknown"] == 0 and not verdicts.unlike
    following = LiveIncident(release=DEFAULT)
    now = []
    for line in live.lines:
        following.take(line)
        if draw.random() < 0.2:
            now += following.judge(parse_time_ns(line["at"]))
    now += following.judge(2**62)
    assert [one.document() | {"by": ""} for one in now] == decided


@pytest.mark.parametrize(("at", "pause_s"), [(3, 1.5), (11, 4.0)])
def test_a_binding_that_takes_long_is_in_a_row_with_what_was_decided_after_it(
    at: int, pause_s: float
) -> None:
    """A real scheduler decided by name, and its Bindings came in another order: the one of the first pod last."""
    recorded = json.loads((KUBE_API / "kube_scheduler_decides.json").read_text())["b-bind"]
    following, now_s, found = LiveIncident(release=DEFAULT), 1_800_000_000.0, []
    objects = {item["metadata"]["name"]: prepare(item) for item in recorded["objects"]}

    def take(type_: str, item: Any) -> None:
        following.take({"at": format_time_ns(int(now_s * 10**9)), "type": type_, "object": item})

    for item in objects.values():
        take("LISTED" if item["kind"] == "Node" else "ADDED", item)
    for number, request in enumerate(recorded["requests"]):
        for _ in range(int(10 * pause_s) if number == at else 1):
            now_s += 0.1
            found += following.judge(int(now_s * 10**9))
        pod = objects[request["path"].split("/")[-2]]
        take("MODIFIED", {**pod, "spec": {**pod["spec"], "nodeName": request["body"]["target"]["name"]}})
    found += following.judge(2**62)
    assert len(found) == 12 and all(one.found.agrees for one in found)


def test_a_watch_that_was_cut_off_does_not_know_what_it_missed() -> None:
    following = LiveIncident(release=DEFAULT)
    lines = [
        {"type": "LISTED", "object": prepare(node("n0"))},
        {"type": "NOT_KNOWN", "what": "PersistentVolume (no right to list persistentvolumes)"},
        {"type": "LISTED", "object": prepare(pod("old"))},
        {"type": "MODIFIED", "object": prepare(pod("old", on="n0")), "gap": True},
        {"type": "ADDED", "object": prepare(pod("new", on="n0")), "gap": True},
        {"type": "ADDED", "object": prepare(pod("static", on="n0"))},
        {"type": "ADDED", "object": prepare(pod("last"))},
        {"type": "MODIFIED", "object": prepare(pod("last", on="n0"))},
    ]
    for line in lines:
        following.take({"at": "2026-01-01T00:00:00Z", **line})
    found = {one.decision.name: (one.found.verdict, one.found.reasons) for one in following.judge(2**62)}
    assert found == {
        "old": ("unknown", (IN_A_GAP,)), "new": ("unknown", (IN_A_GAP,)), "last": ("agree", ())
    }  # fmt: skip
    with pytest.raises(ValueError, match="after the beginning"):
        following.take({"at": "2026-01-01T00:00:00Z", **lines[0]})


@pytest.mark.parametrize(
    ("lacking", "plugin", "verdict"),
    table(__file__, "what_may_explain_a_difference_and_is_not_known_is_named"),
)
def test_what_may_explain_a_difference_and_is_not_known_is_named(
    lacking: str, plugin: str, verdict: str
) -> None:
    following = LiveIncident(release=DEFAULT)
    asks: dict[str, Any] = {"NodeAffinity": {"nodeSelector": {"disk": "ssd"}}}
    wrong = prepare(pod("p", **asks.get(plugin, {"requests": {"cpu": "99"}})))
    for line in (
        {"type": "NOT_KNOWN", "what": f"{lacking} (no right)"},
        {"type": "LISTED", "object": prepare(node("n0"))},
        {"type": "ADDED", "object": wrong},
        {"type": "MODIFIED", "object": {**wrong, "spec": {**wrong["spec"], "nodeName": "n0"}}},
    ):
        following.take({"at": "2026-01-01T00:00:00Z", **line})
    [one] = following.judge(2**62)
    assert (one.found.verdict, one.found.plugin) == (verdict, plugin)


def test_a_planted_fault_is_named_by_its_plugin(tmp_path: Path) -> None:
    live = Audited(seed=3)
    for number in range(4):
        live.write(
            node(f"n{number}", cpu="4", memory="16Gi", pods="20", labels={"disk": "hdd" if number else "ssd"})
        )
    wanted, wrong = Counter[str](), []
    for number in range(12):
        selector: dict[str, Any] = {"nodeSelector": {"disk": "hdd"}} if number % 3 == 0 else {}
        live.write(pod(f"p{number}", requests={"cpu": "200m", "memory": "256Mi"}, **selector))
        live.go(1_000_000_000)
        bind = live.events[-2]
        assert is_bind(bind)
        if number % 3 == 0:  # a filter left out
            bind["requestObject"] = {"kind": "Binding", "target": {"kind": "Node", "name": "n0"}}
            wanted["NodeAffinity"] += 1
            wrong.append(f"default/p{number}")
        live.events.pop()  # what a kubelet says of the right node
    verdicts = judged(live.events, tmp_path)
    found = Counter(one.found.plugin for one in verdicts.unlike if one.found.verdict == "infeasible")
    assert found == wanted
    named = [f"{one.decision.namespace}/{one.decision.name}" for one in verdicts.unlike]
    assert set(wrong) <= set(named)


@pytest.mark.parametrize(
    ("level", "unknown", "missing"),
    [
        ("RequestResponse", None, None),
        ("Metadata", "the log does not say to which node (level Metadata)", "writes without their objects"),
    ],
)
def test_what_a_level_leaves_out_is_said(
    level: str, unknown: str | None, missing: str | None, tmp_path: Path
) -> None:
    events = churn(1, n_steps=30, level=level).events
    incident = incident_of(events, tmp_path)
    verdicts = judge_incident(incident, release=DEFAULT)
    assert incident.levels == {level: len(events)}
    if unknown is None:
        assert not verdicts.counts["unknown"] and not incident.missing
        return
    assert verdicts.counts["unknown"] == len(verdicts.all) > 10
    assert {reason for one in verdicts.all for reason in one.found.reasons} == {unknown}
    assert any(what.startswith(str(missing)) and n for what, n in incident.missing.items())


def test_objects_of_before_the_log_come_from_their_first_change_or_from_a_dump(tmp_path: Path) -> None:
    live = Audited(seed=1)
    live.write(node("n0", cpu="4"))
    live.write(pod("there", requests={"cpu": "3"}))
    live.go(1_000_000_000)
    before = len(live.events)
    dump = list(live._known.values())
    live.write(pod("late", requests={"cpu": "500m"}))
    live.go(1_000_000_000)
    later = live.events[before:]
    alone = incident_of(later, tmp_path)
    assert not alone.before
    assert [one.unknown for one in alone.decisions] == ["the log does not have the node, nor does a dump"]
    known = incident_of(later, tmp_path, dump=dump)
    assert {key[2] for key in known.before} == {"n0", "there"}
    assert judge_incident(known, release=DEFAULT).counts["agree"] == 1
    seen = incident_of([live.events[1], *live.events[before - 1 :]], tmp_path)
    assert [key[2] for key in seen.before] == [] and seen.n_events == 2 + len(later)


def test_a_log_that_is_still_written_ends_early_and_any_other_bad_line_is_named(tmp_path: Path) -> None:
    events = churn(1, n_steps=10).events
    path = written(events, tmp_path / "audit.log")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    assert read_incident([path]).n_events == len(events)
    lines = whole.splitlines(keepends=True)
    misshapen = json.dumps({**events[0], "responseStatus": ["200"]}).encode() + b"\n"
    for bad in (b'{"kind": "Pod", "apiVersion": "v1"}\n', misshapen):
        path.write_bytes(b"".join([*lines[:3], bad, *lines[3:]]))
        with pytest.raises(InvalidObject, match="line 4"):
            read_incident([path])
    packed = tmp_path / "audit.log.gz"
    packed.write_bytes(gzip.compress(whole))
    assert read_incident([packed]).n_events == len(events)


def test_the_logs_of_two_servers_are_one(tmp_path: Path) -> None:
    events = churn(2, n_steps=60).events
    paths = [written(events[i::2], tmp_path / f"{i}.log") for i in (0, 1)]
    one = judge_incident(incident_of(events, tmp_path), release=DEFAULT)
    two = judge_incident(read_incident(paths), release=DEFAULT)
    assert len(two.all) == len(one.all)


def test_an_incident_is_a_scenario_that_decides_as_it_was(tmp_path: Path) -> None:
    live = Audited(seed=5)
    for number in range(3):
        live.write(node(f"n{number}", cpu="4"))
    for number in range(6):
        live.write(pod(f"p{number}", requests={"cpu": "1"}))
        live.go(2_000_000_000)
    live.delete("Pod", "p0")
    live.go(60_000_000_000)
    incident = incident_of(live.events, tmp_path)
    found = run_scenario(scenario_of(incident, release=DEFAULT))
    assert sorted(one.pod for one in found.placements) == [f"default/p{number}" for number in range(6)]
    assert len(found.cycles) == len(incident.decisions)


@pytest.mark.parametrize("seed", one_in(2, SEEDS[:2], "scheduler_core/incident/"))
def test_an_incident_replays_as_recorded_or_as_ours_would_decide(seed: int, tmp_path: Path) -> None:
    live = churn(seed)
    incident = incident_of(live.lines, tmp_path)
    bound = [(f"{one.namespace}/{one.name}", one.node) for one in incident.decisions if one.kind == "bind"]
    recorded = scenario_of(incident, release=DEFAULT, recorded=True)
    assert [(step.bind.pod, step.bind.node) for step in recorded.steps if step.bind] == bound
    found = run_scenario(recorded)
    there = {f"{one.namespace}/{one.name}": one.node for one in incident.decisions if one.kind == "bind"}
    assert not found.cycles and found.placement().items() <= there.items()
    ours = run_scenario(scenario_of(incident, release=DEFAULT))
    assert len(ours.cycles) >= len(bound)
    middle = incident.decisions[len(incident.decisions) // 2].at_ns
    late = scenario_of(incident, release=DEFAULT, recorded=True, from_ns=middle)
    assert late.start_ns == middle and run_scenario(late)


def test_the_command_says_it_all_and_writes_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = churn(1, n_steps=40).events
    log, into = written(events, tmp_path / "audit.log"), tmp_path / "incident.json"
    assert main(["import-incident", str(log), "--scenario", str(into), "--redact"]) == 0
    said = capsys.readouterr().out
    assert f"{len(events):,} events" in said and "decisions by kube-scheduler/v1.37.0." in said
    document = json.loads(into.read_text())
    assert document["steps"] and not [
        word for word in ('kubernetes.io/hostname": "n0', 'p1"') if word in into.read_text()
    ]
    assert main(["import-incident", str(log), "--release", "1.34", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["counts"]["unknown"] == 0
    log.write_text("nothing of the kind\n")
    assert main(["import-incident", str(log)]) == 2
    assert "line 1" in capsys.readouterr().err


def test_of_a_record_the_newest_is_kept_and_is_an_incident_alone(tmp_path: Path) -> None:
    lines, path, most = churn(1).lines, tmp_path / "seen.jsonl", 200_000
    whole = {one.decision.name: one for one in judged(lines, tmp_path).all}
    record = WatchRecord(path, most)
    for line in lines:
        record.write(line)
    record.close()
    before, last = record.paths
    assert before.stat().st_size + last.stat().st_size <= most < sum(len(json.dumps(line)) for line in lines)
    for paths in ([last], [before, last]):
        kept = judge_incident(read_incident(paths), release=DEFAULT).all
        assert 5 < len(kept) < len(whole) and kept[-1].decision.name == [*whole][-1]
        assert not [one.document() for one in kept if not one.found.agrees]
    small = WatchRecord(path, 1_000)
    with pytest.raises(InvalidObject, match="too little"), closing(small):
        for line in lines:
            small.write(line)


@pytest.mark.parametrize("part", ["spec", "status"])
def test_a_part_that_is_none_is_named(part: str) -> None:
    line = {"at": "2026-01-01T00:00:00Z", "type": "LISTED", "object": {**prepare(pod("a")), part: "no"}}
    with pytest.raises(InvalidObject, match=f'{part}: "no" must be an object'):
        LiveIncident(release=DEFAULT).take(line)


def test_names_are_the_same_in_each_run_with_one_key() -> None:
    objects = [prepare(pod("acme")), prepare(node("n0"))]
    first, again, other = Renaming(b"secret"), Renaming(b"secret"), Renaming(b"another")
    renamed = [first.of(item) for item in objects]
    assert [again.of(item) for item in reversed(objects)] == renamed[::-1]
    assert {item["metadata"]["name"] for item in map(other.of, objects)}.isdisjoint(
        item["metadata"]["name"] for item in renamed
    )


@pytest.mark.parametrize(
    "n_bytes",
    [1_000_000, pytest.param(100_000_000, marks=pytest.mark.nightly("scheduler_core/incident/"), id="long")],
)
@pytest.mark.timeout(1200)
def test_a_long_log_is_read_in_bounded_time_and_memory(n_bytes: int, tmp_path: Path) -> None:
    log = written_long(tmp_path / "audit.log", n_bytes)
    # The kernel's own figure for a child begins with what its parent had.
    program = """
import sys, time
from pathlib import Path
from scheduler_core.cli.main import main
code, used = main(sys.argv[1:]), Path("/proc/self/status")
peak = used.read_text().partition("VmHWM:")[2].split()[0] if used.exists() else 0
print(code, time.process_time(), peak)
"""
    command = [sys.executable, "-c", program, "import-incident", str(log)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "does not fit 0; cannot be known 0" in said
    code, seconds, kib = map(float, said.splitlines()[-1].split())
    assert code == 0 and seconds < 60 and kib < 500_000
