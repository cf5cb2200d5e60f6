"""How long and heavy pages of a cluster are before something is opened: equal things are shown once."""

import pytest

from playground.clusters import drafts, questions
from playground.clusters.demo import create_demo
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.history import redecide
from playground.clusters.models import Cycle, Draft, Manifest, Node, Pod, Question
from playground.clusters.objects.apply import apply_documents
from tests.browser.boxes import out_of_bounds
from tests.browser.looks import BOTH_WIDTHS, nightly, wear
from tests.browser.test_real_clusters import load
from tests.clusters.builders import make_pod
from tests.rare_cycles import run_until
from tests.real_dump import as_yaml, real_dump, with_few_waiting
from tests.web import factories
from tests.web.routes import PLAIN

DESK_PX, PHONE_PX = 900, 844
SCREENS, KILOBYTES = 4, {"board": 180}
"""Of a board with a bar for each class on 200 nodes; all others have 150 at most. Compressed, it has 25."""
CONTROLS = {"cycle": 60}
"""How many controls are seen at most on pages whose names begin so."""
MOST_CONTROLS = 110
LARGEST_GROUP = """[...document.querySelectorAll("#filter .same-t tbody tr")]
    .sort((a, b) => b.cells[1].innerText - a.cells[1].innerText)[0].querySelector("a").id"""
SMALL = """[...new Set([...document.querySelectorAll("main *")].filter(e => e.checkVisibility()
    && parseFloat(getComputedStyle(e).fontSize) < 12
    && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && getComputedStyle(e).clipPath === "none").map(e => e.outerHTML.slice(0, 60)))].slice(0, 4)"""
"""Text of less than 12 px, by the elements that have it."""
LITTLE = """[...document.querySelectorAll("main :is(a[href], button, input:not([type=hidden]), select, summary)")]
    .filter(e => e.checkVisibility() && getComputedStyle(e).display !== "inline"
    && getComputedStyle(e).clipPath === "none" && e.getBoundingClientRect().width
    && Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < 23.5)
    .slice(0, 4).map(e => `smaller than 24 px: ${e.outerHTML.slice(0, 60)}`)"""
"""What is pressed and smaller than 24 px, but for links within words."""
SEEN = "main :is(a[href]:not(.nd + .nd), button, input:not([type=hidden]), select, textarea, summary)"


def answered(cluster, kind, **params):
    question = questions.ask(cluster=cluster, kind=kind, params=params)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    question.refresh_from_db()
    assert question.state == Question.State.DONE, question.error
    return question


def run(n_nodes, n_pods):
    """A cluster after a run in which pods are bound, evicted and left without a node."""
    cluster = load(n_nodes, n_pods)
    late = make_pod("recommendation-engine-7c9d8f6b5-late0")
    apply_documents(
        cluster=cluster, objects=[late, make_pod("vip", cpu="15", priorityClassName="business-critical")]
    )
    run_until(cluster, "idle")
    cluster.refresh_from_db()
    return cluster


@pytest.fixture
def large(transactional_db, wakes):
    """Many nodes after a run, and answers of its pages."""

    def make():
        cluster = run(200, 3000)
        pod = Pod.objects.filter(cluster=cluster, name__startswith="nightly-render").order_by("pk").first()
        answered(cluster, "fix", pod=f"{pod.namespace}/{pod.name}")
        answered(cluster, "fix")
        nodes = [*Node.objects.filter(cluster=cluster).order_by("pk").values_list("name", flat=True)[:3]]
        for ask in ("drain", "lose"):
            answered(cluster, "plan", ask=ask, nodes=nodes)
        for ask in ("any-node", "any-domain", "consolidate", "headroom"):
            answered(cluster, "plan", ask=ask)
        scored = Cycle.objects.filter(cluster=cluster, outcome="bound", n_feasible__gt=1).last()
        answered(cluster, "weights", cycle=scored.number)
        return cluster

    dump = as_yaml(with_few_waiting(real_dump(200, 2800)))
    cluster = factories.copied("large with answers", make)
    drafts.work_on(draft_id=drafts.start_preview(text=dump, keep=True).pk)
    return cluster


def pages_of(cluster):
    """Every page of a cluster by name: those that need nothing else by their route."""
    c = f"/c/{cluster.public_id}/"
    own = {
        route.partition(":")[2]: address.format(c=cluster.public_id)
        for route, address in PLAIN.items()
        if "{c}" in address and route != "web:difference"  # of a branch
    }
    found = {"board, a node": f"{c}?node={Node.objects.filter(cluster=cluster).first().name}"}
    found["board, table"] = f"{c}?view=table"
    found["pods, pending"] = f"{c}pods/?lane=pending"
    cycles = Cycle.objects.filter(cluster=cluster)
    for outcome in ("bound", "unschedulable", "preempting"):
        if number := cycles.filter(outcome=outcome).values_list("number", flat=True).last():
            # A page that waits for its cycle is short.
            redecide.recompute_trace(cluster_id=cluster.pk, number=number)
            found[f"cycle, {outcome}"] = f"{c}cycles/{number}/"
    for name, pods in (("placed", Pod.objects.exclude(node_name="")), ("pending", Pod.objects.pending())):
        pod = pods.filter(cluster=cluster).order_by("pk").first()
        found[f"pod, {name}"] = f"{c}pods/{pod.namespace}/{pod.name}/"
        found[f"object, {name}"] = f"{c}objects/Pod/{pod.namespace}/{pod.name}/"
    for question in Question.objects.filter(cluster=cluster, state="done"):
        if question.kind == "plan":
            found[question.params["ask"]] = f"{c}plan/{question.public_id}/"
        elif question.kind == "weights":
            found["weights"] = f"{c}cycles/{question.params['cycle']}/weights/"
        elif pod := question.params.get("pod"):
            found["fix of a pod"] = f"{c}pods/{pod}/fix/"
    found |= {f"objects of kind {kind}": f"{c}objects/{kind}/" for kind in ("Node", "Pod", "ReplicaSet")}
    if load := Manifest.objects.filter(cluster=cluster, kind="Deployment").first():
        found["load"] = f"{c}load/Deployment/{load.namespace}/{load.name}/"
    if draft := Draft.objects.last():
        found["preview"] = f"/new/import/{draft.public_id}/"
    return own | found


def too_much(page, n_bytes, name):
    """What is longer, heavier or has more controls than it may on the page that is open, in words."""
    height = page.evaluate("document.documentElement.scrollHeight")
    controls = page.locator(SEEN).evaluate_all("all => all.filter(e => e.checkVisibility()).length")
    kind = name.partition(",")[0]
    for what, value, limit in (
        ("screens", height / (DESK_PX if page.viewport_size["width"] > 800 else PHONE_PX), SCREENS),
        ("KB", n_bytes / 1024, KILOBYTES.get(kind, 150)),
        ("controls", controls, CONTROLS.get(kind, MOST_CONTROLS)),
    ):
        if value > limit:
            yield f"{value:.2f} {what}, {limit} at most"


def too_much_of(page, url, pages, width):
    """The same of pages by name and path, and what leaves its box."""
    found = []
    for name, path in pages.items():
        wear(page, "light", width)
        answer = page.goto(url + path)
        assert answer.ok, path
        small = page.evaluate(SMALL) + page.evaluate(LITTLE) if width < 800 else []
        wrong = (*too_much(page, len(answer.body()), name), *out_of_bounds(page), *small)
        found += [f"{name} at {width}: {one}" for one in wrong]
    return found


@nightly  # by day the walk over every page (`test_every_page`) asks it of 80 nodes
@pytest.mark.slow
@pytest.mark.timeout(1200)
@BOTH_WIDTHS
def test_no_page_of_a_large_cluster_is_long_or_heavy(page, asgi_server, large, width):
    found = too_much_of(page, asgi_server, pages_of(large), width)
    assert not found, "\n".join(found)


@nightly
@BOTH_WIDTHS
def test_no_page_of_the_demo_is_long_or_heavy(page, asgi_server, transactional_db, wakes, width):
    cluster = create_demo()
    run_until(cluster, "idle")
    cluster.refresh_from_db()
    answered(cluster, "fix")
    found = too_much_of(page, asgi_server, pages_of(cluster), width)
    assert not found, "\n".join(found)


@nightly
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("width", [1440, 390])
def test_the_main_pages_of_five_thousand_nodes_are_not_long_or_heavy(
    page, asgi_server, transactional_db, wakes, width
):
    cluster = factories.copied("five-thousand", lambda: run(5000, 5400))
    names = (
        "board",
        "pods",
        "cycles",
        "cycle, bound",
        "cycle, unschedulable",
        "nodes",
        "plan",
        "pod, pending",
    )
    pages = pages_of(cluster)
    found = too_much_of(page, asgi_server, {name: pages[name] for name in names}, width)
    assert not found, "\n".join(found)


def test_a_group_of_nodes_opens_in_pages_by_keyboard_and_closes_again(
    page, asgi_server, transactional_db, wakes
):
    cluster = factories.copied("large", lambda: run(200, 3000))
    number = cluster.cycles.filter(outcome="unschedulable").last().number
    redecide.recompute_trace(cluster_id=cluster.pk, number=number)
    wear(page, "light", 1440)
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/{number}/")
    rows = page.locator("#filter table.mx tbody tr")
    assert not rows.count()
    page.set_default_timeout(10_000)
    part = page.evaluate(LARGEST_GROUP).removeprefix("of-")
    page.locator(f"#of-{part}").press("Enter")
    page.wait_for_url(f"**part={part}*")
    page.wait_for_selector("#nodes-after")
    assert rows.count() == 50
    assert page.evaluate("document.activeElement.id") == f"of-{part}"
    first = rows.first.locator("th").inner_text()
    page.locator("#nodes-after").press("Enter")
    page.wait_for_url("**page=2*")
    page.wait_for_selector("#nodes-before")
    assert rows.count() <= 50 and rows.first.locator("th").inner_text() != first
    page.locator(f"#of-{part}").press("Enter")
    page.wait_for_selector("#filter table.mx", state="detached")
    assert page.evaluate("document.activeElement.id") == f"of-{part}"
