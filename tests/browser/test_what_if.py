"""Undo, actions on many, and a branch beside its parent, by keyboard alone, on a large screen and a phone."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters.models import Cluster, Node, Pod
from playground.clusters.objects.actions import act_on_pods
from playground.clusters.objects.write import create_object, set_cordon
from playground.scenarios.services.moments import branch
from tests.browser.boxes import out_of_bounds, sideways
from tests.browser.looks import BOTH_WIDTHS, violations
from tests.browser.test_keyboard import tab_to
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.rare_cycles import run_until


def clean(page):
    assert not violations(page)
    assert not out_of_bounds(page)
    assert page.viewport_size["width"] > 760 or not sideways(page)


@BOTH_WIDTHS
def test_pods_are_chosen_deleted_and_brought_back_by_keyboard(page, asgi_server, cluster, complaints, width):
    page.set_viewport_size({"width": width, "height": 844})
    pods = list(Pod.objects.filter(cluster=cluster).order_by("pk")[:2])
    before = set(Pod.objects.filter(cluster=cluster, terminating=False).values_list("name", flat=True))
    page.goto(f"{asgi_server}/c/{cluster.public_id}/pods/")
    page.locator("#f-q").focus()
    for pod in pods:
        tab_to(page, page.get_by_role("checkbox", name=f"Choose {pod.namespace}/{pod.name}", exact=True))
        page.keyboard.press("Space")
    page.keyboard.press("Enter")  # in a box it does nothing: least of all delete what is chosen, unasked
    expect(page.locator(".choosing [data-chosen]")).to_have_text("2")
    clean(page)
    tab_to(page, page.locator(".choosing button"), "Shift+Tab")
    page.keyboard.press("Enter")
    sure = page.locator("#delete-yes")
    expect(sure).to_be_visible()
    expect(page.locator("#sure-delete h3")).to_have_text("Delete the chosen pods (2)?")
    clean(page)
    tab_to(page, sure)
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text("Done: delete 2 Pods.")
    assert len(before) - Pod.objects.filter(cluster=cluster, terminating=False).count() == 2
    page.keyboard.press("z")
    expect(page.locator("h1")).to_have_text("Last change: delete 2 Pods")
    expect(page.locator("#undo")).to_be_visible()
    clean(page)
    page.keyboard.press("z")
    expect(page.locator("#messages")).to_contain_text("Undone: delete 2 Pods")
    assert (
        set(Pod.objects.filter(cluster=cluster, terminating=False).values_list("name", flat=True)) == before
    )


@BOTH_WIDTHS
def test_nodes_are_tainted_together_and_back_by_keyboard(page, asgi_server, cluster, complaints, width):
    page.set_viewport_size({"width": width, "height": 844})
    tainted = Node.objects.filter(cluster=cluster, taints__icontains="maintenance")
    page.goto(f"{asgi_server}/c/{cluster.public_id}/nodes/")
    page.locator("#f-q").focus()
    tab_to(page, page.locator("#choose-all"))
    page.keyboard.press("Space")
    n_nodes = Node.objects.filter(cluster=cluster).count()
    expect(page.locator(".choosing [data-chosen]")).to_have_text(str(n_nodes))
    tab_to(page, page.get_by_role("button", name="Taint", exact=True), "Shift+Tab")
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#taint"))
    page.keyboard.type("maintenance=yes:NoSchedule")
    clean(page)
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text(f"taint {n_nodes} Nodes maintenance=yes:NoSchedule")
    assert tainted.count() == n_nodes
    page.keyboard.press("z")
    expect(page).to_have_url(re.compile("/changes/$"))
    page.wait_for_load_state("domcontentloaded")  # before its scripts, nothing hears a key
    page.keyboard.press("z")
    expect(page.locator("#messages")).to_contain_text("Undone: taint")
    assert not tainted.exists()


@BOTH_WIDTHS
def test_a_node_is_edited_and_is_as_before_by_keyboard(page, asgi_server, cluster, complaints, width):
    page.set_viewport_size({"width": width, "height": 844})
    node = Node.objects.filter(cluster=cluster).order_by("pk").first()
    before = node.labels, node.taints
    page.goto(f"{asgi_server}/c/{cluster.public_id}/objects/Node/-/{node.name}/")
    for field, words in (("labels", "disk=nvme"), ("taints", "maintenance=yes:NoSchedule")):
        tab_to(page, page.locator(f"#id_{field}"))
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(words)
    tab_to(page, page.get_by_role("button", name="Save fields"))
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text(node.name)
    node.refresh_from_db()
    assert node.labels["disk"] == "nvme" and node.taints[0]["key"] == "maintenance"
    page.locator("h1").focus()
    page.keyboard.press("z")
    expect(page.locator("h1")).to_have_text(f"Last change: change Node {node.name}")
    page.keyboard.press("z")
    expect(page.locator("#messages")).to_contain_text(f"Undone: change Node {node.name}")
    node.refresh_from_db()
    assert (node.labels, node.taints) == before


@pytest.fixture
def branched(transactional_db, wakes):
    """A cluster that ran, and a branch of it in which a node was cordoned and its pod made anew."""
    parent = make_cluster(
        *(make_node(f"n{n}") for n in (1, 2, 3)), *(make_pod(f"p{n}", "2") for n in range(4))
    )
    run_until(parent, "idle")
    parent.refresh_from_db()
    made = branch(cycle=parent.next_cycle - 1, cluster=parent, name="what if")
    node = next(
        name for name in ("n1", "n2", "n3") if Pod.objects.filter(cluster=parent, node_name=name).count() == 1
    )
    alone = Pod.objects.get(cluster=parent, node_name=node).name
    set_cordon(cluster=made, node=node, unschedulable=True)
    for cluster in (made, parent):
        act_on_pods(cluster=cluster, action="delete", pods=[f"default/{alone}"])
        run_until(cluster, "idle")
        create_object(cluster=cluster, manifest=make_pod(alone, "2"))
        run_until(cluster, "idle")
    return parent, made, node, alone


@BOTH_WIDTHS
def test_a_branch_tells_its_difference_and_is_applied_and_undone_by_keyboard(
    page, asgi_server, branched, complaints, width
):
    parent, made, node, alone = branched
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{asgi_server}/c/{made.public_id}/difference/")
    expect(page.locator("h1")).to_have_text(re.compile(r"^\s*Pods: 1 moved\s*$"))
    expect(page.locator("#h-first")).to_contain_text(f"First decision that differs: default/{alone}")
    expect(page.locator("#why")).to_contain_text(f"NodeUnschedulable rejects {node} in the branch")
    expect(page.locator("#changes")).to_contain_text(alone)
    clean(page)
    # What the parent did to the pod itself stands in the way of applying it: that is undone there first.
    page.goto(f"{asgi_server}/c/{parent.public_id}/changes/")
    for words in (
        "run until idle",
        f"create Pod default/{alone}",
        "run until idle",
        f"delete Pod default/{alone}",
    ):
        expect(page.locator("h1")).to_have_text(f"Last change: {words}")
        page.keyboard.press("z")
        expect(page.locator("#messages")).to_contain_text(f"Undone: {words}")
    page.goto(f"{asgi_server}/c/{made.public_id}/difference/")
    tab_to(page, page.locator("#apply-here"))
    page.keyboard.press("Enter")
    expect(page.locator("#sure-apply h3")).to_have_text("Apply 3 edits to test?")
    clean(page)
    tab_to(page, page.locator("#apply-yes"))
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text("writes of what if applied here")
    assert Node.objects.get(cluster=parent, name=node).unschedulable
    page.keyboard.press("z")
    expect(page.locator("h1")).to_have_text('Last change: apply the edits of branch "what if"')
    page.keyboard.press("z")
    expect(page.locator("#messages")).to_contain_text("Undone: apply the edits")
    assert not Node.objects.get(cluster=parent, name=node).unschedulable


# The widths at which the layout changes, and those beside them.
EVERY_WIDTH = (320, 390, 600, 760, 761, 800, 1000, 1023, 1024, 1180, 1181, 1280, 1341, 1440, 1920)
OF_THE_HEADER = """() => {
  const wide = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > wide) found.push(`the page: ${document.documentElement.scrollWidth}`);
  const drawn = [...document.querySelectorAll('header.app > *')].filter(e => e.getClientRects().length);
  for (const e of drawn) {
    const box = e.getBoundingClientRect();
    if (box.right > wide + 1) found.push(`${e.className || e.tagName} ends at ${Math.round(box.right)}`);
  }
  const tabs = [...document.querySelectorAll('.tabs, .sub-tabs')].filter(e => e.getClientRects().length);
  if (tabs.length !== 1) found.push(`${tabs.length} rows of tabs`);
  return found;
}"""


def test_the_header_of_a_branch_fits_at_every_width(page, asgi_server, branched, complaints):
    """A branch has most tabs, and its parent's name beside its own; both are long here."""
    parent, made, _, _ = branched
    Cluster.objects.filter(pk=parent.pk).update(name="prod-eu-central-1-a-cluster-of-a-team")
    Cluster.objects.filter(pk=made.pk).update(name="two more nodes of the same type in every zone")
    found = []
    for name in ("difference", "cluster"):
        page.goto(f"{asgi_server}/c/{made.public_id}/{name}/")
        for width in EVERY_WIDTH:
            page.set_viewport_size({"width": width, "height": 900})
            found += [f"{name} at {width}: {wrong}" for wrong in page.evaluate(OF_THE_HEADER)]
    assert not found, "\n".join(found)
