"""Forks of shares that bring their own extenders, or a Policy: the cluster decides what the share decided."""

import pytest

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Cycle, Node
from playground.clusters.objects.write import set_cordon
from playground.scenarios import selectors
from playground.scenarios.models import Scenario
from playground.scenarios.services.forking import do_next_step, fork
from playground.scenarios.services.gallery import share_one
from playground.scenarios.services.shares import share
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_text
from tests.changes import one_in
from tests.scenarios.documents import pod, small_text
from tests.tables import table

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = table(__file__, "POLICY")


@pytest.fixture
def own_site(settings, live_server) -> None:
    """Workers reach this site, and no other host."""
    settings.PLAYGROUND_OWN_URL = live_server.url
    settings.PLAYGROUND_EXTENDER_HOSTS = []


@pytest.fixture
def unrecorded(monkeypatch) -> None:
    """Shares are not run while they are shared: what they decide is found out here."""
    monkeypatch.setattr("playground.scenarios.services.shares.AT_ONCE_NODES", 0)


def decisions(cluster: Cluster) -> list[tuple[str, str, str, str]]:
    rows = Cycle.objects.filter(cluster=cluster).order_by("number")
    return [
        (f"{row.pod_namespace}/{row.pod_name}", row.outcome, row.node, row.message)
        for row in rows.defer("trace")
    ]


def walked(cluster: Cluster, work) -> Cluster:
    while selectors.origin_state(cluster).next_words:
        do_next_step(cluster=cluster)
        work()
        cluster.refresh_from_db()
    return cluster


@pytest.mark.any_database
@pytest.mark.parametrize(
    "name", one_in(4, ORDER, "playground/scenarios/", "playground/engine/", "scheduler_core/sim/")
)
def test_a_teaching_scenario_decides_in_a_cluster_what_it_decides_by_itself(
    name, own_site, unrecorded, wakes, work
):
    scenario = share_one(name, gallery_text(name).encode())
    wakes.clear()
    cluster = walked(fork(scenario=scenario), work)
    run = run_scenario(load_scenario(gallery_text(name)))
    urls = [one["urlPrefix"] for one in (cluster.config or {}).get("extenders") or ()]
    there = [one["urlPrefix"] for one in (run.scenario.scheduler or {}).get("extenders") or ()]
    wanted = []
    for trace in run.cycles:
        message = trace.message or ""
        for here, elsewhere in zip(urls, there, strict=True):
            message = message.replace(elsewhere, here)
        wanted.append((trace.pod, trace.outcome, trace.node or "", message))
    assert decisions(cluster) == wanted


def test_a_policy_is_forked_and_configured(own_site, work):
    steps = [
        {"run": "idle"},
        {"configure": POLICY | {"priorities": []}},
        {"apply": [pod("late")]},
        {"run": "idle"},
    ]
    scenario = share(document=small_text(scheduler=POLICY, steps=steps)).scenario
    cluster = walked(fork(scenario=scenario), work)
    assert cluster.config["kind"] == "Policy"
    mine = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))
    assert mine == list(scenario.cycles.order_by("number").values_list("digest", flat=True)) != []


def test_the_page_of_a_policy_shows_it_and_has_no_switches_to_save(client, wakes):
    cluster = create_cluster(name="old", config=POLICY)
    page = client.get(f"/c/{cluster.public_id}/config/")
    assert page.status_code == 200 and "MostRequestedPriority" in page.content.decode()
    answer = client.post(f"/c/{cluster.public_id}/config/", {"action": "points"})
    assert answer.status_code == 400 and "a Policy has no profiles" in answer.content.decode()
    cluster.refresh_from_db()
    assert cluster.config == POLICY


def test_a_broken_policy_is_refused_with_its_field(client, wakes):
    broken = POLICY | {"priorities": [{"name": "MostRequestedPriority", "weight": -2}]}
    answer = client.post(
        "/api/v1/scenarios/", small_text(scheduler=broken).encode(), content_type="application/yaml"
    )
    assert answer.status_code == 400 and answer.json()["field"].startswith("scheduler.")
    assert not Scenario.objects.exists()


VETO = table(__file__, "VETO")


def test_a_fork_says_which_extender_is_asked_now(client, wakes):
    calls = [{"extender": 0, "verb": "filter", "answer": {"NodeNames": ["node-a"]}} for _ in range(5)]
    scenario = share(document=small_text(scheduler=VETO, extenders={"cassette": calls})).scenario
    answer = client.post(f"/s/{scenario.public_id}/fork/", follow=True)
    assert "asks the extender at http://gone.example/x" in answer.content.decode()


def test_a_fork_opens_at_the_moment_its_author_chose_and_leads_back(client, wakes, work):
    scenario = share(document=small_text(), note="Look at cycle 2.", opens_at=2).scenario
    work()
    board = client.post(f"/s/{scenario.public_id}/fork/", follow=True).content.decode()
    cluster = Cluster.objects.get(parent_share=scenario.public_id)
    assert cluster.parent_cycle == 2
    assert cluster.pods.exclude(node_name="").count() == 2
    assert f'/s/{scenario.public_id}/?cycle=2"' in board
    assert "Author’s note (not verified): Look at cycle 2." in board
    made = client.post(
        f"/api/v1/scenarios/{scenario.public_id}/fork", {}, content_type="application/json"
    ).json()
    assert Cluster.objects.get(public_id=made["id"]).parent_cycle == 2


@pytest.mark.dialect
def test_a_step_that_is_undone_is_still_to_be_done_and_the_cluster_unchanged_again(unrecorded, wakes, work):
    from playground.scenarios.services.forking import undo

    scenario = share_one(ORDER[0], gallery_text(ORDER[0]).encode())
    wakes.clear()
    cluster = fork(scenario=scenario)
    first = selectors.origin_state(cluster)
    words = do_next_step(cluster=cluster)
    work()
    cluster.refresh_from_db()
    assert selectors.origin_state(cluster).next_words != first.next_words
    assert not selectors.origin_state(cluster).changed

    assert undo(cluster=cluster).words == words
    cluster.refresh_from_db()

    assert selectors.origin_state(cluster).next_words == first.next_words
    assert not selectors.origin_state(cluster).changed
    set_cordon(
        cluster=cluster,
        node=Node.objects.filter(cluster=cluster).order_by("name")[0].name,
        unschedulable=True,
    )
    cluster.refresh_from_db()
    assert selectors.origin_state(cluster).changed
    undo(cluster=cluster)
    cluster.refresh_from_db()
    assert not selectors.origin_state(cluster).changed
