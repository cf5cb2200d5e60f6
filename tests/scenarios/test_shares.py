"""Sharing: a document in, one immutable share out."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from playground.clusters.errors import ClusterError, Forbidden, InvalidInput, InvalidManifest
from playground.clusters.models import Question, SeedEnd
from playground.scenarios.models import RecordedCycle, Scenario, Verification
from playground.scenarios.services.shares import delete_share, share
from tests.manifests import priority_class
from tests.scenarios.documents import node, pod, small, small_text, text_of
from tests.tables import table

pytestmark = pytest.mark.django_db


def test_a_share_keeps_the_document_and_what_was_decided(wakes, django_capture_on_commit_callbacks):
    text = small_text()
    with django_capture_on_commit_callbacks(execute=True):
        shared = share(document=text)
    scenario = shared.scenario
    assert bytes(scenario.document) == text.encode()
    assert (scenario.n_nodes, scenario.n_pods, scenario.n_cycles) == (3, 5, 5)
    assert scenario.state == Scenario.State.RECORDED
    assert len(scenario.digest) == len(scenario.decisions_digest) == 64
    outcomes = [cycle.outcome for cycle in scenario.cycles.order_by("number")]
    assert outcomes.count("bound") == 4 and outcomes.count("unschedulable") == 1
    assert [task for task, _ in wakes] == ["verify"]


@pytest.mark.parametrize(
    ("wrong", "place", "words"),
    [
        (pod("A_b"), "objects[8].metadata.name", 'Invalid value: "A_b": a lowercase RFC 1123 subdomain must'),
        (node("n" * 254), "objects[8].metadata.name", "must be no more than 253 characters"),
        (node("n", **{"a key": "x"}), "objects[8].metadata.labels", "name part must consist of"),
        (pod("p", priority=5), "objects[8].spec.priority",
         "the integer value of priority (5) must not be provided in pod spec"),
        (pod("p", priorityClassName="gold"), "objects[8].spec.priorityClassName", "gold"),
        (priority_class("gold", 2_000_000_000), "objects[8].value", "maximum allowed value"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_nodes", [0, 300])
def test_objects_an_api_server_refuses_are_refused_at_once(wakes, wrong, place, words, n_nodes):
    """Also of a scenario that is too large to be run before its link is given out."""
    document = small()
    document["objects"] += [wrong, *(node(f"more-{number}") for number in range(n_nodes))]
    with pytest.raises(InvalidManifest) as refused:
        share(document=text_of(document))
    assert (refused.value.path, refused.value.line is None) == (place, False)
    assert words in refused.value.message
    assert not Scenario.objects.exists()


def test_a_class_may_come_go_and_come_again_before_it_is_named(wakes):
    gold, high = priority_class("gold", 7), pod("high", priorityClassName="gold")
    gone = {"delete": {"kind": "PriorityClass", "name": "gold"}}
    for steps, allowed in (
        ([{"apply": [gold]}, {"apply": [high]}], True),
        ([{"apply": [gold, high]}, gone, {"apply": [high]}], True),
        ([{"apply": [gold]}, gone, {"apply": [high]}], False),
        ([{"apply": [gold]}, gone, {"apply": [gold, high]}], True),
    ):
        text = small_text(steps=[*steps, {"run": "idle"}])
        if allowed:
            assert share(document=text).created
            continue
        with pytest.raises(InvalidManifest) as refused:
            share(document=text)
        assert refused.value.path == "steps[2].apply[0].spec.priorityClassName"


@pytest.mark.dialect
def test_the_same_owner_content_and_visibility_is_the_same_share(wakes):
    first = share(document=small_text())
    again = share(document=small_text())
    assert again.scenario == first.scenario
    assert first.created and first.delete_code
    assert not again.created and again.delete_code is None
    other = share(document=small_text(), visibility="public")
    assert other.scenario != first.scenario and other.scenario.digest == first.scenario.digest


def test_notation_is_no_part_of_the_content_and_the_answer_says_so(wakes):
    first = share(document=small_text())
    again = share(document=json.dumps(small()))
    assert again.scenario == first.scenario
    assert "never changes" in again.notes[0]


@pytest.mark.parametrize(
    "words",
    table(__file__, "other_words_of_the_same_content_are_another_share_and_none_is_lost"),
)
def test_other_words_of_the_same_content_are_another_share_and_none_is_lost(wakes, words):
    first = share(document=small_text())
    other = share(document=small_text(**words))
    assert other.created and other.scenario.public_id != first.scenario.public_id
    assert other.scenario.digest == first.scenario.digest
    if "title" in words:
        assert (first.scenario.title, other.scenario.title) == ("Five pods on three nodes", "Other words")
    assert share(document=small_text(**words)).scenario == other.scenario


def test_deleting_one_share_leaves_the_other_of_the_same_content(wakes):
    unlisted = share(document=small_text())
    public = share(document=small_text(), visibility="public")
    delete_share(scenario=unlisted.scenario)
    assert list(Scenario.objects.all()) == [public.scenario]
    back = share(document=small_text())
    assert back.created and back.scenario.public_id != unlisted.scenario.public_id


def test_a_share_without_an_owner_needs_its_code_to_be_deleted_on_a_served_site(wakes, settings):
    shared = share(document=small_text())
    settings.EMBEDDED = False
    with pytest.raises(Forbidden):
        delete_share(scenario=shared.scenario, code="guess")
    delete_share(scenario=shared.scenario, code=shared.delete_code)
    assert not Scenario.objects.exists()


def test_an_expired_share_makes_room_for_a_new_one(wakes):
    from datetime import timedelta

    from django.utils import timezone

    first = share(document=small_text(), expires=timezone.now() + timedelta(days=1))
    Scenario.objects.update(expires=timezone.now() - timedelta(seconds=1))
    again = share(document=small_text())
    assert again.created and again.scenario.public_id != first.scenario.public_id
    with pytest.raises(InvalidInput, match="expired already"):
        share(document=small_text(seed=2), expires=timezone.now() - timedelta(days=1))


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"apiVersion": "scheduling.playground/v2"}, "apiVersion", "later format"),
        ({"emulates": "v1.99"}, "emulates", "no release"),
        ({"steps": [{"cordon": "node-z"}]}, "steps[0].cordon", "no Node node-z"),
        (
            {"steps": [{"delete": {"kind": "Pod", "name": "web-9"}}]},
            "steps[0].delete",
            "no Pod default/web-9",
        ),
        ({"stepz": []}, "stepz", 'did you mean "steps"'),
        ({"steps": [{"run": "forever"}]}, "steps[0].run", "idle"),
        ({"objects": [node("x"), node("x")]}, "objects[1]", "there twice"),
        ({"objects": [pod("p", cpu="1x")]}, "objects[0].spec.containers[0].resources.requests", "1x"),
        ({"extenders": {"cassette": [{"pod": "a/b"}]}}, "extenders.cassette[0].verb", "required"),
        (
            {"extenders": {"cassette": [{"verb": "sing", "pod": "a/b"}]}},
            "extenders.cassette[0].verb",
            "filter",
        ),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:30],
)
def test_a_bad_document_is_refused_with_its_path_and_nothing_is_kept(wakes, changes, field, words):
    with pytest.raises(InvalidManifest) as caught:
        share(document=small_text(**changes))
    assert caught.value.path.startswith(field)
    assert words in caught.value.message
    assert not Scenario.objects.exists() and not RecordedCycle.objects.exists()
    assert not Verification.objects.exists() and not wakes


def test_what_is_no_yaml_names_its_line(wakes):
    with pytest.raises(InvalidManifest) as caught:
        share(document="apiVersion: scheduling.playground/v1\nkind: [Scenario\n")
    assert caught.value.line is not None


def test_a_team_share_needs_a_team(wakes):
    with pytest.raises(ClusterError, match="no team to share with"):
        share(document=small_text(), visibility="team")


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_an_expired_share_is_tidied_away_and_one_of_the_same_content_is_not(work):
    from playground.scenarios.models import Comparison, Moment, RecordedCycle
    from playground.scenarios.services.comparing import request_comparison
    from playground.scenarios.services.moments import request_moment
    from playground.scenarios.services.storage import tidy

    text = small_text()
    kept = share(document=text, visibility="public").scenario
    gone = share(document=text, expires=timezone.now() + timedelta(days=1)).scenario
    request_moment(scenario=gone, cycle=2)
    sides = [{"kind": "scenario", "id": one.public_id, "cycle": None} for one in (kept, gone)]
    request_comparison(a=sides[0], b=sides[1])
    alone = request_comparison(a=sides[0], b=sides[0])
    work()
    over = Question.objects.create(share=kept.public_id, kind="luck", state="failed")
    SeedEnd.objects.create(question=over, seed=7, digest="d", end={})
    Question.objects.create(share=gone.public_id, kind="model")
    nothing = {"shares": 0, "verdicts": 0, "comparisons": 0, "proofs": 0}
    assert tidy() == nothing | {"seeds": 1}
    later = timezone.now() + timedelta(days=2)
    assert tidy(now=later) == nothing | {"shares": 1, "comparisons": 1, "seeds": 0}
    assert tidy(now=later) == nothing | {"seeds": 0}
    assert list(Scenario.objects.all()) == [kept] and list(Question.objects.all()) == [over]
    assert bytes(Scenario.objects.get().document) == text.encode()
    assert set(RecordedCycle.objects.values_list("scenario", flat=True)) == {kept.pk}
    assert not Moment.objects.exclude(scenario=kept).exists()
    assert list(Comparison.objects.all()) == [alone]


@pytest.mark.dialect
def test_old_proofs_are_tidied_away_and_the_newest_stay(wakes, monkeypatch):
    from playground.scenarios.services import storage

    monkeypatch.setattr(storage, "KEPT_PROOFS", 2)
    scenario = share(document=small_text()).scenario
    scenario.verifications.all().delete()
    for state in ("queued", "done", "done", "done", "done"):
        Verification.objects.create(scenario=scenario, state=state)
    left = scenario.verifications.order_by("pk").values_list("state", flat=True)
    newest = set(scenario.verifications.order_by("-pk").values_list("pk", flat=True)[:2])
    assert storage.tidy()["proofs"] == 2
    assert list(left) == ["queued", "done", "done"]
    assert newest <= set(scenario.verifications.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_a_comparison_goes_with_its_shares(client, work):
    from playground.scenarios.services.comparing import request_comparison

    shares = [share(document=small_text(seed=seed)).scenario for seed in (1, 2)]
    sides = [{"kind": "scenario", "id": one.public_id, "cycle": None} for one in shares]
    comparison = request_comparison(a=sides[0], b=sides[1])
    work()
    pages = (f"/compare/{comparison.public_id}/", f"/api/v1/comparisons/{comparison.public_id}/")
    assert [client.get(page).status_code for page in pages] == [200, 200]
    Scenario.objects.filter(pk=shares[1].pk).update(expires=timezone.now() - timedelta(seconds=1))
    assert [client.get(page).status_code for page in pages] == [404, 404]


def test_a_fork_does_not_tell_strangers_the_title_of_a_teams_share(client, settings, wakes):
    from playground.accounts.models import Membership, Team, User

    settings.EMBEDDED = False
    ada = User.objects.create_user("ada")
    Membership.objects.create(team=Team.objects.create(name="t"), user=ada)
    secret = share(document=small_text(title="Project Zeppelin"), owner=ada, visibility="team").scenario
    fork = share(
        document=small_text(title="Nothing", seed=9), owner=ada, visibility="public", parent=secret
    ).scenario
    page = client.get(f"/s/{fork.public_id}/").content.decode()
    assert "Zeppelin" not in page and "not open to you" in page
    client.force_login(ada)
    assert (
        "Forked from" in (page := client.get(f"/s/{fork.public_id}/").content.decode()) and "Zeppelin" in page
    )
