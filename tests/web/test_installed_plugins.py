"""A package from outside of the tree on the site: offered, checked, explained, waited for, and named by a share."""

import re
import sys

import pytest
from django.urls import reverse

from playground.clusters.drive.config import set_config
from playground.clusters.models import Cycle, Pod
from playground.engine import plugins
from playground.scenarios.services.shares import share
from scheduler_core import installed_plugins
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import scheduler_config
from tests.markup import html_of
from tests.plugin_packages import BROKEN, PACKAGE, install
from tests.scenarios.documents import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path, monkeypatch, wakes):
    monkeypatch.syspath_prepend(tmp_path)
    # Runs of shared scenarios are processes of their own.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    install(tmp_path, PACKAGE)
    install(tmp_path, BROKEN)
    plugins.use(None)
    yield tmp_path
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("night_shift", "no_shift")]:
        del sys.modules[name]
    installed_plugins.forget()
    plugins.use(None)


def config(**args):
    multi = {"enabled": [{"name": "NightShift", "weight": 4}], "disabled": [{"name": "PrioritySort"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": multi}}
    if args:
        profile["pluginConfig"] = [{"name": "NightShift", "args": args}]
    return scheduler_config(profiles=[profile])  # fmt: skip


def night_node(name, slots=None):
    return make_node(name, labels=None if slots is None else {"night-slots": str(slots)})


def shift_pod(name, shift):
    return make_pod(name, labels={"shift": shift})


def test_a_package_is_offered_runs_and_is_explained_without_an_edit_in_the_tree(client, site):
    cluster = make_cluster(
        night_node("n1", 1), night_node("n2"), shift_pod("early", "day"), shift_pod("late", "night"),
        shift_pod("later", "night"),
    )  # fmt: skip
    page = reverse("web:config", args=[cluster.public_id])
    html = html_of(client.get(page))
    assert "Installed plugins" in html and "night-shift 1.2" in html
    assert "queueSort, filter, score, permit" in html and "waitSeconds: 60" in html
    assert "no-shift: NoShift (no_shift:NoShift) is left out: ImportError: it needs a library" in html

    wrong = client.post(page, {"text": text_of(config(waitSeconds=-1))})
    assert wrong.status_code == 422 or wrong.status_code == 400
    assert "must not be negative" in html_of(wrong)

    set_config(cluster=cluster, config=config(waitSeconds=90))
    html = html_of(client.get(page))
    assert "weight 4" in html and "waitSeconds: 90" in html
    run(cluster)
    # QueueSort: the pods of the night go first, and the one slot is theirs.
    first, *others = Cycle.objects.filter(cluster=cluster).order_by("number")
    assert (first.pod_name, first.node) == ("late", "n1")
    rejected = next(cycle for cycle in others if cycle.pod_name == "later")
    html = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, rejected.number])))
    assert "NightShift" in html and "node(s) had no night slot left" in html
    assert "night slots: 1 of 1 taken" in html
    # A node without a slot wakes no pod by the plugin's own hint, one with a slot does.
    n_cycles = Cycle.objects.filter(cluster=cluster).count()
    for node in (night_node("n3"), night_node("n4", 2)):
        from playground.clusters.objects.apply import apply_documents

        apply_documents(cluster=cluster, objects=[node])
        run(cluster)
        if node["metadata"]["name"] == "n3":
            assert Cycle.objects.filter(cluster=cluster).count() == n_cycles
    assert Pod.objects.get(cluster=cluster, name="later").node_name == "n4"
    waits = Cycle.objects.get(cluster=cluster, pod_name="early", outcome="waiting")
    html = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, waits.number])))
    assert "NightShift wait 90 s" in " ".join(re.sub("<[^>]+>", " ", html).split())


def test_a_share_names_the_plugin_and_a_reader_without_it_is_told_what_to_install(client, site):
    document = {
        "apiVersion": "scheduling.playground/v1", "kind": "Scenario", "scheduler": config(),
        "objects": [night_node("n1", 1), shift_pod("late", "night")],
        "expect": [{"pod": "late", "node": "n1"}],
    }  # fmt: skip
    from scheduler_core.scenario import dump_scenario, load_scenario, scenario_digest

    scenario = load_scenario(document)
    text = dump_scenario(scenario)
    assert "package: night-shift" in text and 'version: "1.2"' in text.replace("'", '"')
    shared = share(document=text).scenario
    assert shared.digest == scenario_digest(scenario)
    html = html_of(client.get(reverse("scenarios:page", args=[shared.public_id])))
    assert "NightShift" in html
    plugins.use([])
    from playground.clusters.errors import ClusterError

    with pytest.raises(ClusterError, match=r"pip install night-shift==1\.2"):
        share(document=text.replace("seed: 0", "seed: 5"))


def test_a_team_site_lets_in_only_what_is_on_its_list(client, site):
    plugins.use([])
    cluster = make_cluster(night_node("n1"))
    html = html_of(client.get(reverse("web:config", args=[cluster.public_id])))
    assert "Installed plugins" not in html
    refused = client.post(reverse("web:config", args=[cluster.public_id]), {"text": text_of(config())})
    assert "NightShift" in html_of(refused) and "does not exist" in html_of(refused)
    plugins.use(["NightShift"])
    html = html_of(client.get(reverse("web:config", args=[cluster.public_id])))
    assert "night-shift 1.2" in html and "no-shift" not in html


def test_a_configuration_whose_plugin_is_gone_is_told_and_can_be_replaced(site, client):
    cluster = make_cluster(night_node("n1", 3), shift_pod("early", "early"))
    set_config(cluster=cluster, config=config())
    run(cluster)
    plugins.use([])
    base = reverse("web:board", args=[cluster.public_id])
    page = client.get(f"{base}config/")
    assert page.status_code == 200
    text = html_of(page)
    assert "cannot be used" in text and "NightShift" in text
    for path in (
        "",
        "config/classes/",
        "pods/",
        "pods/default/early/",
        "cycles/",
        "metrics/",
        "advice/",
        "nodes/n1/",
    ):
        assert client.get(base + path).status_code in (200, 301, 302, 404), path
    api = f"/api/v1/clusters/{cluster.public_id}"
    for path in ("", "config/", "queue/", "metrics/", "cycles/"):
        assert client.get(f"{api}/{path}", follow=True).status_code == 200, path
    told = client.get(f"{api}/config/").json()
    assert told["config"] == config() and "NightShift" in told["problem"]
    assert client.post(f"{base}config/", {"action": "default"}).status_code == 302
    assert "cannot be used" not in html_of(client.get(f"{base}config/"))
