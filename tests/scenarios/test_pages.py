"""Pages of scenarios without a browser: what they say, whom they answer, and what they cost."""

import re

import pytest
from django.core.cache import cache
from django.test import Client

from playground.accounts.models import User
from playground.clusters import jobs
from playground.clusters.models import Cluster
from playground.clusters.objects.write import set_cordon
from playground.engine.scenarios import gallery_documents
from playground.scenarios.models import Comparison, Moment, Origin, RecordedCycle, Scenario
from playground.scenarios.services import gallery as gallery_services
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.forking import fork
from playground.scenarios.services.gallery import share_one
from playground.scenarios.services.proof import request_verification
from playground.scenarios.services.shares import share
from playground.web.scenarios import gallery as gallery_pages
from tests.markup import html_of, words
from tests.scenarios.documents import PACKING, node, pod, small, small_text, text_of
from tests.scenarios.test_clusters import made_by_hand
from tests.tables import table

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def scenario(work) -> Scenario:
    path = [{"cycle": 2, "focus": "NodeResourcesFit", "text": "Look at the fit."}]
    made = share(document=small_text(path=path, lesson="A lesson.")).scenario
    work()
    made.refresh_from_db()
    return made


def test_the_page_shows_title_proof_and_a_moment(client, scenario):
    first = scenario.path[0]["cycle"]
    assert f"Cycle {first} of 5" in words(client.get(f"/s/{scenario.public_id}/")), (
        "a path is told from its start"
    )
    answer = client.get(f"/s/{scenario.public_id}/?cycle=5")
    assert answer.status_code == 200
    said = words(answer)
    for expected in (
        "Five pods on three nodes",
        "Reproduced 5 of 5 decisions",
        "Cycle 5 of 5",
        "Guided path",
    ):
        assert expected in said
    assert scenario.digest in said
    assert "giant" in said and "Insufficient cpu" in said
    assert client.get(f"/s/{scenario.public_id}").status_code == 200


def test_to_go_on_with_it_comes_first_and_an_embedded_site_says_whose_link_it_is(client, scenario, settings):
    page = client.get(f"/s/{scenario.public_id}/").content.decode()
    assert page.index("Fork to edit") < page.index("Download .yaml") < page.index("this machine only")
    settings.EMBEDDED = False
    page = client.get(f"/s/{scenario.public_id}/").content.decode()
    assert page.index("Fork to edit") < page.index("Download .yaml")
    assert "this machine only" not in page


def test_nodes_whose_names_begin_alike_are_told_apart_on_the_board_of_a_moment(client, work):
    names = [f"gke-prod-general-pool-1-e7d80068-{end}" for end in ("k2d6", "dbvm")]
    nodes = [node(name) for name in names]
    nodes[1]["spec"] = {"unschedulable": True}
    made = share(document=small_text(objects=[*nodes, pod("web")], steps=[])).scenario
    work()
    for path in ("", "embed/"):
        client.get(f"/s/{made.public_id}/{path}")
        work()
        html = html_of(client.get(f"/s/{made.public_id}/{path}"))
        assert all(f'title="{name}"' in html and f">{name[-4:]}</text>" in html for name in names), path
        assert "; cordoned" in html


def test_htmx_gets_the_moment_alone(client, scenario):
    whole = client.get(f"/s/{scenario.public_id}/?cycle=5")
    part = client.get(f"/s/{scenario.public_id}/?cycle=5", headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode() and 'id="moment"' in part.content.decode()
    assert "HX-Request" in whole["Vary"]


def test_a_moment_not_known_yet_is_asked_for_once(client, scenario, wakes, work):
    first = client.get(f"/s/{scenario.public_id}/?cycle=2")
    assert "Computing this moment" in words(first)
    assert len(wakes) == 1
    client.get(f"/s/{scenario.public_id}/?cycle=2&wait=1")
    assert len(wakes) == 1
    # The page that waits is left as it is, with the focus and what was written there.
    ask = {"path": f"/s/{scenario.public_id}/?cycle=2&wait=1", "headers": {"HX-Request": "true"}}
    assert client.get(**ask).status_code == 204
    work()
    assert client.get(**ask).status_code == 200
    assert "Nodes after cycle 2" in words(client.get(f"/s/{scenario.public_id}/?cycle=2&wait=1"))
    assert Moment.objects.count() == 5


def test_the_raw_document_is_what_was_given(client, scenario):
    answer = client.get(f"/s/{scenario.public_id}.yaml", headers={"Origin": "https://elsewhere.example"})
    assert answer.content == bytes(scenario.document)
    assert answer["Content-Type"].startswith("application/yaml")
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["X-Robots-Tag"] == "noindex"


def test_the_download_carries_the_decisions_and_is_the_same_scenario(client, scenario, work):
    answer = client.get(f"/s/{scenario.public_id}.yaml?decisions=1&download=1")
    assert answer["Content-Disposition"] == 'attachment; filename="small.yaml"'
    assert f"digest: {scenario.decisions_digest}" in answer.content.decode()
    again = share(document=answer.content, visibility="public").scenario
    work()
    assert again.digest == scenario.digest
    assert again.verifications.get().is_proof


def test_a_link_leads_to_a_cycle_a_node_and_a_plugin(client, scenario):
    answer = client.get(f"/s/{scenario.public_id}/cycles/2/?node=node-c&plugin=NodeResourcesFit")
    said = words(answer)
    assert "node-c, NodeResourcesFit what the link points at" in said
    assert "Look at the fit." in said and "stop 1 of 1" in said
    assert client.get(f"/s/{scenario.public_id}/cycles/2/?node=absent").status_code == 200
    assert client.get(f"/s/{scenario.public_id}/cycles/99/").status_code == 404


def test_a_cycle_of_an_engine_that_is_gone_stays_viewable(client, scenario):
    RecordedCycle.objects.filter(scenario=scenario, number=2).update(trace=b"from another age")
    answer = client.get(f"/s/{scenario.public_id}/cycles/2/")
    assert answer.status_code == 200
    assert "recorded by another engine" in words(answer)
    assert "default/web-1 bound" in words(answer)


def test_a_cycle_of_a_large_cluster_is_shown_whole_when_it_is_asked_for(client, work):
    nodes = [node(f"n-{i:03}", cpu=str(1 + i % 7)) for i in range(201)]
    scenario = share(document=small_text(objects=[*nodes, pod("web"), pod("api")])).scenario
    work()
    page = f"/s/{scenario.public_id}/cycles/2/"
    assert "Show everything" in words(client.get(page)) and "NodeResourcesFit" not in words(client.get(page))
    answer = client.post(f"{page}whole/")
    assert answer["Location"] == f"{page}?wait=1"
    waiting = client.get(f"{page}?wait=1", headers={"HX-Request": "true"})
    assert waiting.status_code == 200 and f"{page}?wait=2" in waiting.content.decode()
    work()
    done = client.get(f"{page}?wait=2", headers={"HX-Request": "true"})
    assert done.status_code == 286 and done["HX-Refresh"] == "true"
    whole = words(client.get(page))
    assert "Show everything" not in whole and "NodeResourcesFit" in whole
    away = client.post(f"/s/{scenario.public_id}/cycles/99/whole/", headers={"HX-Request": "true"})
    assert "not found" in away.content.decode() and client.get(page.replace("/2/", "/99/")).status_code == 404


def test_a_cycle_that_is_decided_otherwise_now_keeps_what_was_recorded(client, scenario, work):
    RecordedCycle.objects.filter(scenario=scenario, number=2).update(trace=None, digest="f" * 64)
    client.post(f"/s/{scenario.public_id}/cycles/2/whole/")
    work()
    assert RecordedCycle.objects.get(scenario=scenario, number=2).trace is None
    assert "They did not come" in words(client.get(f"/s/{scenario.public_id}/cycles/2/?wait=90"))


def test_the_page_names_the_cycle_that_differs(client, scenario, work):
    RecordedCycle.objects.filter(scenario=scenario, number=3).update(digest="f" * 64)
    request_verification(scenario=scenario)
    work()
    said = words(client.get(f"/s/{scenario.public_id}/"))
    assert "Differs at cycle 3" in said
    assert "Cycle 3 is decided differently" in said and "As recorded" in said and "As decided now" in said


def test_names_on_a_share_s_pages_are_escaped(client, work):
    title = '<script>alert("x")</script> & more'
    made = share(document=small_text(title=title)).scenario
    for path in (f"/s/{made.public_id}/", f"/s/{made.public_id}/embed/"):
        assert b"<script>alert" not in client.get(path).content


def test_forking_and_branching_make_clusters(client, scenario):
    answer = client.post(f"/s/{scenario.public_id}/fork/")
    cluster = Cluster.objects.get()
    assert answer["Location"] == f"/c/{cluster.public_id}/"
    assert Origin.objects.get().scenario == scenario
    answer = client.post(f"/s/{scenario.public_id}/branch/", {"cycle": "2"})
    assert Cluster.objects.count() == 2
    assert client.post(f"/s/{scenario.public_id}/branch/", {"cycle": "77"}).status_code == 404
    assert Cluster.objects.count() == 2


EDIT = table(__file__, "EDIT")


@pytest.mark.parametrize("of", ["share", "cluster"])
def test_a_branch_begins_with_the_edit_that_was_written(client, scenario, work, of):
    if of == "share":
        path = f"/s/{scenario.public_id}/branch/"
    else:
        path = f"/c/{made_by_hand(work).public_id}/replay/branch/"
    before = Cluster.objects.count()
    answer = client.post(path, {"cycle": "2", "edit": EDIT.replace('"99"', '"9x"')})
    assert answer.status_code == 400 and Cluster.objects.count() == before, "nothing is half made"
    said = answer.content.decode()
    assert "9x" in said and "line 4" in said and "metadata: {name: extra}" in said
    answer = client.post(path, {"cycle": "2", "edit": EDIT})
    made = Cluster.objects.order_by("-pk").first()
    assert answer["Location"] == f"/c/{made.public_id}/" + ("" if of == "share" else "difference/")
    assert made.nodes.filter(name="extra").exists()
    assert made.pods.exclude(node_name="").count() == 2


def test_a_form_shares_what_was_written_and_shows_errors_at_their_line(client, wakes):
    bad = small_text(stepz=[])
    answer = client.post("/s/new/", {"text": bad, "visibility": "unlisted"})
    assert answer.status_code == 400 and "did you mean" in words(answer)
    assert not Scenario.objects.exists()
    answer = client.post("/s/new/", {"text": small_text(), "visibility": "public", "days": "7"})
    made = Scenario.objects.get()
    assert answer["Location"] == f"/s/{made.public_id}/" and made.expires
    assert client.post("/s/new/", {"text": small_text(), "days": "soon"}).status_code == 400


def test_deleting_wants_a_post(client, scenario):
    assert client.get(f"/s/{scenario.public_id}/delete/").status_code == 200
    assert Scenario.objects.exists()
    client.post(f"/s/{scenario.public_id}/delete/")
    assert not Scenario.objects.exists()


def test_a_cluster_is_downloaded_or_linked(client, work):
    cluster = made_by_hand(work)
    answer = client.post(f"/c/{cluster.public_id}/share/", {"as": "file", "title": "T"})
    assert answer["Content-Disposition"] == 'attachment; filename="by-hand.yaml"'
    assert answer.content.startswith(b"apiVersion: scheduling.playground/v1")
    answer = client.post(f"/c/{cluster.public_id}/share/", {"title": "T", "visibility": "unlisted"})
    assert answer["Location"] == f"/s/{Scenario.objects.get().public_id}/"
    assert "as shared" in words(client.get(f"/c/{cluster.public_id}/share/"))
    set_cordon(cluster=cluster, node="node-b", unschedulable=False)
    assert "changed since shared" in words(client.get(f"/c/{cluster.public_id}/share/"))


def test_the_gallery_lists_every_lesson_and_opens_one(client, work):
    documents = gallery_documents()
    name = next(iter(documents))
    share_one(name, documents[name])
    work()
    answer = client.get("/gallery/")
    page = answer.content.decode()
    assert page.count('class="card"') == len(documents) + 1, "and the large one"
    assert "proved" in page and "not checked yet" not in page
    answer = client.post(f"/gallery/{name}/open/")
    cluster = Cluster.objects.get()
    assert answer["Location"] == f"/c/{cluster.public_id}/"
    assert cluster.nodes.exists() and Origin.objects.get().steps
    assert client.get("/gallery/nothing-of-that-name/").status_code == 404
    found = client.get("/gallery/?q=preemption")
    assert 0 < found.content.decode().count('class="card"') < len(documents)


def test_no_card_of_a_lesson_says_that_it_is_not_checked_and_once_it_ran_it_says_its_proof(
    client, work, monkeypatch
):
    cache.clear()  # that the gallery was asked for a moment ago
    documents = dict([*gallery_documents().items()][:3])
    for module in (gallery_pages, gallery_services):
        monkeypatch.setattr(module, "gallery_documents", lambda: documents)

    def cards_of(path, heading):
        html = html_of(client.get(path))
        cards = html[html.index(heading) :].split('class="card"')[1:]
        assert cards and "not checked" not in " ".join(cards).lower(), path
        return cards

    cards_of("/", 'id="h-teach"')
    new = cards_of("/gallery/", 'class="gg"')
    assert not any("proved" in card for card in new)
    work()
    *lessons, _ = cards_of("/gallery/", 'class="gg"')
    assert len(lessons) == len(documents)
    assert all(re.search(r"proved ([1-9]\d*)/\1<", card) for card in lessons)
    cards_of("/", 'id="h-teach"')


def test_the_replay_of_the_gpu_lesson_shows_gpus_and_taints(client, work):
    share_one("gpu-isolation", gallery_documents()["gpu-isolation"])
    work()
    lesson = Scenario.objects.get(gallery_name="gpu-isolation")
    page = f"/s/{lesson.public_id}/"
    client.get(page)
    work()
    html = client.get(page).content.decode()
    said = re.findall(r'aria-label="[^"]*GPU \d of 4[^"]*"', html)
    assert len(said) == 6, "six of fifteen nodes have GPUs"
    assert all("nvidia.com/gpu=present" in words for words in said)


def test_a_comparison_is_asked_for_by_form_and_has_a_link(client, scenario, work):
    other = share(document=small_text(scheduler=PACKING)).scenario
    asked = {
        "a": f"scenario/{scenario.public_id}",
        "b": "",
        "b-link": f"http://testserver/s/{other.public_id}/",
    }
    answer = client.post("/compare/", asked)
    comparison = Comparison.objects.get()
    assert answer["Location"] == f"/compare/{comparison.public_id}/"
    assert "Comparing" in words(client.get(answer["Location"]))
    work()
    said = words(client.get(answer["Location"]))
    assert "First decision that differs" in said and "Node Resources Fit" in said
    assert "Top score shared by 2 nodes in A, 1 node in B." in said
    assert f"{scenario.words} against {other.words}" in words(client.get("/compare/"))
    client.post("/compare/", asked | {"b-link": "http://testserver/s/absent/"})
    assert Comparison.objects.count() == 1


def test_another_users_cluster_does_not_exist(client, work, settings):
    cluster = made_by_hand(work)
    settings.EMBEDDED = False
    for path in ("replay/", "share/", "optimum/"):
        assert client.get(f"/c/{cluster.public_id}/{path}").status_code in (302, 404)
    made = fork(scenario=share(document=text_of(small())).scenario)
    assert client.post(f"/c/{made.public_id}/share/step/").status_code in (302, 404)


def test_a_stranger_reads_a_share_and_is_asked_to_log_in_for_the_rest(client, scenario, settings):
    settings.EMBEDDED = False
    for path in ("", "cycles/1/", "embed/"):
        assert client.get(f"/s/{scenario.public_id}/{path}").status_code == 200
    assert client.get("/gallery/").status_code == 200
    for path in ("/s/", "/s/new/", "/compare/", f"/s/{scenario.public_id}/optimum/"):
        assert client.get(path)["Location"].startswith("/account/login/"), path
    for path in ("fork/", "branch/", "verify/", "delete/", "optimum/"):
        answer = client.post(f"/s/{scenario.public_id}/{path}")
        assert answer["Location"].startswith("/account/login/"), path
    assert Scenario.objects.exists() and not Cluster.objects.exists()


def test_every_page_has_a_fixed_number_of_queries(client, scenario, work, django_assert_num_queries):
    cluster = made_by_hand(work)
    sides = [{"kind": "scenario", "id": scenario.public_id, "cycle": cycle} for cycle in (2, None)]
    comparison = request_comparison(a=sides[0], b=sides[1])
    client.get(f"/c/{cluster.public_id}/replay/?cycle=4")
    work()
    for path, n_queries in (
        (f"/s/{scenario.public_id}/", 5),
        (f"/s/{scenario.public_id}/embed/", 4),
        (f"/s/{scenario.public_id}.yaml", 2),
        (f"/s/{scenario.public_id}/cycles/2/", 2),
        (f"/s/{scenario.public_id}/luck/", 2),
        ("/s/", 1),
        ("/gallery/", 1),
        ("/compare/", 5),
        (f"/compare/{comparison.public_id}/", 2),
        (f"/c/{cluster.public_id}/replay/?cycle=4", 3),
        (f"/c/{cluster.public_id}/share/", 3),
        (f"/c/{cluster.public_id}/optimum/", 2),
    ):
        with django_assert_num_queries(n_queries, info=path):
            assert client.get(path).status_code == 200


def test_a_share_whose_message_was_lost_is_verified_all_the_same(wakes):
    share(document=small_text())
    wakes.clear()
    assert jobs.adopt() == 1
    assert jobs.Job.objects.get().task == "verify"


def test_the_gallery_is_grouped_and_every_card_leads_along_its_path(client, wakes):
    page = html_of(client.get("/gallery/"))
    titles = re.findall(r'<h2 id="h-[a-z-]+">([^<]+)</h2>', page)
    assert titles == [
        "Start here", "Scoring", "Spreading", "Preemption", "Queue", "Permit", "Extenders", "Volumes",
        "Resilience", "Loops", "Newer releases", "What differs", "At scale",
    ]  # fmt: skip
    assert page.count("guided path,") == len(gallery_documents())
    assert "At scale" not in words(client.get("/gallery/?q=taint")).split("Teaching scenarios")[-1]
    assert "No scenario speaks of that" in words(client.get("/gallery/?q=nonsense"))


def test_the_large_one_is_made_when_it_is_asked_for(client, wakes, monkeypatch):
    workers = []

    def asked(do, text, of, *, ask):
        workers.append((do, ask))
        return small_text(name="large")

    monkeypatch.setattr("playground.scenarios.services.gallery.asked", asked)
    for _ in range(2):
        answer = client.post("/gallery/at-scale/make/")
        made = Scenario.objects.get(gallery_name="openb-lookalike")
        assert answer["Location"] == f"/s/{made.public_id}/"
    [(do, worker)] = workers
    assert do == "lookalike" and callable(worker)  # through a worker, and the second time it is there
    assert f"/s/{made.public_id}/" in client.get("/gallery/").content.decode()


def test_what_differs_shows_each_scenario_and_opens_it_in_one_click(
    client, work, django_assert_max_num_queries
):
    with django_assert_max_num_queries(2):
        page = client.get("/differs/")
    html = page.content.decode()
    names = [name for name in gallery_documents() if name.startswith("differs-")]
    assert len(names) == 6
    for name in names:
        assert f'id="{name}"' in html and f'action="/gallery/{name}/open/"' in html
    assert html.count("You may have read") == 6 and " style=" not in html and "<script>" not in html
    opened = client.post("/gallery/differs-hints/open/")
    assert opened.status_code == 302 and opened["Location"].startswith("/c/")
    assert '/differs/"' in client.get("/about/").content.decode()
    assert '/differs/"' in client.get("/gallery/").content.decode()


def test_who_shared_sees_the_delete_code_for_as_long_as_the_session_and_no_other_does(client, settings):
    settings.EMBEDDED = False
    client.force_login(User.objects.create_user("ada"))
    page = f"/s/{share(document=small_text(), visibility='unlisted').scenario.public_id}/"
    answer = client.post("/s/new/", {"text": small_text(title="Another", seed=9), "visibility": "unlisted"})
    own = answer["Location"]
    code = re.search(r"alone shows: <code>(\S+)</code>", html_of(client.get(own)))[1]
    assert "alone shows" not in html_of(client.get(page)) and "alone shows" not in html_of(Client().get(own))
    other = Client()
    other.force_login(User.objects.create_user("bob"))
    assert other.post(f"{own}delete/", {"code": code}).status_code == 302
    assert not Scenario.objects.filter(public_id=own.split("/")[2]).exists()
