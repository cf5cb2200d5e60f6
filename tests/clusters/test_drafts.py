"""Dumps before they become clusters: read, decided and imported by a worker, and nothing kept before that."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils import timezone

from playground.clusters import drafts
from playground.clusters.errors import InvalidManifest, NotFound
from playground.clusters.models import Cluster, Draft, Job, Node, Pod
from playground.web.clusters.present import view_import
from tests.clusters.builders import make_cluster, make_node
from tests.real_dump import PENDING, as_yaml, real_dump

pytestmark = pytest.mark.django_db
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def at_once(django_capture_on_commit_callbacks):
    """Start a preview, with the job that comes of it."""

    def start(**kwargs):
        with django_capture_on_commit_callbacks(execute=True):
            return drafts.start_preview(**kwargs)

    return start


def test_a_small_dump_is_read_at_once_and_a_worker_decides_its_pending_pods(at_once, monkeypatch):
    monkeypatch.setattr(drafts, "fix_of_dump", lambda *_, **__: None)
    draft = at_once(text=as_yaml(real_dump(6, 260)))
    facts = draft.answer["facts"]
    n_pending = sum(workload.n for workload in PENDING)
    assert (facts["nodes"], facts["pending"], facts["placed"]) == (6, n_pending, 260 - n_pending)
    assert draft.is_open and "decided" not in draft.answer and not Cluster.objects.exists()
    [job] = Job.objects.all()
    drafts.work_on(**job.params)
    draft.refresh_from_db()
    assert draft.state == "done" and not Cluster.objects.exists() and not bytes(draft.text)
    decided = draft.answer["decided"]
    assert not decided["problem"]
    gated = {pod for group in facts["groups"] if group["gated"] for pod in group["pods"]}
    assert (
        len(gated) == 2
        and set(decided["pods"]) == {pod for group in facts["groups"] for pod in group["pods"]} - gated
    )
    view = view_import(draft.answer["import"], draft.answer)["dump"]
    by_name = {group["name"]: group for group in view["groups"]}
    render = by_name["reports/nightly-render"]
    assert (render["kind"], render["count"], render["n_placed"]) == ("Job", 200, 0)
    assert render["causes"][0].startswith("Insufficient cpu: ") and render["causes"][0].endswith(
        " of 6 nodes"
    )
    assert by_name["shop/checkout-canary"]["kind"] == "Deployment"
    assert by_name["payments/fraud"]["causes"] == ["held back by a scheduling gate"]
    assert sum(n for _, n in view["by_reason"]) == n_pending
    assert view["verdict"] == f"{n_pending} pods are pending, and none of them finds a node."


@pytest.mark.any_database
def test_the_preview_decides_as_the_cluster_does_that_is_made_of_the_dump(at_once, monkeypatch):
    monkeypatch.setattr(drafts, "fix_of_dump", lambda *_, **__: None)
    text = as_yaml(real_dump(20, 320))
    roomy = text.replace("cpu: '60'", "cpu: 500m")
    assert roomy != text
    draft = at_once(text=roomy)
    drafts.work_on(draft_id=draft.pk)
    draft.refresh_from_db()
    placed = {pod for pod, told in draft.answer["decided"]["pods"].items() if told["node"]}
    from playground.clusters.lifecycle import create_cluster
    from playground.clusters.objects.apply import apply_documents
    from tests.rare_cycles import run_until

    cluster = create_cluster(name="prod", seed=0, kubernetes_release=draft.wanted["release"])
    apply_documents(cluster=cluster, text=roomy)
    before = set(Pod.objects.filter(cluster=cluster, node_name="").values_list("namespace", "name"))
    run_until(cluster, "idle")
    now = Pod.objects.filter(cluster=cluster).exclude(node_name="").values_list("namespace", "name")
    assert placed == {f"{namespace}/{name}" for namespace, name in set(now) & before} and len(placed) >= 100


def test_a_large_dump_is_read_and_imported_by_a_worker(at_once, monkeypatch, client, no_wake):
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 1000)
    monkeypatch.setattr(drafts, "fix_of_dump", lambda *_, **__: None)
    text = as_yaml(real_dump(5, 230, owners=False))
    draft = at_once(text=text)
    assert draft.answer == {} and draft.is_open
    drafts.work_on(draft_id=draft.pk)
    draft.refresh_from_db()
    assert draft.state == "done" and draft.answer["facts"]["nodes"] == 5 and draft.answer["import"]["rebuilt"]
    response = client.post(
        reverse("web:new-import"), {"text": text, "cluster_name": "big", "action": "import"}
    )
    importing = Draft.objects.get(action="import")
    page = reverse("web:draft", args=[importing.public_id])
    assert response["Location"] == page and not Cluster.objects.exists()
    assert "<h2>Queued</h2>" in client.get(page, **HTMX).content.decode()
    drafts.work_on(draft_id=importing.pk)
    drafts.work_on(draft_id=importing.pk)
    cluster = Cluster.objects.get()
    assert (cluster.name, cluster.nodes.count()) == ("big", 5)
    looks = [client.get(page, **HTMX) for _ in range(2)]
    assert [look["HX-Redirect"] for look in looks] == [page, page]
    board = client.get(page, follow=True)
    assert board.redirect_chain[-1][0] == reverse("web:board", args=[cluster.public_id])
    assert board.content.decode().count("recreated from their pods") == 1


@pytest.mark.dialect
def test_a_large_text_for_a_cluster_that_is_there_is_a_workers_too(monkeypatch, client, no_wake):
    cluster = make_cluster(make_node("n0"))
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 1000)
    form = reverse("web:import", args=[cluster.public_id])
    text = as_yaml(real_dump(5, 230, owners=False))
    seen = client.post(form, {"text": text, "action": "preview"}, **HTMX).content.decode()
    assert "<h2>Queued</h2>" in seen and "every 500ms" in seen
    [draft] = Draft.objects.all()
    page = reverse("web:draft", args=[draft.public_id])
    whole = client.get(page).content.decode()
    assert f"Import into {cluster.name}" in whole and f'action="{form}"' in whole
    drafts.work_on(draft_id=draft.pk)
    seen = client.get(page, **HTMX).content.decode()
    assert "recreated from their pods" in seen and "create" in seen and cluster.nodes.count() == 1

    other = client.post(form, {"text": text, "action": "preview"}, **HTMX)
    left = Draft.objects.latest("pk")
    assert other.status_code == 200 and left.is_open
    cancelled = client.post(reverse("web:draft-cancel", args=[left.public_id]))
    assert cancelled["Location"] == form

    response = client.post(form, {"text": text, "action": "import"})
    importing = Draft.objects.get(action="import")
    page = reverse("web:draft", args=[importing.public_id])
    assert response["Location"] == page and cluster.nodes.count() == 1
    assert "<h2>Queued</h2>" in client.get(page).content.decode()
    drafts.work_on(draft_id=importing.pk)
    assert cluster.nodes.count() == 6
    looks = [client.get(page, **HTMX) for _ in range(2)]
    assert [look["HX-Redirect"] for look in looks] == [page, page]
    board = client.get(page, follow=True)
    assert board.redirect_chain[-1][0] == reverse("web:board", args=[cluster.public_id])
    assert board.content.decode().count("recreated from their pods") == 1


@pytest.fixture
def no_wake(monkeypatch):
    from playground.clusters import wake

    monkeypatch.setattr(wake, "send", lambda task, **kwargs: True)


def test_what_is_wrong_with_a_large_dump_is_told_at_its_line(at_once, monkeypatch, client):
    text = as_yaml(real_dump(3, 230)).replace("cpu: '60'", "cpu: sixty", 1)
    with pytest.raises(InvalidManifest) as refused:
        drafts.start_preview(text=text)
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 1000)
    draft = at_once(text=text)
    drafts.work_on(draft_id=draft.pk)
    draft.refresh_from_db()
    assert draft.state == "failed" and draft.problems == drafts.problems_of(refused.value)
    html = client.get(reverse("web:draft", args=[draft.public_id])).content.decode()
    assert f"line {refused.value.line}" in html and "sixty" in html


@pytest.mark.dialect
def test_a_preview_is_its_owners_and_is_cancelled_and_forgotten(at_once):
    ada, bob = (get_user_model().objects.create_user(name, password="x") for name in ("ada", "bob"))
    text = as_yaml(real_dump(3, 230))
    kept = [at_once(text=text, owner=ada) for _ in range(drafts.KEPT_PER_PERSON + 2)]
    assert Draft.objects.filter(owner=ada).count() == drafts.KEPT_PER_PERSON
    newest = kept[-1]
    for owner in (bob, None):
        with pytest.raises(NotFound):
            drafts.get_draft(newest.public_id, owner)
        drafts.cancel_draft(public_id=newest.public_id, owner=owner)
    assert drafts.get_draft(newest.public_id, ada).is_open
    drafts.cancel_draft(public_id=newest.public_id, owner=ada)
    drafts.work_on(draft_id=newest.pk)
    newest.refresh_from_db()
    assert newest.state == "cancelled" and "decided" not in newest.answer
    assert drafts.drop_old() == 0
    assert drafts.drop_old(now=timezone.now() + timedelta(hours=7)) == drafts.KEPT_PER_PERSON


def test_time_that_runs_out_leaves_pods_undecided_and_says_how_many(at_once, monkeypatch):
    monkeypatch.setattr(drafts, "fix_of_dump", lambda *_, **__: None)
    draft = at_once(text=as_yaml(real_dump(3, 230)))
    monkeypatch.setattr("playground.engine.dumps.MOST_SECONDS", -1.0)
    drafts.work_on(draft_id=draft.pk)
    draft.refresh_from_db()
    assert draft.state == "done" and len(draft.answer["decided"]["pods"]) == 1
    view = view_import(draft.answer["import"], draft.answer)["dump"]
    assert "222 were not decided" in view["verdict"]
    assert not Node.objects.exists()
