"""From a share to a cluster and back: forks, steps, what changed since, redaction, branches, moments."""

import pytest
import yaml

from playground.clusters.drive.config import set_config
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Cycle, Pod, Run
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import set_cordon
from playground.engine.scenarios import run_fresh
from playground.scenarios import selectors
from playground.scenarios.models import Moment, Origin, Scenario
from playground.scenarios.services.forking import do_next_step, fork, make_from_cluster, make_text
from playground.scenarios.services.moments import branch, request_moment
from playground.scenarios.services.shares import share
from tests.manifests import priority_class
from tests.scenarios.documents import PACKING, node, pod, small, small_text, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def placements(cluster: Cluster) -> dict[str, str]:
    return dict(Pod.objects.filter(cluster=cluster).order_by("name").values_list("name", "node_name"))


def run_all(cluster: Cluster, work) -> None:
    request_run(cluster=cluster, until="idle")
    work()
    assert not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists()
    cluster.refresh_from_db()


def made_by_hand(work, **how) -> Cluster:
    cluster = create_cluster(name="by hand", seed=11, start_ns=1_767_312_000_000_000_000, **how)
    objects = [
        priority_class("urgent", 1000),
        node("node-a", team="payments-secret"),
        node("node-b", cpu="2"),
        *(pod(f"web-{i}") for i in range(4)),
    ]
    apply_documents(cluster=cluster, objects=objects)
    run_all(cluster, work)
    late = [pod("late", cpu="3", priorityClassName="urgent", nodeSelector={"team": "payments-secret"})]
    apply_documents(cluster=cluster, objects=late)
    run_all(cluster, work)
    set_cordon(cluster=cluster, node="node-b", unschedulable=True)
    cluster.refresh_from_db()
    return cluster


def test_a_fork_decides_what_the_share_decided(work):
    scenario = share(document=small_text()).scenario
    cluster = fork(scenario=scenario)
    state = selectors.origin_state(cluster)
    assert not state.changed and state.next_words == "run until idle"
    assert do_next_step(cluster=cluster) == "run until idle"
    work()
    recorded = {cycle.pod_name: cycle.node for cycle in scenario.cycles.all()}
    assert placements(cluster) == recorded
    digests = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))
    assert digests == list(scenario.cycles.order_by("number").values_list("digest", flat=True))
    assert not selectors.origin_state(cluster).changed


def test_the_draft_says_that_it_changed(work):
    cluster = fork(scenario=share(document=small_text()).scenario)
    apply_documents(cluster=cluster, objects=[pod("one-more")])
    cluster.refresh_from_db()
    assert selectors.origin_state(cluster).changed
    shared = make_from_cluster(cluster=cluster)
    cluster.refresh_from_db()
    state = selectors.origin_state(cluster)
    assert not state.changed and state.origin.shared
    assert shared.scenario.forked_from == Scenario.objects.order_by("pk").first().public_id
    set_config(cluster=cluster, config=PACKING)
    assert selectors.origin_state(cluster).changed


def test_steps_of_every_kind_are_done_one_by_one(work):
    steps = [
        {"run": "idle"},
        {"apply": [pod("more")]},
        {"patch": {"kind": "Node", "name": "node-a", "patch": {"metadata": {"labels": {"disk": "ssd"}}}}},
        {"cordon": "node-b"},
        {"uncordon": "node-b"},
        {"drain": "node-a"},
        {"delete": {"kind": "Pod", "name": "giant"}},
        {"configure": PACKING},
        {"advance": "30s"},
        {"run": "cycle"},
    ]
    cluster = fork(scenario=share(document=small_text(steps=steps)).scenario)
    for _ in steps:
        do_next_step(cluster=cluster)
        work()
        cluster.refresh_from_db()
    state = selectors.origin_state(cluster)
    assert state.next_words == "" and not state.changed
    names = placements(cluster)
    assert "giant" not in names and names["more"]
    assert cluster.nodes.get(name="node-a").unschedulable
    assert "node-a" not in names.values()


def test_a_cluster_made_into_a_scenario_reproduces_its_decisions(work):
    cluster = made_by_hand(work)
    made = make_text(cluster=cluster)
    run = run_fresh(made.text)
    digests = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))
    assert [cycle.digest for cycle in run.cycles] == digests
    document = yaml.safe_load(made.text)
    assert all("nodeName" not in item["spec"] for item in document["objects"] if item["kind"] == "Pod")
    assert document["decisions"]["count"] == len(digests)


def test_it_can_be_made_up_to_any_cycle(work):
    cluster = made_by_hand(work)
    digests = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))
    for number in (1, 3, len(digests)):
        shared = make_from_cluster(cluster=cluster, cycle=number)
        assert shared.scenario.n_cycles == number
        found = list(shared.scenario.cycles.order_by("number").values_list("digest", flat=True))
        assert found == digests[:number]
    assert not Origin.objects.exists()


def test_names_can_be_taken_out_and_the_decisions_stay(work):
    cluster = made_by_hand(work)
    shared = make_from_cluster(cluster=cluster, made=make_text(cluster=cluster, redact=True))
    text = bytes(shared.scenario.document).decode()
    for secret in ("payments-secret", "node-a", "web-0", "name: late", "default/late", "by hand", "web:1"):
        assert secret not in text
    outcomes = list(shared.scenario.cycles.order_by("number").values_list("outcome", flat=True))
    own = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("outcome", flat=True))
    assert outcomes == own


def test_moments_of_a_cluster_are_the_board_as_it_was(work):
    cluster = made_by_hand(work)
    for cycle in Cycle.objects.filter(cluster=cluster).order_by("number"):
        if selectors.moment(cluster=cluster, cycle=cycle.number)[0] is None:
            request_moment(cluster=cluster, cycle=cycle.number)
            work()
        state, note = selectors.moment(cluster=cluster, cycle=cycle.number)
        assert not note
        if cycle.number <= 4:
            assert sum(bool(one["node_name"]) for one in state["pods"]) == cycle.number
        assert state["cycle"] == cycle.number and state["clock_ns"] == cycle.at_ns
        on = {one["name"]: one["node_name"] for one in state["pods"]}
        assert on[cycle.pod_name] == cycle.node
    assert "late" not in {one["name"] for one in selectors.moment(cluster=cluster, cycle=1)[0]["pods"]}, (
        "a pod that came later is not there yet"
    )
    assert not selectors.moment(cluster=cluster, cycle=5)[0]["nodes"][1]["unschedulable"]


def test_moments_of_a_scenario_come_all_at_once(work):
    scenario = share(document=small_text()).scenario
    request_moment(scenario=scenario, cycle=2)
    work()
    assert Moment.objects.filter(scenario=scenario).count() == 5
    state, _ = selectors.moment(scenario=scenario, cycle=2)
    assert sum(bool(one["node_name"]) for one in state["pods"]) == 2
    assert len(state["queue"]["active"]) == 3


def test_a_branch_begins_as_the_cluster_was(work):
    cluster = made_by_hand(work)
    first = Cycle.objects.get(cluster=cluster, number=2)
    made = branch(cluster=cluster, cycle=2)
    assert made.start_ns == first.at_ns and made.seed == cluster.seed
    assert sum(bool(where) for where in placements(made).values()) == 2
    assert "late" not in placements(made)
    apply_documents(cluster=made, objects=[node("node-z", cpu="64")])
    run_all(made, work)
    assert all(placements(made).values())
    assert "node-z" not in {row.name for row in cluster.nodes.all()}


def test_a_branch_of_a_scenario_too(work):
    document = small()
    document["scheduler"] = PACKING
    scenario = share(document=text_of(document)).scenario
    made = branch(scenario=scenario, cycle=3)
    assert sum(bool(where) for where in placements(made).values()) == 3
    assert made.config["profiles"][0]["pluginConfig"]


def test_moments_of_a_long_run_come_a_stretch_at_once_and_are_the_same(work, monkeypatch):
    from playground.scenarios.services import moments

    scenario = share(document=small_text()).scenario
    request_moment(scenario=scenario, cycle=3)
    work()
    whole = selectors.moment(scenario=scenario, cycle=3)[0]
    Moment.objects.filter(scenario=scenario).delete()
    monkeypatch.setattr(moments, "WHOLE_RUN_CELLS", 0)
    monkeypatch.setattr(moments, "WINDOW", 1)
    request_moment(scenario=scenario, cycle=3)
    work()
    cycles = Moment.objects.filter(scenario=scenario).order_by("cycle").values_list("cycle", flat=True)
    assert list(cycles) == [2, 3, 4]
    assert selectors.moment(scenario=scenario, cycle=3)[0] == whole
