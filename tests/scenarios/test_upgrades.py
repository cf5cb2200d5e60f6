"""What an upgrade would change, asked of a cluster: a job of its own that changes nothing and can be cancelled."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters import questions
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.lifecycle import delete_cluster
from playground.clusters.models import Cluster, Question
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.models import Scenario
from playground.scenarios.services import forking
from playground.scenarios.services import questions as upgrades
from scheduler_core.cli.main import main
from scheduler_core.scenario import dump_scenario, load_scenario, run_scenario
from tests.changes import one_in
from tests.clusters.builders import make_cluster, make_node, make_pod, run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wakes")]


def request_upgrade(cluster: Cluster, name: str) -> Question:
    return questions.ask(kind="upgrade", params={"name": name}, cluster=cluster)


def tainted() -> Any:
    """A cluster in which one sentence is another in 1.36."""
    taints = [{"key": "disk", "value": "full", "effect": "NoSchedule"}]
    cluster = make_cluster(make_node(taints=taints), make_pod("waits"))
    run(cluster)
    return cluster


def test_a_preview_tells_each_difference_by_its_cause_and_changes_nothing(client: Client) -> None:
    cluster = tainted()
    last = cluster.last_seq
    page = f"/c/{cluster.public_id}/upgrade/"
    assert client.post(page, {"release": "1.36"}).status_code == 302
    asked = Question.objects.get()
    assert "<h2>Queued</h2>" in client.get(page).content.decode()
    questions.answer(question_id=asked.pk)
    asked.refresh_from_db()
    assert asked.state == "done", asked.problem
    html = client.get(page).content.decode()
    assert "Untolerated<wbr>Taints<wbr>Unnamed" in html and "verified alone" in html
    assert "untolerated taint(s)" in html and "untolerated taint {disk: full}" in html
    found = asked.answer
    assert found is not None and found["unexplained"] == []
    assert [cause["name"] for cause in found["causes"]] == ["UntoleratedTaintsUnnamed"]
    cluster.refresh_from_db()
    assert (cluster.kubernetes_release, cluster.last_seq) == ("1.34", last)


def test_a_preview_over_three_releases_shows_which_step_moves_what(client: Client) -> None:
    cluster = tainted()
    asked = request_upgrade(cluster, "1.37")
    questions.answer(question_id=asked.pk)
    page = f"/c/{cluster.public_id}/upgrade/"
    told = client.get(f"/api/v1{page.replace('/c/', '/clusters/')}").json()["result"]
    steps = {
        (step["before"]["name"], step["after"]["name"]): [cause["name"] for cause in step["causes"]]
        for step in told["steps"]
    }
    assert steps == {
        ("1.34", "1.35"): ["UntoleratedTaintsUnnamed"],
        ("1.35", "1.36"): [],
        ("1.36", "1.37"): ["NoClaimsUnsaid"],
    }
    html = client.get(page).content.decode()
    assert "Which step moves what" in html and "1.36 → 1.37" in html
    known = {one["name"]: one["known"] for one in told["between"]}
    assert known["VolumeLimitScaling"] == "proved" and known["PreemptionTold"] == "from release notes"
    assert known["CompositePodGroup"] == "not modelled"
    assert "Volume<wbr>Limit<wbr>Scaling" in html and "not modelled" in html


def test_page_rest_command_line_share_and_test_say_the_same(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = tainted()
    asked = request_upgrade(cluster, "1.36")
    questions.answer(question_id=asked.pk)
    page = f"/c/{cluster.public_id}/upgrade/"
    told = client.get(f"/api/v1{page.replace('/c/', '/clusters/')}").json()["result"]
    scenario = tmp_path / "s.yaml"
    scenario.write_text(client.get(f"/api/v1/clusters/{cluster.public_id}/scenario").content.decode())
    assert main(["compare", str(scenario), "--release", "1.34", "--release", "1.36", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == told
    html = client.get(page).content.decode()
    assert told["sentence"] in html and "compare scenario.yaml --release 1.34 --release 1.36" in html

    # As a share: a page of its own that says the same when the cluster is gone, and twice is once.
    link = client.post(page, {"share": "1"}).headers["Location"]
    assert client.post(page, {"share": "1"}).headers["Location"] == link
    delete_cluster(cluster=cluster)
    assert told["sentence"] in client.get(link).content.decode()
    assert client.get(f"/api/v1{link.replace('/s/', '/scenarios/')}").json()["result"] == told

    # As a test: it holds as long as no more pods end elsewhere than now.
    document = load_scenario(scenario.read_bytes())
    for more, holds in ({"count": {"max": 0}}, True), ({"count": {"min": 1}}, False):
        item = json.dumps({**told["test"], **more})
        expecting = load_scenario(dump_scenario(document).rstrip() + f"\nexpect:\n- {item}\n")
        assert [finding.holds for finding in run_scenario(expecting).findings] == [holds]

    # As a branch: the share on the other release, its steps to be done.
    home = client.post(link, {"branch": "1"}).headers["Location"]
    made = Cluster.objects.get(public_id=home.strip("/").split("/")[-1])
    assert made.kubernetes_release == "1.36" and forking.do_next_step(cluster=made)


def test_a_preview_that_is_not_there_yet_is_neither_shared_nor_branched(client: Client) -> None:
    cluster = tainted()
    page = f"/c/{cluster.public_id}/upgrade/"
    request_upgrade(cluster, "1.36")
    for act in ("share", "branch"):
        html = client.post(page, {act: "1"}, follow=True).content.decode()
        assert "There is no answer yet." in html
    assert not Scenario.objects.exists() and Cluster.objects.count() == 1


def test_a_preview_is_ended_where_it_is_not_wanted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = tainted()
    asked = request_upgrade(cluster, "1.36")
    with pytest.raises(Conflict, match="under way"):
        request_upgrade(cluster, "1.35")
    told = upgrades.ask_process

    def cancelled(*args: Any, **how: Any) -> Any:
        questions.cancel(Question.objects.filter(pk=asked.pk))
        return told(*args, **how)

    monkeypatch.setattr(upgrades, "ask_process", cancelled)
    monkeypatch.setattr("playground.engine.scenarios.LOOK_EVERY_S", 0.01)
    questions.answer(question_id=asked.pk)
    asked.refresh_from_db()
    assert (asked.state, asked.answer) == ("cancelled", None)


def test_a_preview_is_asked_and_cancelled_over_the_api(client: Client) -> None:
    cluster = tainted()
    url = f"/api/v1/clusters/{cluster.public_id}/upgrade/"
    assert client.get(url).status_code == 404
    asked = client.post(url, {"kubernetesRelease": "1.36"}, content_type="application/json")
    assert (asked.status_code, asked.json()["after"]["name"]) == (202, "1.36")
    assert client.delete(url).json()["state"] == "cancelled"
    wrong = {"kubernetesRelease": "1.36", "featureGates": {"SidecarContainers": False}}
    refused = client.post(url, wrong, content_type="application/json")
    assert refused.status_code == 400 and "SidecarContainers" in refused.content.decode()


def test_what_cannot_be_previewed_is_refused() -> None:
    cluster = make_cluster(make_node())
    with pytest.raises(Conflict, match="no cycle"):
        request_upgrade(cluster, "1.36")
    apply_documents(cluster=cluster, objects=[make_pod("p")])
    run(cluster)
    with pytest.raises(Conflict, match="follows this release already"):
        request_upgrade(cluster, "1.34")
    with pytest.raises(InvalidInput, match="is no release that is known here"):
        request_upgrade(cluster, "1.99")
    assert not Question.objects.exists()


@pytest.mark.parametrize("followed", one_in(3, ["1.34", "1.35", "1.36"], "playground/scenarios/"))
def test_the_release_chosen_first_is_another_than_the_one_that_is_followed(
    client: Client, followed: str
) -> None:
    cluster = tainted()
    page = f"/c/{cluster.public_id}/upgrade/"
    chosen = re.compile(r'<option value="([^"]+)" selected>')
    client.post(page, {"release": "1.36"})
    questions.answer(question_id=Question.objects.get().pk)
    assert chosen.findall(client.get(page).content.decode()) == ["1.36"]
    Cluster.objects.filter(pk=cluster.pk).update(kubernetes_release=followed)
    assert chosen.findall(client.get(page).content.decode()) == ["1.37" if followed == "1.36" else "1.36"]
    Question.objects.all().delete()
    assert chosen.findall(client.get(page).content.decode()) == ["1.37"]
