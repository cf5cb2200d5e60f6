"""Every page: the whole page, its htmx part, no other user's cluster, and how many queries it makes."""

import re

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from playground.clusters.models import Cluster, Node, Pod, Run
from playground.web.board.queue import view_lanes
from playground.web.board.views import ticks
from playground.web.home import find_in_cluster
from playground.web.looks import PriorityScale
from playground.web.pages import help_path
from tests.markup import html_of
from tests.tables import table
from tests.web import factories, routes
from tests.web.routes import ADDRESSES, C
from tests.web.test_words import help_of, miscounted

pytestmark = pytest.mark.django_db

HTMX = {"HTTP_HX_REQUEST": "true"}


def get(client, name, *args, **query):
    return client.get(reverse(f"web:{name}", args=args), query)


def test_what_is_said_of_routes_is_said_of_routes_there_are():
    assert routes.MORE.keys() | routes.NO_PAGES.keys() <= routes.ROUTES.keys()


QUERIES = {
    C: 15,
    f"{C}followed/": 14,
    f"{C}?node=node-3": 18,
    f"{C}?pick=default/train-2": 16,
    f"{C}?view=table": 13,
    f"{C}pods/default/train-2/": 11,
    f"{C}cycles/3/devices/": 11,
    f"{C}pods/": 5,
    f"{C}nodes/": 3,
    f"{C}pods/new/": 3,
    f"{C}changes/": 2,
    f"{C}config/": 2,
    f"{C}schedulers/": 4,
    f"{C}config/classes/": 7,
    f"{C}cluster/?confirm=delete": 7,
    f"{C}cycles/": 6,
    f"{C}cycles/1/": 6,
    f"{C}timeline/": 12,
    "/": 6,
}
"""Where it is more than `MOST`, or fewer and worth keeping so."""
MOST = 8


AT_THE_BEGINNING = {"web:home", "web:about", "web:manual"}
"""Pages whose Help is the manual's list of chapters."""


def test_every_page_is_whole_obeys_the_content_policy_counts_rightly_and_has_its_chapter_of_help(
    client, cluster, django_assert_max_num_queries, subtests
):
    for route, address in ADDRESSES:
        cache.clear()
        with subtests.test(address):
            with django_assert_max_num_queries(QUERIES.get(address, MOST)):
                response = client.get(address.format(c=cluster.public_id))
            assert response.status_code == 200, (
                f"{route} shows no page; if it is none, say so in NO_PAGES of {routes.__file__}"
            )
            html = html_of(response)
            follows = "kube-scheduler v1.34.1" if "{c}" in address else "kube-scheduler 1.34 to 1.37"
            assert html.count("<main") == 1 and follows in html
            assert " style=" not in html and "<script>" not in html and "onclick" not in html
            assert "script-src 'self'" in response["Content-Security-Policy"]
            assert "{c}" not in address or not (wrong := miscounted(html, route, cluster)), wrong
            [target] = help_of(html)
            assert target == help_path(*route.split(":"))
            assert target != "/manual/" or route in AT_THE_BEGINNING


def test_more_rows_make_no_more_queries(client, cluster, django_assert_max_num_queries):
    for i in range(5):
        factories.make_cluster(f"more-{i}", n_nodes=3)
    with django_assert_max_num_queries(6):
        get(client, "home")


def test_a_cluster_that_does_not_exist_is_not_found(client, db):
    for name in ("board", "cycles", "pods", "pod-new", "import", "pools", "config", "classes", "settings"):
        assert get(client, name, "nosuch").status_code == 404


def test_another_users_cluster_is_not_found(client, cluster, settings, django_user_model):
    settings.EMBEDDED = False
    mine = factories.make_cluster("mine", owner=django_user_model.objects.create_user("me"), n_nodes=1)
    # Who is not logged in is asked to, whether there is such a cluster or not.
    for public_id in (mine.public_id, "nosuch"):
        assert "/login/" in get(client, "board", public_id).headers["Location"]
    client.force_login(django_user_model.objects.get(username="me"))
    assert get(client, "board", mine.public_id).status_code == 200
    assert get(client, "board", cluster.public_id).status_code == 404
    assert cluster.name not in html_of(get(client, "home"))


def test_home_answers_htmx_with_the_cards_alone(client, cluster):
    response = client.get(reverse("web:home"), {"q": "store"}, **HTMX)
    html = html_of(response)
    assert html.lstrip().startswith("<ul") and cluster.name in html and "HX-Request" in response["Vary"]
    assert cluster.name not in html_of(client.get(reverse("web:home"), {"q": "nope"}, **HTMX))
    have = re.search(r'id="cards-have" value="(\w+)"', html_of(get(client, "home"))).group(1)
    assert client.get(reverse("web:home"), {"have": have, "q": ""}, **HTMX).status_code == 204
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    news = html_of(client.get(reverse("web:home"), {"have": have, "q": ""}, **HTMX))
    assert "Cycle 10: web-5 bound" in news and "data-say" not in news and have not in news


def test_the_board_shows_nodes_queue_and_feed(client, cluster):
    html = html_of(get(client, "board", cluster.public_id, node="node-1"))
    for words in ("zone-a", "node-2", "not ready", "cordoned", "gpu=true", "payments-b7d", "Next cycle",
                  "Allow mpi-0", "quota.example.com/approved", "#8", "Pods on node-1"):  # fmt: skip
        assert words in html, words


def test_a_pod_opens_in_the_inspector(client, cluster, django_assert_max_num_queries):
    url = reverse("web:inspector", args=[cluster.public_id])
    with django_assert_max_num_queries(6):
        response = client.get(url, {"pod": "default/train-2"}, **HTMX)
    html = html_of(response)
    for words in ("Pending", "Unschedulable", "not in it: pending pods take no room", "Cycle 3",
                  "attempt 1", "Best fix", "Edit YAML", "Delete", "train-2/fix/"):  # fmt: skip
        assert words in html, words
    # The next tick asks about it too, and without script the same is a page.
    assert 'name="selected" id="pulse-selected" value="default/train-2"' in html
    assert client.get(url, {"pod": "default/train-2"})["Location"].endswith(
        "?pod=default%2Ftrain-2#inspector"
    )
    with django_assert_max_num_queries(17):
        page = html_of(get(client, "board", cluster.public_id, selected="default/train-2"))
    assert "not in it: pending pods take no room" in page
    gone = html_of(client.get(url, {"pod": "default/never"}, **HTMX))
    assert "default/never is not there any more" in gone


def test_pieces_of_bars_and_rows_of_a_node_lead_to_their_pod(client, cluster):
    page = html_of(get(client, "board", cluster.public_id, node="node-1"))
    key = re.search(r"<g>\s*<title>([^:]+): ", page).group(1)
    assert Pod.objects.filter(cluster=cluster, name=key.partition("/")[2]).exists()
    rows = page.partition("Pods on node-1")[2]
    assert f'hx-get="{reverse("web:inspector", args=[cluster.public_id])}?pod=' in rows


@pytest.mark.parametrize("view", ["", "table"])
@pytest.mark.parametrize("group", ["none", "disk", "nonsense"])
@pytest.mark.dialect
def test_nodes_can_be_seen_in_two_ways_and_grouped_by_any_label(client, cluster, view, group):
    assert get(client, "board", cluster.public_id, view=view, group=group).status_code == 200


def test_a_tick_brings_only_what_changed(client, cluster):
    page = get(client, "board", cluster.public_id)
    have = page.context["have"]
    url = reverse("web:live", args=[cluster.public_id])
    same = client.get(url, {"have": have}, **HTMX)
    assert same.status_code == 200 and html_of(same).count("hx-swap-oob") == 1  # the digests
    again = client.get(url, {"have": have}, HTTP_IF_NONE_MATCH=same["ETag"], **HTMX)
    assert again.status_code == 304
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    changed = client.get(url, {"have": have}, HTTP_IF_NONE_MATCH=same["ETag"], **HTMX)
    html = html_of(changed)
    assert 'id="feed"' in html and "#9" in html and 'id="nodes-view"' not in html


def test_polling_stops_when_the_cluster_is_gone(client, cluster):
    url = reverse("web:live", args=[cluster.public_id])
    Cluster.objects.all().delete()
    assert client.get(url, **HTMX).status_code == 286


def test_ticks_are_refused_without_asgi(rf):
    assert ticks(rf.get("/"), Cluster()).status_code == 501


def test_a_step_asks_for_one_cycle_and_shows_the_run(client, cluster):
    response = client.post(reverse("web:run", args=[cluster.public_id]), {"until": "cycle"}, **HTMX)
    run = Run.objects.get(cluster=cluster)
    assert run.until == "cycle" and response["HX-Trigger"] == "pulse" and not response.content
    url = reverse("web:live", args=[cluster.public_id])
    assert "waiting for a worker" in html_of(client.get(url, **HTMX))
    client.post(reverse("web:run-cancel", args=[cluster.public_id, run.public_id]), **HTMX)
    run.refresh_from_db()
    response = client.get(url, **HTMX)
    assert run.state == "cancelled" and "run-cancel" not in html_of(response)


def test_run_buttons_work_without_script(client, cluster):
    response = client.post(reverse("web:run", args=[cluster.public_id]), {"until": "idle"})
    assert response.status_code == 302 and Run.objects.get(cluster=cluster).until == "idle"


def test_advance_runs_exactly_to_the_next_timer(client, cluster):
    cluster.next_deadline_ns = cluster.now_ns + 1_234_567_890
    cluster.save()
    client.post(reverse("web:run", args=[cluster.public_id]), {"until": "time"})
    assert Run.objects.get(cluster=cluster).duration_ns == 1_234_567_890


def test_cordon_and_uncordon(client, cluster):
    url = reverse("web:cordon", args=[cluster.public_id, "node-1"])
    client.post(url, {"unschedulable": "1"})
    assert Node.objects.get(cluster=cluster, name="node-1").unschedulable
    client.post(url, {"unschedulable": "0"})
    assert not Node.objects.get(cluster=cluster, name="node-1").unschedulable
    refused = client.post(reverse("web:cordon", args=[cluster.public_id, "nosuch"]), follow=True)
    assert refused.request["PATH_INFO"] == reverse("web:board", args=[cluster.public_id])
    assert "nosuch" in html_of(refused).partition('id="messages"')[2].partition("<main")[0]


def test_the_cycle_page_says_everything(client, cluster):
    html = html_of(get(client, "cycle", cluster.public_id, 1))
    for words in (
        "Filter",
        "raw → normalised × weight = points",
        "Cycle 2",
        "Digest",
    ):
        assert words in html
    tied = html_of(get(client, "cycle", cluster.public_id, 2))
    assert "The draw:" in tied
    preempting = html_of(get(client, "cycle", cluster.public_id, 4))
    assert "PostFilter: DefaultPreemption" in preempting and "What happens next" in preempting
    assert "was the only feasible node" in html_of(get(client, "cycle", cluster.public_id, 5))
    assert "PreFilter rejected the pod" in html_of(get(client, "cycle", cluster.public_id, 6))
    assert "The cluster had no node" in html_of(get(client, "cycle", cluster.public_id, 8))
    assert get(client, "cycle", cluster.public_id, 99).status_code == 404


def test_a_part_of_the_message_works_without_script(client, cluster):
    html = html_of(get(client, "cycle", cluster.public_id, 3, part="r0"))
    assert 'aria-pressed="true"' in html


@pytest.mark.dialect
def test_cycles_are_filtered(client, cluster):
    def rows(**query):
        to_the_table = {**HTMX, "HTTP_HX_TARGET": "rows"}
        url = reverse("web:cycles", args=[cluster.public_id])
        return html_of(client.get(url, query, **to_the_table))

    assert "#3" in rows(outcome="unschedulable") and "#1<" not in rows(outcome="unschedulable")
    assert "#4" in rows(pod="payments") and "#1<" not in rows(pod="payments")
    assert "#3" in rows(pod="default/train-2")
    assert "No cycle matches" in rows(node="nosuch")
    oldest = rows(sort="number")
    assert 'aria-sort="ascending"' in oldest and oldest.index("#1<") < oldest.index("#3<")
    assert "outcome=bound" in rows(outcome="bound"), "the headings keep what is found"


def test_the_story_of_a_pod_has_its_attempts_and_events(client, cluster):
    html = html_of(get(client, "pod", cluster.public_id, "default", "train-2"))
    for words in ("Created", "Attempt 1, cycle 3", "NotTriggerScaleUp", "Why it is not running"):
        assert words in html, words
    foreign = html_of(get(client, "pod", cluster.public_id, "default", "other-0"))
    assert "never scheduled here" not in foreign and "This pod waits for the scheduler" in foreign
    assert get(client, "pod", cluster.public_id, "default", "absent").status_code == 404


def test_a_hostile_name_is_escaped(client, cluster):
    Cluster.objects.filter(pk=cluster.pk).update(name="<script>alert(1)</script>")
    for page in ("board", "settings", "cycles"):
        assert "<script>alert" not in html_of(get(client, page, cluster.public_id))


def test_pods_of_a_lane_are_listed(client, cluster):
    html = html_of(get(client, "pods", cluster.public_id, lane="unschedulable"))
    assert "train-2" in html and "web-3" not in html
    assert ">Unschedulable</td>" in html and "<h1>Pods: Unschedulable</h1>" in html
    assert Pod.objects.filter(cluster=cluster).count() > 5


def test_a_trace_that_was_not_kept_is_asked_of_a_worker(client, cluster, wakes):
    cluster.cycles.filter(number=1).update(trace=None)
    html = html_of(get(client, "cycle", cluster.public_id, 1))
    assert wakes[-1][0] == "recompute_trace"
    assert "Computing this cycle again" in html and "every 500ms" in html
    cluster.cycles.filter(number=1).update(trace_note="Engine 2 decides this cycle differently.")
    html = html_of(get(client, "cycle", cluster.public_id, 1))
    assert "decides this cycle differently" in html and "every 500ms" not in html


def test_a_large_table_of_nodes_has_pages(client, wakes):
    big = factories.make_cluster("big", n_nodes=250)
    first = html_of(get(client, "board", big.public_id, view="table", group="none"))
    assert "Page 1 of 13" in first and ">node-250<" not in first
    assert ">node-250<" in html_of(get(client, "board", big.public_id, view="table", group="none", page=13))


def test_above_two_hundred_nodes_a_node_is_its_bars_alone(client, wakes):
    big = factories.make_cluster("big", n_nodes=250)
    html = html_of(get(client, "board", big.public_id))
    assert html.count('<a class="nd') == 250 and "<text" not in html and len(html) < 170_000


def test_a_preemption_page_shows_steps_room_and_what_comes_next(client, cluster):
    cycle = factories.add_cycle(
        cluster, "reprieved", pod_name="payments-b7d", node=None, outcome="preempting"
    )
    html = html_of(get(client, "cycle", cluster.public_id, cycle.number))
    for words in ("How the victims were found", "removed 3, 1 could stay", "n3 before and after",
                  "out at 5", "to come", "low-3-2"):  # fmt: skip
        assert words in html, words


def test_what_a_reader_meets_is_explained_where_it_is_met(client, cluster):
    """Backoff's window, the approval annotation, CycleState after the scheduling cycle, preemption across nodes."""
    board = html_of(get(client, "board", cluster.public_id))
    assert "by second, then priority" in board
    assert "With ManualApproval in its profile" in view_lanes({}, {}, PriorityScale(()), now_ns=0)[1]["empty"]
    preempting = html_of(get(client, "cycle", cluster.public_id, 4))
    assert "Victims are looked for on the candidate node alone" in preempting
    assert "what is plain data (JSON)" in preempting


@pytest.mark.parametrize(
    ("words", "title"),
    table(__file__, "find_knows_the_words_of_the_field"),
)
def test_find_knows_the_words_of_the_field(cluster, words, title):
    (pages,) = (group for group in find_in_cluster(cluster, words) if group.title == "Pages")
    assert title in [page.title for page in pages.items]


@pytest.mark.parametrize("route", ["plan", "cycles"])
def test_formal_model_and_joint_placement_are_linked_from_the_clusters_pages(client, cluster, route):
    shown = html_of(get(client, route, cluster.public_id))
    assert reverse("scenarios:cluster-model", args=[cluster.public_id]) in shown
    assert reverse("scenarios:cluster-optimum", args=[cluster.public_id]) in shown


def test_auto_lets_the_clock_run_and_pause_stops_it(client, cluster):
    url = reverse("web:clock", args=[cluster.public_id])
    assert client.post(url, {"mode": "realtime"}, **HTMX)["HX-Trigger"] == "pulse"
    html = html_of(get(client, "board", cluster.public_id))
    cluster.refresh_from_db()
    assert cluster.clock_mode == "realtime" and "data-clock=" in html and "at 1x" in html
    Cluster.objects.filter(pk=cluster.pk).update(start_ns=cluster.start_ns - 10**15)
    assert 'data-clock="10000' in html_of(get(client, "board", cluster.public_id))
    client.post(url, {"mode": "paused"}, **HTMX)
    html = html_of(get(client, "board", cluster.public_id))
    cluster.refresh_from_db()
    assert cluster.clock_mode == "paused" and "data-clock=" not in html
    client.post(url, {"mode": "toggle"})
    cluster.refresh_from_db()
    assert cluster.clock_mode == "realtime"
    assert client.post(url, {"mode": "backwards"}, follow=True).status_code == 200
    refused = client.post(url, {"mode": "backwards"}, **HTMX)
    assert 'role="alert"' in html_of(refused) and "<html" not in html_of(refused)


def test_zones_group_even_when_each_has_one_node(client, wakes):
    small = factories.make_cluster("small", n_nodes=3)
    html = html_of(get(client, "board", small.public_id))
    assert re.findall(r'<th scope="col"><b>(.*?)</b>', html) == ["zone-a", "zone-b", "zone-c"]


def test_a_set_aside_engine_says_why_and_can_be_tried_again(client, cluster):
    Cluster.objects.filter(pk=cluster.pk).update(parked_reason="the engine failed: boom")
    html = html_of(get(client, "board", cluster.public_id))
    assert "the engine failed: boom" in html and "Try again" in html
    client.post(reverse("web:cluster-action", args=[cluster.public_id, "retry"]))
    cluster.refresh_from_db()
    assert not cluster.parked_reason


def test_a_static_file_is_as_long_as_it_says(client, db):
    response = client.get("/static/css/site.css")
    assert response.status_code == 200 and int(response["Content-Length"]) == len(response.content)


def test_a_form_without_its_token_is_refused_in_words(cluster):
    response = Client(enforce_csrf_checks=True).post(reverse("web:run", args=[cluster.public_id]))
    assert response.status_code == 403 and "The form was not accepted" in html_of(response)
    assert not Run.objects.exists()


def test_a_broken_page_says_that_nothing_was_changed(cluster, monkeypatch):
    def broken(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr("playground.web.board.views._context", broken)
    response = Client(raise_request_exception=False).get(reverse("web:board", args=[cluster.public_id]))
    html = html_of(response)
    assert response.status_code == 500 and "Something broke on our side" in html and "boom" not in html


def test_the_guide_names_the_next_pods_until_the_user_has_looked_around(client, wakes):
    fresh = factories.make_cluster("fresh")
    html = html_of(get(client, "board", fresh.public_id))
    assert "First steps" in html and "Step again" in html
    for _ in range(3):
        factories.add_cycle(fresh, "scored", pod_name="web-0")
    assert 'id="first-steps"' not in html_of(get(client, "board", fresh.public_id))


def test_a_story_is_sent_again_only_when_it_is_another_one(client, cluster):
    url = reverse("web:pod", args=[cluster.public_id, "default", "train-2"])
    have = client.get(url).context["have"]
    assert client.get(url, {"have": have}, **HTMX).status_code == 204
    factories.add_cycle(cluster, "unschedulable", pod_name="train-2")
    changed = client.get(url, {"have": have}, **HTMX)
    html = html_of(changed)
    assert changed.status_code == 200 and "Attempt" in html and "<html" not in html
