"""A live cluster with everything, taken away as a file: replayed with the extender gone."""

from typing import Any

import pytest
import yaml

from playground.clusters.drive.config import set_config
from playground.clusters.drive.runs import decide_permit, request_run
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Cycle, LogEntry
from playground.clusters.objects.apply import apply_documents
from playground.engine.scenarios import run_fresh
from playground.scenarios import selectors
from playground.scenarios.services.forking import make_from_cluster, make_text
from playground.scenarios.services.moments import request_moment
from tests.engine.extender_server import serving
from tests.manifests import priority_class, scheduler_config
from tests.scenarios.documents import node, pod

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _allow_loopback(settings: Any) -> None:
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]


def answer(path: str, body: Any) -> Any:
    """Vetoes node-c, prefers node-b, agrees with every preemption."""
    if path.endswith("preempt"):
        return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
    names = body.get("NodeNames") or body.get("nodenames")
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": 10 if name == "node-b" else 1} for name in names]
    return {"NodeNames": [name for name in names if name != "node-c"], "FailedNodes": {"node-c": "not today"}}


def approved(name: str, **spec: Any) -> dict[str, Any]:
    made = pod(name, **spec)
    made["metadata"]["annotations"] = {
        "playground.dev/approval": "required",
        "playground.dev/approval-timeout": "90s",
    }
    return made


def lived(work) -> Cluster:
    """Permit waits (one allowed, one timed out), an extender that vetoes and prefers, and a preemption."""
    cluster = create_cluster(name="live", seed=3, start_ns=1_767_312_000_000_000_000)

    def run(until: str = "idle") -> None:
        request_run(cluster=cluster, until=until)
        work()
        cluster.refresh_from_db()

    with serving(answer) as server:
        config = scheduler_config(
            profiles=[{"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}],
            extenders=[
                {
                    "urlPrefix": f"http://127.0.0.1:{server.port}",
                    "nodeCacheCapable": True,
                    "weight": 5,
                    "httpTimeout": "2s",
                    "filterVerb": "filter",
                    "prioritizeVerb": "prioritize",
                    "preemptVerb": "preempt",
                }
            ],
        )
        set_config(cluster=cluster, config=config)
        apply_documents(
            cluster=cluster,
            objects=[
                priority_class("urgent", 1000),
                *(node(f"node-{letter}") for letter in "abc"),
                *(pod(f"web-{i}", cpu="1500m") for i in range(4)),
                approved("asks", cpu="500m"),
                approved("forgotten", cpu="500m"),
            ],
        )
        run()
        decide_permit(cluster=cluster, namespace="default", name="asks", decision="allow")
        run("120s")
        apply_documents(cluster=cluster, objects=[pod("urgent", cpu="3", priorityClassName="urgent")])
        run()
    return cluster


def test_it_replays_to_the_same_digest_with_the_extender_gone(work):
    cluster = lived(work)
    cycles = Cycle.objects.filter(cluster=cluster).order_by("number")
    outcomes = set(cycles.values_list("outcome", flat=True))
    assert {"bound", "preempting"} <= outcomes
    assert LogEntry.objects.filter(cluster=cluster, kind="extender").exists()
    assert LogEntry.objects.filter(cluster=cluster, kind="permit").exists()
    made = make_text(cluster=cluster)
    assert {call["verb"] for call in yaml.safe_load(made.text)["extenders"]["cassette"]} == {
        "filter",
        "prioritize",
        "preempt",
    }
    run = run_fresh(made.text)
    assert not run.notes
    assert [cycle.digest for cycle in run.cycles] == list(cycles.values_list("digest", flat=True))
    shared = make_from_cluster(cluster=cluster)
    work()
    proof = shared.scenario.verifications.get()
    assert proof.is_proof, proof.sentence
    assert proof.n_same == cycles.count()


def test_its_past_is_shown_with_the_extender_gone(work):
    cluster = lived(work)
    for cycle in Cycle.objects.filter(cluster=cluster).order_by("number"):
        request_moment(cluster=cluster, cycle=cycle.number)
        work()
        state, note = selectors.moment(cluster=cluster, cycle=cycle.number)
        assert state is not None and not note
        on = {one["name"]: one for one in state["pods"]}
        if cycle.outcome == "bound" and cycle.pod_name != "asks":
            assert on[cycle.pod_name]["node_name"] == cycle.node
    first_wait = Cycle.objects.filter(cluster=cluster, pod_name="asks").first()
    state, _ = selectors.moment(cluster=cluster, cycle=first_wait.number)
    assert next(item["pod"] for item in state["queue"]["permit"]) == "default/asks"
    assert next(one for one in state["pods"] if one["name"] == "asks")["reserved"] == first_wait.node


def test_it_can_be_redacted_cassette_and_all(work):
    cluster = lived(work)
    made = make_text(cluster=cluster, redact=True)
    for secret in ("node-a", "node-b", "web-0", "asks", "forgotten", "127.0.0.1", "not today"):
        assert secret not in made.text, secret
