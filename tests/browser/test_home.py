"""Home: what this is, two doors, clusters with their branches, and lessons from their beginning."""

import gzip
import re

from playwright.sync_api import expect

from playground.clusters import branches, drafts, questions
from playground.clusters.models import Cluster, Draft, Manifest, Run
from playground.scenarios.services.gallery import gallery_scenario
from tests.browser.boxes import out_of_bounds
from tests.browser.looks import BOTH_WIDTHS
from tests.browser.waits import wait_until
from tests.real_dump import as_yaml, real_dump, with_few_waiting


@BOTH_WIDTHS
def test_the_first_door_leads_to_a_board_that_says_what_to_do(
    page, asgi_server, transactional_db, wakes, complaints, width
):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(asgi_server)
    expect(page.get_by_role("heading", level=1)).to_contain_text("why a pending one waits")
    assert not out_of_bounds(page)
    page.locator("#door-watch").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    assert Cluster.objects.count() == 1


def test_an_import_makes_missing_owners_and_says_so(page, asgi_server, transactional_db, wakes, complaints):
    page.goto(f"{asgi_server}/new/import/")
    text = as_yaml(real_dump(4, 240, owners=False))
    page.locator("#text").evaluate("(e, text) => { e.value = text; }", text)
    page.get_by_label("Leave out owners").check()
    expect(page.locator("#missing")).to_contain_text("240 pods name owners that are not in this text")
    expect(page.locator("#missing code").first).to_contain_text("kubectl get deploy,rs,sts,ds,jobs -A")
    page.get_by_label("Leave out owners").uncheck()
    expect(page.locator("#missing")).to_contain_text("owners are not in this text and are recreated")
    page.get_by_role("button", name="Create cluster").click()
    expect(page.locator("#messages")).to_contain_text("are recreated from their pods")
    kinds = set(Manifest.objects.filter(cluster=Cluster.objects.get()).values_list("kind", flat=True))
    assert {"ReplicaSet", "DaemonSet", "Job"} <= kinds


@BOTH_WIDTHS
def test_the_preview_says_who_is_pending_and_why_as_soon_as_a_worker_knows(
    page, asgi_server, transactional_db, wakes, complaints, width
):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{asgi_server}/new/import/")
    page.locator("#text").evaluate(
        "(e, text) => { e.value = text; }", as_yaml(with_few_waiting(real_dump(10, 240)))
    )
    page.locator("#import-see").click()
    preview = page.locator("#import-preview")
    expect(preview).to_contain_text("16 pods are pending.")
    expect(preview).to_contain_text("Queued")
    assert not out_of_bounds(page)
    [draft] = Draft.objects.filter(state="queued")
    drafts.work_on(draft_id=draft.pk)
    expect(preview).to_contain_text("16 pods are pending, and none of them finds a node.")
    expect(page.locator("#import-preview #asking")).to_have_count(0)
    indexer = page.locator("#pending tr", has_text="search/indexer")
    expect(indexer).to_contain_text("Insufficient cpu")
    expect(indexer.locator("td").first).to_have_text("8")
    expect(page.locator("#pools")).to_contain_text("m6i.4xlarge")
    expect(page.locator("#pools")).to_contain_text("eu-central-1b")
    assert not out_of_bounds(page)
    assert not Cluster.objects.exists()


def test_a_file_that_is_too_large_is_told_before_it_is_sent_and_read_when_it_is_packed(
    page, asgi_server, transactional_db, wakes, complaints, settings
):
    settings.PLAYGROUND_MAX_UPLOAD_BYTES = 2**20
    text = (as_yaml(with_few_waiting(real_dump(4, 240))) + "#" * 2**21).encode()
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    page.goto(f"{asgi_server}/new/import/")
    file = page.get_by_label("From a file")
    file.set_input_files({"name": "dump.yaml", "mimeType": "application/yaml", "buffer": text})
    said = "This upload has 2 MB; at most 1 MB are taken. Pack a larger dump with gzip"
    assert file.evaluate("e => e.validationMessage").startswith(said)
    for button in ("Preview", "Create cluster"):
        page.get_by_role("button", name=button).click()
    assert "POST" not in sent
    packed = {"name": "dump.yaml.gz", "mimeType": "application/gzip", "buffer": gzip.compress(text)}
    file.set_input_files(packed)
    expect(page.locator("#import-preview #asking")).to_be_visible()
    drafts.work_on(draft_id=Draft.objects.latest("pk").pk)
    expect(page.locator("#import-preview")).to_contain_text(re.compile(r"\d+ to create"))


def test_who_leaves_the_preview_wants_no_answer(page, asgi_server, transactional_db, wakes):
    page.goto(f"{asgi_server}/new/import/")
    page.locator("#text").evaluate("(e, text) => { e.value = text; }", as_yaml(real_dump(4, 240)))
    page.locator("#import-see").click()
    expect(page.locator("#import-preview #asking")).to_be_visible()
    page.goto(asgi_server)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    wait_until(page, lambda: Draft.objects.get().state == "cancelled")


def test_a_branch_knows_its_parent_and_runs_itself(page, asgi_server, cluster, complaints):
    cluster.refresh_from_db()
    question = questions.ask(cluster=cluster, kind="fix", params={"pod": "default/train-2"})
    change = {"write": [], "delete": ["default/web-0"]}
    question.answer = {"fixes": [{"title": "Delete web-0", "change": change}]}
    question.state = "done"
    question.save()
    branch = branches.branch_with_edit(question=question, rank=1)
    assert (branch.parent, branch.parent_cycle) == (cluster, cluster.next_cycle - 1)
    assert Run.objects.get(cluster=branch).until == "idle"
    page.goto(asgi_server)
    below = page.get_by_role("list", name=f"Branches of {cluster.name}")
    expect(below.get_by_role("link")).to_have_text(branch.name)
    expect(page.locator("#cards > li")).to_have_count(1)
    below.get_by_role("link").click()
    expect(page).to_have_url(re.compile(branch.public_id))
    expect(page.locator(".brbar")).to_contain_text(f"from cycle {cluster.next_cycle - 1} on")
    page.locator(".brbar").get_by_role("link", name=cluster.name, exact=True).click()
    expect(page).to_have_url(re.compile(f"/c/{cluster.public_id}/$"))
    expect(page.locator(".brbar")).to_have_count(0)


def test_a_lesson_is_told_from_its_first_stop(page, asgi_server, transactional_db, wakes, complaints):
    lesson = gallery_scenario("tie-break-4-fewest-victims")
    first = lesson.path[0]["cycle"] if lesson.path else 1
    assert lesson.n_cycles > first
    page.goto(f"{asgi_server}/s/{lesson.public_id}/")
    expect(page.locator("#cyc-shown")).to_have_text(str(first))
    expect(page.get_by_role("button", name="Fork to edit")).to_have_class(re.compile("primary"))
