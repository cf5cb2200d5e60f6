"""Spans of pods in virtual time, and the file for Perfetto that is made of them."""

import json

import jsonschema
import pytest
from trace_lanefix import fix_overlaps

from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.run import run
from scheduler_core.sim.timeline import STATES, pod_seen, timeline_of
from scheduler_core.sim.trace_events import trace_events
from tests.manifests import make_object, scenario
from tests.tables import table

SECOND_NS = 1_000_000_000
FORMAT = table(__file__, "FORMAT")
"""What the published format asks of an event, as far as its phases are used here."""


def timed(text):
    result = run(load_scenario(text), timed=True)
    return result, result.timeline()


def lanes_of(timeline):
    begun = timeline.from_ns
    return {
        lane.pod.partition("/")[2]: [
            (span.state, (span.from_ns - begun) / SECOND_NS, (span.to_ns - begun) / SECOND_NS, span.node)
            for span in lane.spans
        ]
        for lane in timeline.pods
    }


@pytest.mark.parametrize(("name", "lanes"), table(__file__, "LANES").items())
def test_a_lane_says_where_its_pod_was_and_until_when(name, lanes):
    _, timeline = timed(gallery_text(name).encode())
    found = lanes_of(timeline)
    assert {pod: [tuple(span) for span in spans] for pod, spans in lanes.items()} == {
        pod: found[pod] for pod in lanes
    }


@pytest.mark.parametrize("name", [name for name in ORDER if "at-scale" not in name][::3])
def test_stays_of_a_pod_follow_one_another_within_the_run_and_each_cycle_is_marked(name):
    result, timeline = timed(gallery_text(name).encode())
    for lane in timeline.pods:
        ends = [timeline.from_ns, *(at for span in lane.spans for at in span[1:3]), timeline.to_ns]
        assert ends == sorted(ends)
        assert {span.state for span in lane.spans} <= {*STATES}
    marked = sorted(cycle.number for lane in timeline.pods for cycle in lane.cycles)
    assert marked == [trace.number for trace in result.cycles]


def many():
    """A thousand pods, of which some wait for a node that comes after ten seconds, and some are evicted."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "30"}},
    }
    nodes = [{**node, "metadata": {"name": f"node-{i}"}} for i in range(30)]
    requests = {"resources": {"requests": {"cpu": "500m"}}, "name": "main", "image": "web"}
    pods = [
        make_object("v1", "Pod", f"web-{i}", namespace="default", spec={"containers": [requests]})
        for i in range(1000)
    ]
    vip = {**pods[0], "metadata": {"name": "vip", "namespace": "default"}}
    vip["spec"] = {"priority": 1000, "priorityClassName": "high", "containers": [requests]}
    high = table(__file__, "many")
    more = [{**node, "metadata": {"name": f"late-{i}"}} for i in range(5)]
    return scenario(
        name="many",
        objects=[high, *nodes, *pods],
        steps=[
            {"run": "idle"},
            {"apply": [vip]},
            {"run": "idle"},
            {"advance": "10s"},
            {"apply": more},
            {"advance": "1m"},
        ],
    )


@pytest.fixture(scope="module")
def thousand():
    return timed(json.dumps(many()).encode())


@pytest.mark.nightly("scheduler_core/sim/timeline.py", "scheduler_core/sim/trace_events.py")
def test_the_trace_of_a_thousand_pods_opens_in_a_reader_of_the_format(thousand, tmp_path, capsys):
    """A reader that nests slices as Perfetto does finds nothing to put right: no slice crosses another."""
    _, timeline = thousand
    made = trace_events(timeline, "many")
    jsonschema.validate(made, FORMAT)
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(made), "utf-8")
    fix_overlaps(str(before), str(after))
    slices = [event for event in made["traceEvents"] if event["ph"] == "X"]
    said = capsys.readouterr().out
    assert f"{len(slices)} slices, 0 new lanes" in said and "snapped 0" in said

    def read(events):
        return sorted(
            (event["pid"], event["tid"], event["ts"], event["dur"], event["name"]) for event in events
        )

    again = [event for event in json.loads(after.read_text("utf-8"))["traceEvents"] if event["ph"] == "X"]
    assert read(again) == read(slices)


def test_a_pod_that_another_placed_runs_since_it_was_made():
    made = {"namespace": "default", "name": "p", "creationTimestamp": "1970-01-01T00:00:02Z"}
    manifest = {"metadata": made, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    seen = pod_seen(9 * SECOND_NS, manifest)
    [lane] = timeline_of([seen], [], [], from_ns=0, to_ns=10 * SECOND_NS).pods
    assert [(span.state, span.from_ns // SECOND_NS) for span in lane.spans] == [("running", 2)]
