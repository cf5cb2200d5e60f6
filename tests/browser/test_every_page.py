"""Every page of the site with a real cluster's names and numbers, at every width: no box leaves its place,
and no letter is without its words; a page of a cluster is neither long nor heavy (`test_lengths`).

By day at a desk and on a phone, and without those pages that are the same whatever is in a cluster (`test_pages`).

In the first of the walks Help is followed into each place of the manual, too; whose Help leads where: `tests.web`.

`PAGES`, `ACCOUNTS` and `OF_STRANGERS` have an address for each route that shows something, `NO_PAGES` (in
`tests.web.routes`) the reason for each that does not; a route in none fails. A page is loaded once and then made wider
and narrower.
"""

from itertools import chain

import pytest
from django.test import Client
from django.urls import resolve
from playwright.sync_api import expect

from playground.accounts import invitations, teams
from playground.accounts.models import User
from playground.accounts.tokens import create_token
from playground.clusters import drafts, questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cycle, Draft, ForeignDecision, Node, Pod, Question
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import set_cordon
from playground.scenarios.models import RecordedCycle, Verdict
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.moments import branch
from playground.scenarios.services.proof import request_verification
from playground.scenarios.services.shares import share
from playground.web.manual import CHAPTERS, chapter
from playground.web.pages import INDEX, help_path
from tests.browser.boxes import out_of_bounds, read_across, sideways
from tests.browser.looks import LIGHT, LOOKS, NONE_WANTED, PHONE, is_wanted, nightly, seen_wrong, wear
from tests.browser.test_account_and_api import ada
from tests.browser.test_accounts_walk import log_in
from tests.browser.test_lengths import too_much
from tests.browser.test_looks import unexplained
from tests.browser.test_real_clusters import load, real_run
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.clusters.devices import claiming, gpu_node, template
from tests.kube_api.conftest import Kube
from tests.kube_api.schedulers import Faulty, Packing
from tests.rare_cycles import run_until
from tests.real_dump import as_yaml, real_dump, with_few_waiting
from tests.scenarios.documents import PACKING, small, text_of
from tests.tables import table
from tests.web.routes import NO_PAGES, PLAIN, ROUTES
from tests.web.test_group_page import gang

__all__ = ["ada"]

WIDTHS = (1920, 1440, 1280, 1024, 800, 390)
DESK = 1440
TWO_WIDTHS = (DESK, 390)

DAY = {"n_nodes": 80, "n_pods": 700}

PAGES = {
    **{route: (address,) for route, address in PLAIN.items()},
    "web:manual-chapter": tuple(f"/manual/{chapter}/" for chapter in CHAPTERS),
    **table(__file__, "PAGES"),
}
"""Addresses of each route that shows a page, beside the plain ones; words in braces are from `world`."""


OF_NODES = frozenset(table(__file__, "OF_NODES"))
"""What names nodes: the other pages are no others in another cloud."""

BY_DAY = [route for route in PAGES if route in OF_NODES or "{c}" in PLAIN.get(route, "{c}")]
"""What may differ with the names and numbers of a cluster."""

LOOKED_AT = (
    "/c/{c}/?pod={pending}",
    "/s/{",
    "/compare/{",
    "/gallery/gpu-isolation/?q",
    "/gallery/lose-a-zone/",
)
"""Addresses of pages axe is asked about here; about the others in `test_pages`, with fewer nodes and every outcome."""

RULES = ({"score": {"nodes": ["n3"], "points": 10}},)


ACCOUNTS = table(__file__, "ACCOUNTS")
"""Those of one who is logged in to a site for a team."""
OF_STRANGERS = table(__file__, "OF_STRANGERS")


def test_every_route_is_measured_or_shows_no_page_for_a_reason():
    measured = PAGES.keys() | ACCOUNTS.keys() | OF_STRANGERS.keys()
    assert not measured & NO_PAGES.keys()
    assert measured | NO_PAGES.keys() == ROUTES.keys()


def answered(cluster, kind, **params):
    question = questions.ask(cluster=cluster, kind=kind, params=params)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    question.refresh_from_db()
    assert question.state == Question.State.DONE, (kind, params)
    return question.public_id


def parts_of(pod):
    return f"{pod.namespace}/{pod.name}"


@pytest.fixture
def world(work):
    """Makes what the addresses name, around one large cluster."""

    def make(**size):
        cluster = real_run() if size == DAY else load(**size)
        apply_documents(cluster=cluster, objects=[make_pod("recommendation-engine-7c9d8f6b5-late0")])
        run_until(cluster, "idle")
        cluster.refresh_from_db()
        own = {"cluster": cluster}
        pods, cycles = (
            Pod.objects.filter(**own).order_by("pk"),
            Cycle.objects.filter(**own).order_by("-number"),
        )
        pending = pods.filter(name__startswith="nightly-render").first()
        bound = cycles.filter(outcome="bound").first()
        node = Node.objects.filter(**own).order_by("pk").first().name
        about = {"namespace": pending.namespace, "name": pending.name}
        answered(cluster, "fix", pod=f"{pending.namespace}/{pending.name}")
        answered(cluster, "why-not", **about, node=node)
        answered(cluster, "why-not", cycle=bound.number, node=node)
        answered(cluster, "weights", cycle=bound.number)
        tried = answered(cluster, "try", manifest=questions.admitted_pod(cluster=cluster, text=TRIED))
        few = create_cluster(name="prod-eu-central-1-of-few", seed=7)
        apply_documents(cluster=few, objects=with_few_waiting(real_dump(20, 260)))
        plans = {
            "drain": answered(cluster, "plan", ask="drain", nodes=[node]),
            "backlog": answered(few, "plan", ask="backlog"),
            "headroom": answered(cluster, "plan", ask="headroom"),
        }
        client = Client()
        client.post(f"/c/{cluster.public_id}/plan/{plans['drain']}/share/")
        made = branch(
            cluster=cluster, cycle=cluster.next_cycle - 1, name="what if a node of the general pool goes"
        )
        set_cordon(cluster=made, node=node, unschedulable=True)
        apply_documents(cluster=made, objects=[make_pod("recommendation-engine-7c9d8f6b5-late1")])
        run_until(made, "idle")
        scenario = share(document=text_of(small())).scenario
        other = share(
            document=text_of(small() | {"scheduler": PACKING, "title": "The same, packed"})
        ).scenario
        differs = share(document=text_of(small() | {"seed": 8, "title": "Another engine's"})).scenario
        work()
        RecordedCycle.objects.filter(scenario=differs, number=1).update(digest="0" * 64)
        request_verification(scenario=differs)
        sides = [{"kind": "scenario", "id": one.public_id, "cycle": None} for one in (scenario, other)]
        compared = request_comparison(a=sides[0], b=sides[1])
        drafts.start_preview(text=as_yaml(with_few_waiting(real_dump(40, 400))))
        work()
        judged = self_scheduled(client)
        found = {
            "c": cluster, "node": node, "pending": parts_of(pending), "tried": tried, **plans,
            "placed": parts_of(pods.filter(namespace="shop").exclude(node_name="").first()),
            "decided": f"{bound.pod_namespace}/{bound.pod_name}",
            "bound": bound.number,
            "unschedulable": cycles.filter(outcome="unschedulable").first().number,
            "branch": made, "few": few, "gang": gang(), "devices": with_devices(), "judged": judged,
            "draft": Draft.objects.latest("pk"), "verdict": Verdict.objects.get(),
            "extender": create_mock_extender(cluster=cluster, name="quota-of-the-teams-that-pay", rules=RULES),
            "decision": "{0.seq}/{0.kind}".format(ForeignDecision.objects.filter(cluster=judged).first()),
            "share": scenario, "compared": compared, "differs": differs,
        }  # fmt: skip
        work()
        return {key: getattr(value, "public_id", value) for key, value in found.items()}

    return make


TRIED = "apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec: {containers: [{name: c, image: i}]}\n"


def with_devices():
    """A pool of GPUs as devices, one of them claimed."""
    cluster = make_cluster(
        *(gpu_node(f"gpu-pool-a100-eu-central-1a-{n}", "gpu=4") for n in range(2)),
        template("one-gpu"),
        *(claiming(f"feature-recomputation-nightly-worker-{n}") for n in range(3)),
    )
    run_until(cluster, "idle")
    return cluster


def self_scheduled(client):
    """Pods that other schedulers placed."""
    nodes = [make_node(name, cpu="4") for name in ("n1", "n2", "n3")]
    pods = [make_pod(f"recommendation-engine-7c9d8f6b5-{n}", cpu="3", schedulerName=scheduler)
            for n, scheduler in enumerate(("bin-packer", "bin-packer", "faulty"))]  # fmt: skip
    cluster = make_cluster(*nodes, *pods)
    kube = Kube(client, f"/k8s/{cluster.public_id}")
    Packing(kube).decide()
    Faulty(kube).decide()
    return cluster


@pytest.mark.slow
@pytest.mark.timeout(1500)  # of a busy machine; a quiet one takes a minute
@pytest.mark.parametrize(
    ("size", "routes", "widths", "looks"),
    [
        (DAY, BY_DAY, TWO_WIDTHS, LIGHT),
        pytest.param(DAY, PAGES, (800,), LOOKS[1:], marks=nightly),
        pytest.param({"n_nodes": 200, "n_pods": 3000}, PAGES, WIDTHS, (), marks=nightly),
        pytest.param(
            {"n_nodes": 200, "n_pods": 3000, "cloud": "gke"}, OF_NODES, TWO_WIDTHS, (), marks=nightly
        ),
        pytest.param({"n_nodes": 5000, "n_pods": 5400}, PAGES, TWO_WIDTHS, (), marks=nightly),
    ],
    ids=["day", "dark-and-phone", "aws", "gke", "five-thousand"],
)
def test_nothing_leaves_its_box_on_any_page_at_any_width_and_help_leads_into_the_manual(
    page, asgi_server, world, work, wakes, size, routes, widths, looks, complaints
):
    if not any(is_wanted(address) for route in routes for address in PAGES[route]):
        pytest.skip(NONE_WANTED)
    places = world(**size)
    found, followed = [], set()
    for route, addresses in PAGES.items():
        wanted = [address for address in addresses if route in routes and is_wanted(address)]
        for template_ in wanted:
            path = template_.format(**places)
            assert resolve(path.partition("?")[0]).view_name == route, path
            wear(page, *LOOKS[0])
            n_bytes = arrive(page, asgi_server + path, work, wakes)
            if size == DAY and path.startswith("/c/"):
                name = route.partition(":")[2]
                found += [f"{template_} at {DESK}: {wrong}" for wrong in too_much(page, n_bytes, name)]
            found += [f"{template_} does not explain its letter {letter}" for letter in unexplained(page)]
            for width in widths:
                wear(page, LIGHT[0][0], width)
                found += [f"{template_} at {width}: {wrong}" for wrong in out_of_bounds(page)]
                if width == DESK:
                    found += [
                        f"{template_} at {width}: {name} scrolls sideways" for name in read_across(page)
                    ]
            page.locator("main details").evaluate_all("all => all.forEach(e => { e.open = true; })")
            wear(page, *PHONE)
            found += [f"{template_} on a phone: {name} scrolls sideways" for name in read_across(page)]
            if looks and template_.startswith(LOOKED_AT):
                found += seen_wrong(page, template_, looks)
        # Once for each chapter: that the headings are there, `tests.web` asks.
        chapter_, _, _ = help_path(*route.split(":")).partition("#")
        if wanted and routes is BY_DAY and chapter_ not in followed and route not in WITHOUT_HELP:
            followed.add(chapter_)
            follow_help(page, route)
    assert not found, "\n".join(found)


WAITS = ", ".join(f'[hx-trigger*="every {often}"]' for often in ("500ms", "600ms", "1s"))
"""What a page has while it waits for an answer of its own; the clock of a board goes on at other paces."""


def arrive(page, url, work, wakes):
    """Open a page and have done what it asks for, until it shows the answer; how many bytes it was sent in.

    A page that waited loads itself again: it does so in the middle of what is measured if that is not waited for.
    """
    answer = page.goto(url)
    assert answer.ok, url
    n_bytes = len(answer.body())
    expect(page.locator('form[hx-trigger^="load"]')).to_have_count(0)  # what is asked on arrival is
    wakes[:] = [wake for wake in wakes if wake[0] != "gallery"]  # runs each lesson, which no page waits for
    work()
    expect(page.locator(f"{WAITS}, #deciding")).to_have_count(0)
    page.wait_for_load_state()
    return n_bytes


WITHOUT_HELP = {"scenarios:embed": "is a frame in a page of another site"}


def follow_help(page, route):
    """From the page that is open, by keyboard, to the heading of the manual's chapter about it."""
    wear(page, *LOOKS[0])
    page.get_by_role("link", name="Help", exact=True).focus()
    page.keyboard.press("Enter")
    target = help_path(*route.split(":"))
    page.wait_for_url(f"**{target}")
    path, _, heading = target.partition("#")
    told = chapter(path.removeprefix("/manual/").strip("/") or INDEX)
    expect(page.get_by_role("heading", level=1)).to_have_text(told.title)
    if heading:
        expect(page.locator(f"#{heading}")).to_be_in_viewport()


@nightly  # by day `test_accounts_walk` looks at the same pages, with shorter names
def test_no_page_of_accounts_leaves_its_box_at_any_width(page, asgi_server, ada, settings):
    settings.PLAYGROUND_MAIL = True
    name = "maximiliane-von-hohenstein-schwarzenberg"
    User.objects.filter(pk=ada.pk).update(
        is_superuser=True, username=name, email=f"{name}@infrastructure.example.org"
    )
    ada.refresh_from_db()
    team = teams.create_team(name="platform-engineering-and-reliability-of-payments", owner=ada)
    colleague = "bartholomaeus-von-und-zu-rosenfeld-west"
    User.objects.create_user(colleague, email=f"{colleague}@infrastructure.example.org")
    teams.set_member(team=team, username=colleague, role="editor", by=ada)
    create_token(
        user=ada, name="the dashboard of the payments team in the hall", scope="read", cluster="", days=7
    )
    _, secret = invitations.create_invitation(by=ada, team=team, days=7, email="")
    places = {"team": team.pk, "invitation": secret}
    found = []

    def walk(pages):
        for address in chain.from_iterable(pages.values()):
            page.goto(asgi_server + address.format(**places))
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                found.extend(f"{address} at {width}: {wrong}" for wrong in out_of_bounds(page))
            found.extend(f"{address} at {width}: {name} scrolls sideways" for name in sideways(page))
            found.extend(seen_wrong(page, address, LOOKS))
        follow_help(page, next(reversed(pages)))

    walk(OF_STRANGERS)
    log_in(page, asgi_server, name, "correct horse battery")
    walk(ACCOUNTS)
    assert not found, "\n".join(found)
