"""The timeline of a cluster and of a shared scenario."""

import json
import re

import pytest

from playground.clusters.history.story import cluster_timeline
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.shares import share
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.gallery import gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.sim.trace_events import CONTROLLERS
from tests.clusters.builders import make_cluster, make_node, make_pod, run, with_programs
from tests.rare_cycles import run_until
from tests.tables import table

pytestmark = pytest.mark.django_db


@pytest.fixture
def preempted(wakes):
    """A pod that evicted another, and two that are alike and fit nowhere."""
    cluster = make_cluster()
    high = table(__file__, "preempted")
    apply_documents(cluster=cluster, objects=[high, make_node("n1", cpu="4"), make_pod("small", cpu="3")])
    run_until(cluster, "idle")
    more = [
        make_pod("vip", cpu="3", priorityClassName="high"),
        make_pod("big-0", cpu="9"),
        make_pod("big-1", cpu="9"),
    ]
    apply_documents(cluster=cluster, objects=more)
    run_until(cluster, "idle")
    cluster.refresh_from_db()
    return cluster


def html_of(client, url):
    return " ".join(client.get(url).content.decode().split())


def lanes(timeline):
    begun = timeline.from_ns
    return {
        lane.pod: [(s.state, (s.from_ns - begun) / 1e9, (s.to_ns - begun) / 1e9, s.node) for s in lane.spans]
        for lane in timeline.pods
    }


def test_a_cluster_s_log_gives_the_lanes_of_its_pods(preempted):
    found = cluster_timeline(preempted)
    assert lanes(found)["default/small"] == [("terminating", 0.0, 30.0, "n1")]
    assert lanes(found)["default/vip"] == [("nominated", 0.0, 30.0, "n1")]
    [eviction] = found.evictions
    assert (eviction.preemptor, eviction.victim) == ("default/vip", "default/small")


def test_the_page_draws_lanes_and_says_them_and_folds_what_is_alike(client, preempted):
    html = html_of(client, f"/c/{preempted.public_id}/timeline/")
    assert 'aria-label="30.0 s nominated"' in html
    assert 'data-for="default/vip"' in html and "30.0 s terminating; on n1; evicted for vip" in html
    assert "× 2" in html and html.count('class="tl-row" data-id="default/big-') == 1
    assert "4 of 4 pods that changed are shown" in html
    assert "held" in html and re.search(r'data-id="default/vip"><title>default/vip, 3 CPU, nominated', html)


def test_a_stretch_is_chosen_by_address_and_bad_ones_are_the_whole(client, preempted):
    url = f"/c/{preempted.public_id}/timeline/"
    html = html_of(client, f"{url}?from=10000&to=20000&q=vip")
    assert "00:10.0 to 00:20.0" in html and 'viewBox="10000.0 0 10000.0 14"' in html
    assert "1 of 1 pod named so is shown" in html
    for odd in ("?from=99999999", "?from=20&to=10", "?to=-5", "?from=x&sort=y&n=0"):
        assert "00:00.0 to 00:30.0" in html_of(client, url + odd), odd


def test_htmx_gets_the_drawing_alone(client, preempted):
    part = client.get(f"/c/{preempted.public_id}/timeline/", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div class="stack g tline" id="tl"') and "<html" not in part


def test_the_file_has_what_the_page_draws(client, preempted):
    response = client.get(f"/c/{preempted.public_id}/timeline/trace.json")
    events = json.loads(response.content)["traceEvents"]
    assert "attachment" in response["Content-Disposition"]
    [nominated] = [event for event in events if event["name"] == "nominated"]
    assert (nominated["ts"], nominated["dur"]) == (0, 30e6)


def test_a_share_has_the_lanes_of_its_run(client):
    text = gallery_text("gang-timeout")
    shared = share(document=text.encode(), owner=None).scenario
    url = f"/s/{shared.public_id}/timeline/"
    html = html_of(client, url)
    assert 'aria-label="1 min at Permit; on node-e"' in html and "waits at Permit" in html
    drawn = {
        lane.pod: len(lane.spans) for lane in run_scenario(load_scenario(text), timed=True).timeline().pods
    }
    events = json.loads(client.get(url + "trace.json").content)["traceEvents"]
    for pod, n in drawn.items():
        assert (
            sum(
                e["ph"] == "X" and e.get("args", {}).get("pod") == pod and "cycle" not in e["args"]
                for e in events
            )
            == n
        )


def test_controllers_have_lanes_in_the_drawing_and_the_file_of_cluster_and_share(client, wakes):
    cluster = with_programs(make_pod("web", cpu="3"))
    run(cluster, until="2m")
    shared = share(document=make_text(cluster=cluster).text.encode(), owner=None).scenario
    for url in (f"/c/{cluster.public_id}/timeline/", f"/s/{shared.public_id}/timeline/"):
        html = html_of(client, url)
        assert 'aria-label="Cluster autoscaler: 3 marks"' in html and 'class="c-ring c-aut-l"' in html
        assert "removes Node" in html
        events = json.loads(client.get(url + "trace.json").content)["traceEvents"]
        [thread] = [
            e["tid"] for e in events if e["ph"] == "M" and e["args"].get("name") == "cluster-autoscaler"
        ]
        runs = [e for e in events if e["pid"] == CONTROLLERS and e["ph"] == "i"]
        assert {e["tid"] for e in runs} == {thread} and {e["cat"] for e in runs} == {"looks", "takes"}


def test_what_happened_in_one_moment_is_drawn_a_second_long(client, wakes):
    cluster = make_cluster()
    apply_documents(
        cluster=cluster,
        objects=[make_node("n1", cpu="4"), make_pod("web", cpu="1"), make_pod("big", cpu="9")],
    )
    run_until(cluster, "idle")
    cluster.refresh_from_db()
    assert cluster.now_ns == cluster.start_ns
    html = html_of(client, f"/c/{cluster.public_id}/timeline/")
    assert "00:00.0: all in one moment" in html and "No virtual time has passed" in html
    assert lanes(cluster_timeline(cluster)) == {
        "default/big": [("unschedulable", 0.0, 1.0, "")],
        "default/web": [("running", 0.0, 1.0, "n1")],
    }
