"""A cluster's extenders of rules go along: into a share, and from it into a fork, a branch and whatever is edited."""

from typing import Any

import pytest
import yaml

from playground.clusters.drive.config import set_config
from playground.clusters.drive.runs import request_run
from playground.clusters.extenders.mock import create_mock_extender, mock_extender_url
from playground.clusters.lifecycle import clone_cluster, create_cluster
from playground.clusters.models import Cluster, Cycle, MockExtender
from playground.clusters.objects.apply import apply_documents
from playground.engine.scenarios import run_fresh
from playground.scenarios.services.forking import fork, make_from_cluster, make_text
from playground.scenarios.services.moments import branch
from tests.manifests import scheduler_config
from tests.scenarios.documents import node, pod
from tests.scenarios.test_forks import own_site, walked

__all__ = ["own_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

RULES: list[dict[str, Any]] = [
    {"deny": {"nodes": ["node-c"], "reason": "not c"}},
    {"score": {"labels": {"disk": "ssd"}, "points": 10}},
    {"deny": {"nodes": ["node-a"], "reason": "not a"}, "pod": {"labels": {"app": "late"}}},
]
LATE = pod("late") | {"metadata": {"name": "late", "namespace": "default", "labels": {"app": "late"}}}


def configured(cluster: Cluster, *verbs: str, rules: list[dict[str, Any]]) -> MockExtender:
    mock = create_mock_extender(cluster=cluster, rules=rules)
    extender = {"urlPrefix": mock_extender_url(mock), "httpTimeout": "20s", "weight": 5}
    config = scheduler_config(extenders=[extender | {f"{verb}Verb": verb for verb in verbs}])
    set_config(cluster=cluster, config=config)
    return mock


def ran(cluster: Cluster, work: Any, *objects: dict[str, Any]) -> Cluster:
    if objects:
        apply_documents(cluster=cluster, objects=list(objects))
    request_run(cluster=cluster, until="idle")
    work()
    cluster.refresh_from_db()
    return cluster


def lived(work: Any) -> Cluster:
    """A user tried it without, then wrote rules."""
    cluster = create_cluster(name="ruled", seed=3)
    ran(cluster, work, node("node-a"), node("node-b", disk="ssd"), node("node-c"))
    configured(cluster, "filter", "prioritize", rules=RULES)
    return ran(cluster, work, *(pod(f"p{number}") for number in range(3)))


def placed(cluster: Cluster) -> dict[str, str]:
    return dict(cluster.pods.values_list("name", "node_name"))


def digests(cluster: Cluster) -> list[str]:
    return list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))


def test_a_share_holds_the_rules_and_decides_as_the_cluster(own_site, work):
    cluster = lived(work)
    made = make_text(cluster=cluster)
    [mock] = yaml.safe_load(made.text)["extenders"]["mock"]
    assert mock["rules"] == RULES
    run = run_fresh(made.text)
    assert not run.notes
    assert [cycle.digest for cycle in run.cycles] == digests(cluster)
    shared = make_from_cluster(cluster=cluster)
    work()
    assert shared.scenario.verifications.get().is_proof


def test_a_recorded_failure_stands_before_the_rules(own_site, work):
    """The extender was not reached at first: no rule says so."""
    cluster = create_cluster(name="late", seed=3)
    ran(cluster, work, node("node-a", disk="ssd"), node("node-b", disk="ssd"))
    mock = configured(cluster, "filter", "prioritize", rules=[])
    url = mock_extender_url(mock)
    MockExtender.objects.filter(pk=mock.pk).update(public_id="elsewhere")
    ran(cluster, work, pod("p0"))
    MockExtender.objects.filter(public_id="elsewhere").update(public_id=url.rpartition("/")[2])
    request_run(cluster=cluster, until="10s")
    work()
    run = run_fresh(make_text(cluster=cluster).text)
    assert [cycle.digest for cycle in run.cycles] == digests(cluster)
    assert len(run.cycles) > 1 and not run.notes


def test_the_rules_answer_where_an_edit_changes_what_is_asked(own_site, work):
    document = yaml.safe_load(make_text(cluster=lived(work)).text)
    # The first pod now meets a node that the recorded answers do not know.
    document["objects"] = [one for one in document["objects"] if one["metadata"]["name"] != "node-b"]
    document["objects"].append(node("node-e", disk="ssd"))
    document.pop("decisions", None)
    run = run_fresh(yaml.safe_dump(document))
    assert not run.notes
    assert {cycle.node for cycle in run.cycles} == {"node-e"}


def test_forks_and_branches_of_the_share_decide_as_the_cluster(own_site, work):
    cluster = lived(work)
    scenario = make_from_cluster(cluster=cluster).scenario
    forked = walked(fork(scenario=scenario), work)
    assert placed(forked) == placed(cluster) == dict.fromkeys(("p0", "p1", "p2"), "node-b")
    for made in (forked, branch(scenario=scenario, cycle=2), branch(cluster=cluster, cycle=2),
                 clone_cluster(cluster=cluster, name="clone")):  # fmt: skip
        ran(made, work, LATE)
        assert placed(made)["late"] == "node-b", made.name
        assert made.mock_extenders.get().rules == RULES
        assert made.config["extenders"][0]["urlPrefix"].endswith(made.mock_extenders.get().public_id)


def test_a_place_that_had_another_extender_keeps_its_answers_alone(own_site, work):
    cluster = lived(work)
    configured(cluster, "filter", rules=[{"deny": {"nodes": ["node-b"]}}])
    ran(cluster, work, pod("after"))
    made = make_text(cluster=cluster)
    assert "mock" not in yaml.safe_load(made.text)["extenders"]
    assert made.notes == ("extender 0 was another one at times: what it answered goes along, not its rules",)
    assert [cycle.digest for cycle in run_fresh(made.text).cycles] == digests(cluster)


def test_pods_that_rules_bind_are_bound_in_forks_and_branches(own_site, work):
    cluster = create_cluster(name="binder", seed=3)
    ran(cluster, work, node("node-a"), node("node-b"))
    configured(cluster, "bind", rules=[{"bind": {"error": "not yet"}, "times": 1}])
    ran(cluster, work, pod("p0"), pod("p1"))
    request_run(cluster=cluster, until="60s")
    work()
    assert all(placed(cluster).values())
    scenario = make_from_cluster(cluster=cluster).scenario
    forked = walked(fork(scenario=scenario), work)
    assert placed(forked) == placed(cluster)
    for number in (1, scenario.n_cycles):
        for made in (branch(scenario=scenario, cycle=number), branch(cluster=cluster, cycle=number)):
            ran(made, work)
            request_run(cluster=made, until="60s")
            work()
            assert all(placed(made).values()), (number, made.name)
