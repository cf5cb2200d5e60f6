"""What is asked of a cluster that uses a package from outside of the tree, and a reader of its share who lacks it."""

from contextlib import suppress
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle, Question, Run
from playground.engine import plugins
from playground.scenarios.models import Verification
from playground.scenarios.services import forking, shares
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.moments import branch
from playground.scenarios.services.proof import verify_now
from scheduler_core.scenario import load_scenario, run_scenario
from tests.clusters.builders import make_cluster
from tests.markup import html_of
from tests.web.test_advice_pages import work_off
from tests.web.test_installed_plugins import config, night_node, shift_pod, site

__all__ = ["site"]
INSTALL = "pip install night-shift==1.2"


@pytest.fixture
def night(db: None, site: Any, wakes: list[Any]) -> Cluster:
    """Three slots of the night, taken; a pod that waits for a fourth."""
    pods = [shift_pod(name, "night") for name in ("late", "later", "latest", "last")]
    made = make_cluster(night_node("n1", 1), night_node("n2", 2), *pods)
    set_config(cluster=made, config=config(waitSeconds=90))
    run(made)
    return made


def run(cluster: Cluster) -> None:
    asked, memory = request_run(cluster=cluster, until="idle"), EngineMemory()
    while asked.state in Run.OPEN:  # a visit of a worker has an end, however slow the machine is
        advance(cluster_id=cluster.pk, memory=memory)
        asked.refresh_from_db()
    cluster.refresh_from_db()


def decisions(cluster: Cluster) -> list[tuple[str, str, str]]:
    return list(
        Cycle.objects.filter(cluster=cluster).order_by("number").values_list("pod_name", "outcome", "node")
    )


def test_every_question_about_a_cluster_that_uses_a_package_is_answered(
    client: Client, night: Cluster, wakes: list[tuple[str, dict[str, Any]]]
) -> None:
    waits = Cycle.objects.filter(cluster=night).exclude(outcome="bound").order_by("number").first()
    assert waits is not None
    pod = (night.public_id, "default", waits.pod_name)
    ask = {
        "fix": (pod, [{}, {"node": "n1"}]),
        "weights": ((night.public_id, 1), [{}]),
        "try": ((night.public_id,), [{"yaml": "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: "
                                              "[{name: c, image: i}]}}"}]),
        "luck": ((night.public_id,), [{"seeds": "3"}]),
        "plan": ((night.public_id,), [{"ask": "any-node"}, {"ask": "headroom"}, {"ask": "drain", "nodes": "n1"}]),
    }  # fmt: skip
    for name, (args, forms) in ask.items():
        for form in forms:
            assert client.post(reverse(f"web:{name}", args=args), form).status_code == 302, (name, form)
    work_off()
    for task, how in list(wakes):
        if task == "run_seeds":
            questions.run_seeds(**how)
    asked = Question.objects.filter(cluster=night)
    assert {(one.kind, one.state) for one in asked} == {(one.kind, "done") for one in asked}, [
        (one.kind, one.error) for one in asked
    ]
    html = html_of(client.get(reverse("web:fix", args=pod) + "?node=n1"))
    assert "no night slot left" in html
    for name, args in (("luck", pod[:1]), ("weights", (night.public_id, 1)), ("plan", pod[:1])):
        assert client.get(reverse(f"web:{name}", args=args)).status_code == 200
    for one in asked.filter(kind="plan"):
        assert (
            client.get(reverse("web:plan-answer", args=[night.public_id, one.public_id])).status_code == 200
        )

    upgrade = questions.ask(kind="upgrade", params={"name": "1.36"}, cluster=night)
    questions.answer(question_id=upgrade.pk)
    upgrade.refresh_from_db()
    assert upgrade.state == "done", upgrade.error


def test_a_replay_a_branch_and_what_was_exported_decide_as_the_cluster_did(
    client: Client, night: Cluster
) -> None:
    text = client.get(f"/api/v1/clusters/{night.public_id}/scenario").content.decode()
    assert "night-shift" in text
    again = run_scenario(load_scenario(text))
    assert [(trace.pod.partition("/")[2], trace.outcome, trace.node or "") for trace in again.cycles] == [
        (pod, outcome, node or "") for pod, outcome, node in decisions(night)
    ]
    made = branch(cycle=2, cluster=night)
    assert "NightShift" in str(made.config)
    run(made)
    assert decisions(made)[-1][0] == "latest"
    shared = shares.share(document=text).scenario
    copy = forking.fork(scenario=shared)
    with suppress(NotFound):  # until no step is left
        while forking.do_next_step(cluster=copy):
            run(copy)
    assert copy.config == night.config and decisions(copy) == decisions(night)


def test_a_reader_of_a_share_who_lacks_the_package_is_told_what_to_install(
    client: Client, night: Cluster
) -> None:
    shared = shares.share(document=make_text(cluster=night).text).scenario
    here, api = f"/s/{shared.public_id}/", f"/api/v1/scenarios/{shared.public_id}"
    assert "cannot be run again here" not in html_of(client.get(here))
    assert client.get(f"{api}/").json()["lacking"] == []
    plugins.use([])
    html = html_of(client.get(here))
    assert "cannot be run again here" in html and INSTALL in html
    told = client.get(f"{api}/").json()
    assert told["plugins"] == ["NightShift (night-shift==1.2)"] and INSTALL in told["lacking"][0]
    # What was recorded is shown all the same.
    for path in (f"{here[:-1]}.yaml", *(here + part for part in (
        "embed/", "proof/", "luck/", "upgrade/", "optimum/", "model/", "cycles/1/", "?cycle=1"
    ))):  # fmt: skip
        assert client.get(path).status_code == 200, path
    for act in ("fork/", "branch/", "upgrade/"):
        answer = client.post(here + act, {"cycle": "1", "release": "1.36"}, follow=True)
        assert INSTALL in html_of(answer), act
    asked = client.post(f"{api}/upgrade/", {"kubernetesRelease": "1.36"}, content_type="application/json")
    assert asked.status_code == 400 and INSTALL in html_of(asked), asked.content
    # Where a worker is to run it, its page says what the worker met.
    for act in ("luck/", "optimum/", "model/"):
        assert client.post(here + act, {"seeds": "3", "cycle": "1"}).status_code == 302, act
    client.post(here + "verify/")
    proof = Verification.objects.get(scenario=shared, state="queued")
    verify_now(verification_id=proof.pk)
    assert INSTALL in html_of(client.get(here + "proof/"))
    assert INSTALL in client.get(f"{api}/").json()["proof"]["sentence"]
