"""Proof: what a process that never saw the first run decides."""

import pytest

from playground.scenarios.models import RecordedCycle, Verification
from playground.scenarios.services.proof import request_verification
from playground.scenarios.services.shares import share
from tests.scenarios.documents import pod, small, small_text, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def newest() -> Verification:
    return Verification.objects.order_by("-pk").first()


def test_a_share_is_proved_by_a_fresh_run(work):
    share(document=small_text(expect=[{"pod": "giant", "reason": "Insufficient cpu"}]))
    work()
    proof = newest()
    assert proof.is_proof
    assert proof.sentence == "Reproduced 5 of 5 decisions"
    assert (proof.n_held, proof.n_expectations) == (1, 1)


def test_a_corrupted_decision_is_named_with_both_explanations(work):
    scenario = share(document=small_text()).scenario
    work()
    RecordedCycle.objects.filter(scenario=scenario, number=3).update(digest="0" * 64)
    request_verification(scenario=scenario)
    work()
    proof = newest()
    assert not proof.is_proof
    assert proof.differs_at == 3 and proof.n_same == 2
    assert proof.sentence.startswith("Cycle 3 differs: reproduced 2 of 5 decisions.")
    for side in (proof.recorded, proof.fresh):
        assert side["explanation"]["cycle"] == 3
        assert side["sentence"]


def test_another_node_is_noticed_whatever_the_digest_says(work):
    scenario = share(document=small_text()).scenario
    work()
    RecordedCycle.objects.filter(scenario=scenario, number=2).update(node="node-z")
    request_verification(scenario=scenario)
    work()
    assert newest().differs_at == 2


def test_a_document_that_claims_other_decisions_is_not_proved(work):
    from playground.engine.scenarios import run_fresh, with_decisions

    run = run_fresh(small_text())
    lines = tuple(f"{cycle.digest[:12]} default/{cycle.pod_name} {cycle.outcome}" for cycle in run.cycles)
    honest = with_decisions(small_text(), run.decisions_digest, "0.1.0", lines)
    share(document=honest)
    work()
    assert newest().is_proof
    forged = (*lines[:3], "0123456789ab default/web-3 bound node-z", *lines[4:])
    share(document=with_decisions(small_text(), "f" * 64, "0.0.9", forged), visibility="public")
    work()
    proof = newest()
    assert proof.differs_at == 4
    assert proof.recorded["sentence"] == "default/web-3 bound node-z"
    assert proof.fresh["explanation"]["cycle"] == 4


def test_a_run_that_cannot_be_done_at_once_is_recorded_by_a_worker(work, monkeypatch):
    from playground.scenarios.services import shares

    monkeypatch.setattr(shares, "AT_ONCE_PODS", 0)
    scenario = share(document=small_text()).scenario
    assert scenario.state == "queued" and scenario.n_cycles == 0
    work()
    scenario.refresh_from_db()
    assert scenario.state == "recorded" and scenario.n_cycles == 5
    assert newest().is_proof


def test_one_that_fails_at_the_worker_says_why(work, monkeypatch):
    from playground.scenarios.services import shares

    monkeypatch.setattr(shares, "AT_ONCE_PODS", 0)
    document = small(steps=[{"run": "idle"}, {"uncordon": "node-z"}])
    document["objects"].append(pod("one-more"))
    scenario = share(document=text_of(document)).scenario
    work()
    scenario.refresh_from_db()
    assert scenario.state == "failed"
    assert "steps[1].uncordon: there is no Node node-z" in scenario.problem
    assert not scenario.cycles.exists()
