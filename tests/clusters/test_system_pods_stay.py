"""No user's pod evicts a system pod by what the site answers: edits, branches, plans, prices, extenders.

What is created and changed over the surfaces themselves: tests/kube_api/test_priority_admission.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from playground.clusters import branches
from playground.clusters.drive.config import set_config
from playground.clusters.errors import Conflict
from playground.clusters.models import Cluster, Event, Pod
from playground.clusters.objects.apply import apply_documents
from scheduler_core.objects.prices import read_prices
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.clusters.test_extenders import configuration
from tests.clusters.test_questions import answered, sent
from tests.engine.extender_server import serving
from tests.manifests import priority_class

__all__ = ["sent"]
pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

SYSTEM = make_pod("system", cpu="4", namespace="kube-system", priorityClassName="system-node-critical")


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A full node with a system pod and a user's small one; a large pod waits."""
    on_n1 = SYSTEM | {"spec": SYSTEM["spec"] | {"nodeName": "n1"}}
    made = make_cluster(make_node("n1", cpu="5"), on_n1, make_pod("small", cpu="1"))
    run(made)
    apply_documents(cluster=made, objects=[make_pod("large", cpu="4")])
    run(made)
    return made


def holds(cluster: Cluster) -> bool:
    """The system pod is where it was, and was never a victim."""
    there = Pod.objects.filter(cluster=cluster, name="system", node_name="n1", terminating=False).exists()
    victims = Event.objects.filter(cluster=cluster, reason="Preempted").values_list("manifest", flat=True)
    return there and all(event["involvedObject"]["name"] != "system" for event in victims)


def test_no_edit_told_and_no_branch_with_it_moves_the_system_pod(cluster: Cluster) -> None:
    question = answered(cluster, "fix", pod="default/large")
    edits = question.answer["fixes"]
    assert edits, question.error
    for rank, edit in enumerate(edits, start=1):
        assert "kube-system" not in edit["title"], edit
        branch = branches.branch_with_edit(question=question, rank=rank)
        run(branch, max_cycles=50)
        assert holds(branch), edit["title"]
    assert holds(cluster)


@pytest.mark.parametrize(
    "asked",
    [
        {"ask": "backlog", "prices": read_prices("name,cpu,memory,price\nbig,8,16Gi,2.5\n")},
        {"ask": "consolidate"},
        {"ask": "headroom", "workload": "Pod default/large"},
        {"ask": "any-node"},
    ],
    ids=lambda asked: asked["ask"],
)
def test_no_plan_and_no_branch_of_it_moves_the_system_pod(cluster: Cluster, asked: dict[str, Any]) -> None:
    question = answered(cluster, "plan", **asked)
    assert question.answer is not None, question.error
    try:
        branch = branches.branch_of_plan(question=question)
    except Conflict:
        assert not question.answer["steps"]
    else:
        run(branch, max_cycles=50)
        assert holds(branch)
    assert holds(cluster)


def spares_the_users(victims: Any) -> Any:
    return {"nodeNameToMetaVictims": {name: {"pods": []} for name in victims}}


def says_nothing(victims: Any) -> Any:
    return {}


def names_another_node(victims: Any) -> Any:
    return {"nodeNameToMetaVictims": {"n9": {"pods": [{"uid": "0"}]}}}


@pytest.mark.parametrize("preempt", [spares_the_users, says_nothing, names_another_node])
def test_no_answer_of_an_extender_moves_the_system_pod(
    cluster: Cluster, settings: Any, preempt: Callable[[Any], Any]
) -> None:
    """But for its uid: who configures an extender may name any pod of a candidate, here as in Kubernetes."""

    def answer(path: str, body: Any) -> Any:
        fields = {key.lower(): value for key, value in body.items()}
        if path == "/preempt":
            return preempt(fields["nodenametometavictims"])
        return {"nodenames": fields["nodenames"]} if path == "/filter" else []

    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
    with serving(answer) as server:
        use_extender(cluster, f"http://127.0.0.1:{server.port}")
        evict_by_extender(cluster)
        assert "/preempt" in [path for path, _ in server.log]
    assert holds(cluster)


def use_extender(cluster: Cluster, url: str) -> None:
    set_config(cluster=cluster, config=configuration(url, "filter", "prioritize", "preempt"))


def evict_by_extender(cluster: Cluster) -> None:
    """Have a pod preempt the user's small one, with the extender asked about it."""
    gold = priority_class("gold", 1000)
    apply_documents(cluster=cluster, objects=[gold, make_pod("paid", cpu="1", priorityClassName="gold")])
    run(cluster)
