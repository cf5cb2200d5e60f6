"""A pod's story puts queue moves and attempts in the order they took turns, and lanes over virtual time."""

import pytest
from django.urls import reverse

from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import decide_permit, request_run
from playground.clusters.history.story import pod_traces
from playground.clusters.models import QueueMove
from playground.web.pods.present import story_steps, swim_lanes
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.markup import html_of
from tests.web.factories import SECOND_NS, START_NS

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(cluster):
    return cluster


def test_moves_and_attempts_of_one_moment_take_turns(told):
    story = pod_traces(told, "default", "train-2")
    steps = story_steps(story, now_ns=START_NS + 12 * SECOND_NS)
    titles = [step.title for step in steps if step.title.startswith(("Into", "Attempt"))]
    assert titles == ["Into activeQ", "Attempt 1, cycle 3", "Into Unschedulable", "Into activeQ"]
    waiting = next(step for step in steps if step.title == "Into Unschedulable")
    assert waiting.stayed_ns == 6 * SECOND_NS and [quiet.event for quiet in waiting.quiet] == ["NodeAdd"]
    assert steps[-1].asked == "NodeResourcesFit" or any(step.asked for step in steps)


def test_lanes_add_up_to_the_time_shown(told):
    story = pod_traces(told, "default", "train-2")
    now_ns = START_NS + 12 * SECOND_NS
    swim = swim_lanes(story, story_steps(story, now_ns=now_ns), start_ns=told.start_ns, now_ns=now_ns)
    assert swim is not None
    totals = {lane["name"]: lane["total"] for lane in swim["lanes"]}
    assert totals["Unschedulable"] == "6.0 s" and totals["activeQ"] == "3.0 s" and totals["Cycle"] == "1"
    assert swim["ticks"][0][1] == "00:03.0" and swim["ticks"][-1][1] == "00:12.0"


def test_lanes_are_left_out_when_their_beginning_was_dropped(told):
    QueueMove.objects.filter(source="").delete()
    story = pod_traces(told, "default", "train-2")
    steps = story_steps(story, now_ns=START_NS)
    assert swim_lanes(story, steps, start_ns=START_NS, now_ns=START_NS) is None


def test_the_page_names_event_hint_and_for_each_node_plugin_and_reason(client, told):
    html = html_of(client.get(reverse("web:pod", args=[told.public_id, "default", "train-2"])))
    for words in ("AssignedPodDelete", "a pod left its node", "1 event without effect", "Where it was",
                  "What stopped each node"):  # fmt: skip
        assert words in html, words


def test_the_page_says_what_the_schedulers_cache_holds_of_a_pod(client):
    pod = make_pod("a", "2")
    pod["metadata"]["annotations"] = {"playground.dev/approval": "required"}
    cluster = make_cluster(make_node("n1", "2"), pod, make_pod("b", "2"))
    profile = {"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    set_config(cluster=cluster, config={**kind, "profiles": [profile]})

    def run():
        request_run(cluster=cluster)
        advance(cluster_id=cluster.pk, memory=EngineMemory())

    def told_of(name):
        url = reverse("web:inspector", args=[cluster.public_id])
        part = html_of(client.get(url, {"pod": f"default/{name}"}, HTTP_HX_REQUEST="true"))
        page = html_of(client.get(reverse("web:pod", args=[cluster.public_id, "default", name])))
        state = part.partition("cache</dt><dd>")[2].partition("<")[0]
        assert state and state in page
        return state

    run()
    assert told_of("a") == "assumed: counted on n1 until its binding is heard of"
    assert told_of("b") == "not in it: pending pods take no room"
    # Its cycle's page lets one decide, and the board counts what it holds as the scheduler does.
    cycle = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, 1])))
    assert "waits at Permit on" in cycle and 'id="permit-allow"' in cycle
    assert cycle.index('id="permit"') < cycle.index('id="filter"')
    url = reverse("web:board", args=[cluster.public_id])
    board = html_of(client.get(url, {"node": "n1"}))
    assert "n1: CPU 2 of 2," in board and "reserved, waiting at Permit" in board
    assert "1 reserved with 2 CPU" in board and "1 reserved with 2 CPU, 0" not in board
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    run()
    assert told_of("a") == "added: counted on n1"
    after = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, 1])))
    assert 'id="permit-allow"' not in after and "1 reserved" not in html_of(client.get(url))
