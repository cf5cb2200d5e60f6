"""The release of Kubernetes a cluster follows: chosen, changed as an input of its log, and carried everywhere."""

from pathlib import Path
from typing import Any

import pytest

import scheduler_core.releases as package
from playground.clusters.drive.config import set_release
from playground.clusters.errors import InvalidInput, InvalidManifest
from playground.clusters.history.cycles import cycle_explanation
from playground.clusters.lifecycle import clone_cluster, create_cluster
from playground.clusters.models import Checkpoint, Cluster, Cycle
from playground.clusters.objects.apply import apply_documents
from playground.engine.releases import DEFAULT
from playground.engine.scenarios import opening_of, run_fresh
from playground.scenarios.services import forking, moments
from scheduler_core.releases.draft import draft
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import scheduler_config

pytestmark = pytest.mark.django_db

TAINTED: dict[str, Any] = {"taints": [{"key": "disk", "value": "full", "effect": "NoSchedule"}]}


def follows(cluster: Cluster, number: int) -> tuple[str, dict[str, bool], str]:
    document = cycle_explanation(cluster, number, full=True)[1]
    assert document is not None
    return document["emulates"], document["featureGates"], document["message"]


def upgraded() -> Cluster:
    """One pod tried in 1.34, one in 1.36 with a gate switched."""
    cluster = make_cluster(make_node(**TAINTED), make_pod("before"))
    run(cluster)
    set_release(cluster=cluster, name="1.36", gates={"OpportunisticBatching": False})
    apply_documents(cluster=cluster, objects=[make_pod("after")])
    run(cluster)
    return cluster


def test_a_new_cluster_follows_the_newest_release_with_recorded_decisions() -> None:
    cluster = create_cluster(name="new")
    assert cluster.kubernetes_release == DEFAULT == "1.37"
    assert Cluster(name="a row from before there was a choice").release == {"name": "1.34", "switched": {}}


def test_an_upgrade_is_an_input_of_the_log_and_every_cycle_says_what_it_followed() -> None:
    cluster = upgraded()
    last = cluster.next_cycle - 1
    before = follows(cluster, 1)
    after = follows(cluster, last)
    assert before[:2] == ("v1.34.1", {})
    assert "had untolerated taint {disk: full}" in before[2]
    assert after[:2] == ("v1.36.2", {"OpportunisticBatching": False})
    assert "had untolerated taint(s)" in after[2]
    Checkpoint.objects.all().delete()  # now the log alone says which release it began with
    digests = dict(Cycle.objects.values_list("number", "digest"))
    for number in (1, last):
        document = cycle_explanation(cluster, number, full=True)[1]
        assert document is not None and document["digest"] == digests[number]


def test_a_share_a_branch_and_a_copy_carry_the_release() -> None:
    cluster = upgraded()
    text = forking.make_text(cluster=cluster).text
    opening = opening_of(text)
    assert opening.scenario.release.document() == {"name": "1.34"}
    [step] = [step for step in opening.steps if step.verb == "upgrade"]
    assert step.argument == {"kubernetesRelease": "1.36", "featureGates": {"OpportunisticBatching": False}}
    replayed = run_fresh(text)
    assert [cycle.digest for cycle in replayed.cycles] == [
        *Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True)
    ]
    wanted = {"name": "1.36", "switched": {"OpportunisticBatching": False}}
    assert clone_cluster(cluster=cluster, name="copy").release == wanted
    assert moments.past_of(cluster, 1)[1] == {"name": "1.34", "switched": {}}
    assert moments.past_of(cluster, cluster.next_cycle - 1)[1] == wanted


@pytest.mark.parametrize(
    ("name", "gates", "field"),
    [
        ("1.33", {}, "kubernetesRelease"),
        ("1.36", {"SidecarContainers": False}, "featureGates.SidecarContainers"),
        ("1.36", {"Nonsense": True}, "featureGates.Nonsense"),
    ],
)
def test_what_upstream_does_not_let_one_switch_is_refused_and_changes_nothing(
    name: str, gates: dict[str, bool], field: str
) -> None:
    cluster = make_cluster()
    last = cluster.last_seq
    with pytest.raises(InvalidInput) as refused:
        set_release(cluster=cluster, name=name, gates=gates)
    assert refused.value.field == field
    cluster.refresh_from_db()
    assert (cluster.release, cluster.last_seq) == (
        {"name": "1.34", "switched": {}},
        last,
    )


def test_a_configuration_the_release_does_not_take_is_told_before_the_release_changes() -> None:
    args = {"bindingTimeout": "30s"}
    config = scheduler_config(profiles=[{"pluginConfig": [{"name": "DynamicResources", "args": args}]}])
    cluster = create_cluster(name="c", kubernetes_release="1.36", config=config)
    with pytest.raises(InvalidManifest) as refused:
        set_release(cluster=cluster, name="1.34")
    assert refused.value.path.endswith("bindingTimeout")
    cluster.refresh_from_db()
    assert cluster.kubernetes_release == "1.36"


MADE_UP = 'follows: "1.36"\npatch: v9.99.0\nfrom_notes: {NodeDeclaredFeatures: GA off}\n'
DATA = Path(__file__).parents[1] / "scheduler_core" / "releases" / "data"


def drafted() -> str:
    """1.38.0-alpha.2 as the command drafts it."""
    texts = [(DATA / name).read_text() for name in ("gates-1.38.0-alpha.2.yaml", "notes-1.38.0-alpha.2.md")]
    return draft("1.38", texts[0], texts[1], patch="v1.38.0-alpha.2").text


@pytest.mark.parametrize(
    ("name", "patch", "text", "said"),
    [
        ("9.99", "v9.99.0", MADE_UP, "Beta, on → GA, off"),
        ("1.38", "v1.38.0-alpha.2", drafted(), "A topology spread constraint with an empty"),
    ],
)
def test_a_release_of_one_file_is_on_every_surface_and_no_default_before_it_is_proved(
    name: str, patch: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    (tmp_path / f"v{name.replace('.', '_')}.yaml").write_text(text)
    monkeypatch.setattr(package, "FOLDERS", [*package.FOLDERS, tmp_path])
    monkeypatch.setattr(package, "RELEASES", package.found_releases())
    assert [*package.RELEASES][-1] == name
    assert DEFAULT == "1.37"
    assert f'<option value="{name}">' in client.get("/new/").content.decode()
    listed = client.get("/api/v1/releases/").json()["items"]
    assert [item["name"] for item in listed][-1] == name and not listed[-1]["default"]
    assert {one["known"] for one in listed[-1]["differences"]} <= {"from release notes", "not modelled"}
    made = client.post(
        "/api/v1/clusters/", {"name": "next", "kubernetesRelease": name}, content_type="application/json"
    ).json()
    assert made["kubernetesRelease"] == name
    assert client.get(f"/k8s/{made['id']}/version").json()["gitVersion"] == patch
    page = client.get(f"/c/{made['id']}/config/release/").content.decode()
    assert f"follows <b>Kubernetes {name}</b>" in page and said in page
    upgrade = client.get(f"/c/{made['id']}/upgrade/").content.decode()
    assert f'<option value="{name}"' in upgrade
    assert client.post(f"/c/{made['id']}/config/release/", {"release": "1.35"}).status_code == 302
    assert client.get(f"/api/v1/clusters/{made['id']}/release/").json()["kubernetesRelease"] == "1.35"
