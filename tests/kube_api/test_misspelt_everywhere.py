"""A misspelt field is told on every surface, once, by path and nearest name; on /k8s: `test_field_validation`."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters.models import Cluster, LogEntry
from scheduler_core.cli.main import main
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.load import field_notes
from tests.clusters.builders import make_node, make_pod
from tests.tables import table

FIELD, NEAR = "spec.nodeSelectr", "(did you mean nodeSelector?)"


@pytest.fixture
def misspelt() -> dict[str, Any]:
    return make_pod("wrong", nodeSelectr={"disk": "ssd"})


def told_once(text: str, path: str = FIELD) -> None:
    assert (text.count(path), text.count(NEAR)) == (1, 1), text


def scenario(pod: dict[str, Any]) -> dict[str, Any]:
    steps = [{"apply": [pod]}, {"run": "idle"}]
    return {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "objects": [make_node("n1")],
        "steps": steps,
    }


def test_the_rest_api_of_one_object(client: Client, cluster: Cluster, misspelt: dict[str, Any]) -> None:
    pods = f"/api/v1/clusters/{cluster.public_id}/pods/"
    refused = client.post(f"{pods}?fieldValidation=Strict", misspelt, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, FIELD)
    told_once(refused.json()["detail"])
    told = client.post(pods, misspelt, content_type="application/json")
    assert told.status_code == 201 and "nodeSelectr" not in told.json()["spec"]
    told_once(told["Warning"].replace("\\", ""))
    patch = json.dumps({"metadata": {"lables": {"a": "b"}}})
    kind = "application/merge-patch+json"
    changed = client.patch(f"{pods}default/p1/", patch, content_type=kind)
    assert 'metadata.lables\\" (did you mean labels?)' in changed["Warning"]
    assert (
        client.patch(f"{pods}default/p1/?fieldValidation=Strict", patch, content_type=kind).status_code == 400
    )
    assert client.post(f"{pods}?fieldValidation=Ignore", make_pod("ignored", nodeSelectr={}),
                       content_type="application/json").get("Warning") is None  # fmt: skip


def test_the_import_page_tells_before_and_after(
    client: Client, cluster: Cluster, misspelt: dict[str, Any]
) -> None:
    page = f"/c/{cluster.public_id}/import/"
    text = {"text": json.dumps(misspelt)}
    shown = client.post(page, text | {"action": "preview"}, headers={"HX-Request": "true"}).content.decode()
    told_once(shown)
    done = client.post(page, text, follow=True).content.decode()
    assert "Left out:" in done
    told_once(done)


@pytest.mark.parametrize("action", ["yaml", "from_yaml"])
def test_the_form_of_a_pod_refuses(
    client: Client, cluster: Cluster, misspelt: dict[str, Any], action: str
) -> None:
    before = LogEntry.objects.filter(cluster=cluster).count()
    page = f"/c/{cluster.public_id}/pods/new/"
    shown = client.post(page, {"action": action, "yaml": json.dumps(misspelt, indent=1)})
    told_once(shown.content.decode().replace("&quot;", '"').split("<textarea")[0], FIELD + ":")
    assert LogEntry.objects.filter(cluster=cluster).count() == before


def test_an_object_that_is_edited_on_its_page(client: Client, cluster: Cluster) -> None:
    page = f"/c/{cluster.public_id}/objects/Node/-/n1/"
    text = json.dumps(make_node("n1") | {"spec": {"unschedulabel": True}}, indent=1)
    shown = client.post(page, {"text": text})
    assert shown.status_code == 400
    assert "spec.unschedulabel: unknown field (did you mean unschedulable?)" in shown.content.decode()


def test_a_scenario_notes_it_in_the_library_and_on_the_command_line(
    misspelt: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = scenario(misspelt)
    [note] = run_scenario(load_scenario(document)).notes
    told_once(note, f"steps[0].apply[0].{FIELD}")
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(document))
    assert main(["replay", str(path)]) == 0
    told_once(capsys.readouterr().out)
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [make_node("n1"), misspelt]}))
    main(["plan", str(dump), "any-node"])
    told_once(capsys.readouterr().err, f'Pod wrong: unknown field "{FIELD}"')


@pytest.mark.django_db(transaction=True)
def test_sharing_a_scenario_tells_it_over_rest_and_on_its_page(
    client: Client, misspelt: dict[str, Any], wakes: list[Any]
) -> None:
    """The run that stands before the link notes it too; the answer and the page tell it once each."""
    path = f"steps[0].apply[0].{FIELD}"
    text = json.dumps(scenario(misspelt))
    for status in (201, 200):
        answer = client.post("/api/v1/scenarios/", text, content_type="application/json")
        assert answer.status_code == status
        told_once("\n".join(answer.json()["notes"]), path)
    page = client.post("/s/new/", {"text": text}, follow=True).content.decode()
    told_once(page, path)


def test_sharing_a_scenario_refuses_it_where_that_is_wanted_and_keeps_nothing(
    client: Client, misspelt: dict[str, Any], wakes: list[Any], transactional_db: None
) -> None:
    path, text = f"steps[0].apply[0].{FIELD}", json.dumps(scenario(misspelt))
    strict = "/api/v1/scenarios/?fieldValidation=Strict"
    refused = client.post(strict, text, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, path)
    told_once(refused.json()["detail"], path)
    assert "effect" not in refused.json()["detail"], "what is refused is not told to have none"
    assert client.get("/api/v1/scenarios/").json()["items"] == []
    silent = client.post("/api/v1/scenarios/?fieldValidation=Ignore", text, content_type="application/json")
    assert (silent.status_code, silent.json()["notes"]) == (201, [])
    right = json.dumps(scenario(make_pod("right")))
    assert client.post(strict, right, content_type="application/json").status_code == 201


def test_a_kind_of_a_scenario_that_is_misspelt_is_refused_as_everywhere() -> None:
    document = scenario(make_pod("right"))
    document["objects"].append({"apiVersion": "apps/v1", "kind": "Deploymnt", "metadata": {"name": "web"}})
    with pytest.raises(ScenarioError) as refused:
        load_scenario(document)
    words = 'objects[1].kind: "Deploymnt" is no kind of apps/v1; did you mean Deployment?'
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("changes", "field", "near"),
    table(__file__, "a_key_of_the_scenario_itself_is_refused_with_its_path_and_the_nearest_name"),
)  # fmt: skip
def test_a_key_of_the_scenario_itself_is_refused_with_its_path_and_the_nearest_name(
    client: Client, changes: dict[str, Any], field: str, near: str
) -> None:
    text = json.dumps(scenario(make_pod("right")) | changes)
    refused = client.post("/api/v1/scenarios/", text, content_type="application/json")
    body = refused.json()
    assert (refused.status_code, body["field"]) == (400, field)
    assert body["detail"].count(f"did you mean {near}?") == 1
    page = client.post("/s/new/", {"text": text}).content.decode().replace("&quot;", '"')
    assert page.split("<textarea")[0].count(f"did you mean {near}?") == 1


@pytest.mark.parametrize(
    ("kind", "patch", "field", "near"), table(__file__, "a_patch_of_a_scenario_is_read_too")
)
def test_a_patch_of_a_scenario_is_read_too(kind: str, patch: dict[str, Any], field: str, near: str) -> None:
    steps = [{"apply": [make_pod("web")]}, {"patch": {"kind": kind, "name": "n1", "patch": patch}}]
    document = scenario({}) | {"steps": steps}
    [note] = field_notes(load_scenario(document))
    assert (
        note.words
        == f'unknown field "steps[1].patch.patch.{field}" (did you mean {near}?), which has no effect'
    )


def test_what_is_spelt_well_is_not_mentioned() -> None:
    document = scenario(make_pod("right", nodeSelector={"a": "b"}))
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "name": "h",
        "patch": {"spec": {"targetCPUUtilizationPercentage": 5}},
    }
    document["steps"].append({"patch": scaler})
    assert field_notes(load_scenario(document)) == []
    document["steps"].pop()
    assert run_scenario(load_scenario(document)).notes == []
