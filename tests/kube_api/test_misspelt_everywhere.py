"""A misspelt field is told on every surface, once, by path and nearest name; a misspelt parameter writes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters.errors import InvalidManifest
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from scheduler_core.cli.main import main
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.load import field_notes
from tests.clusters.builders import make_node, make_pod
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.test_custom_resources import CRDS, definition, made
from tests.manifests import scenario
from tests.tables import table

FIELD, NEAR = "spec.nodeSelectr", "(did you mean nodeSelector?)"


@pytest.fixture
def misspelt() -> dict[str, Any]:
    return make_pod("wrong", nodeSelectr={"disk": "ssd"})


def told_once(text: str, path: str = FIELD) -> None:
    assert (text.count(path), text.count(NEAR)) == (1, 1), text


def applied(pod: dict[str, Any]) -> dict[str, Any]:
    return scenario(objects=[make_node("n1")], steps=[{"apply": [pod]}, {"run": "idle"}])


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
    document = applied(misspelt)
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
    text = json.dumps(applied(misspelt))
    for status in (201, 200):
        answer = client.post("/api/v1/scenarios/", text, content_type="application/json")
        assert answer.status_code == status
        told_once("\n".join(answer.json()["notes"]), path)
    page = client.post("/s/new/", {"text": text}, follow=True).content.decode()
    told_once(page, path)


def test_sharing_a_scenario_refuses_it_where_that_is_wanted_and_keeps_nothing(
    client: Client, misspelt: dict[str, Any], wakes: list[Any], transactional_db: None
) -> None:
    path, text = f"steps[0].apply[0].{FIELD}", json.dumps(applied(misspelt))
    strict = "/api/v1/scenarios/?fieldValidation=Strict"
    refused = client.post(strict, text, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, path)
    told_once(refused.json()["detail"], path)
    assert "effect" not in refused.json()["detail"], "what is refused is not told to have none"
    assert client.get("/api/v1/scenarios/").json()["items"] == []
    silent = client.post("/api/v1/scenarios/?fieldValidation=Ignore", text, content_type="application/json")
    assert (silent.status_code, silent.json()["notes"]) == (201, [])
    right = json.dumps(applied(make_pod("right")))
    assert client.post(strict, right, content_type="application/json").status_code == 201


def test_a_kind_of_a_scenario_that_is_misspelt_is_refused_as_everywhere() -> None:
    document = applied(make_pod("right"))
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
    text = json.dumps(applied(make_pod("right")) | changes)
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
    document = applied({}) | {"steps": steps}
    [note] = field_notes(load_scenario(document))
    assert (
        note.words
        == f'unknown field "steps[1].patch.patch.{field}" (did you mean {near}?), which has no effect'
    )


def test_what_is_spelt_well_is_not_mentioned() -> None:
    document = applied(make_pod("right", nodeSelector={"a": "b"}))
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "name": "h",
        "patch": {"spec": {"targetCPUUtilizationPercentage": 5}},
    }
    document["steps"].append({"patch": scaler})
    assert field_notes(load_scenario(document)) == []
    document["steps"].pop()
    assert run_scenario(load_scenario(document)).notes == []


# ---- On /k8s


WORDS = 'unknown field "spec.nodeSelectr" (did you mean nodeSelector?)'
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"


def twice() -> dict[str, Any]:
    pod = make_pod("wrong", nodeSelectr={"disk": "ssd"})
    pod["spec"]["containers"][0]["resources"]["request"] = {"cpu": "1"}
    return pod


def test_strict_refuses_and_names_each_field_once(kube: Kube) -> None:
    before = LogEntry.objects.count()
    answer = kube.post(f"{PODS}?fieldValidation=Strict", twice())
    status = answer.json()
    assert (answer.status_code, status["reason"]) == (400, "BadRequest")
    assert status["message"].count("spec.nodeSelectr") == 1
    assert "strict decoding error: unknown field" in status["message"]
    assert WORDS in status["message"]
    assert (
        'unknown field "spec.containers[0].resources.request" (did you mean requests?)' in status["message"]
    )
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
def test_warn_tells_and_drops(kube: Kube, query: str) -> None:
    answer = kube.post(f"{PODS}{query}", twice())
    assert answer.status_code == 201
    assert answer["Warning"].count("spec.nodeSelectr") == 1
    assert WORDS.replace('"', '\\"') in answer["Warning"]
    assert "nodeSelectr" not in answer.json()["spec"]
    assert "nodeSelectr" not in kube.get(f"{PODS}/wrong").json()["spec"]


def test_ignore_drops_and_says_nothing(kube: Kube) -> None:
    answer = kube.post(f"{PODS}?fieldValidation=Ignore", twice())
    assert (answer.status_code, "nodeSelectr" in str(answer.headers)) == (201, False)
    assert kube.post(f"{PODS}?fieldValidation=Perhaps", make_pod("p9")).status_code == 422


@pytest.mark.parametrize("how", ["put", "merge", "apply"])
def test_every_way_to_write_checks(kube: Kube, how: str) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    wrong = role | {"rules": [{"verbs": ["get"], "apiGroup": [""], "resources": ["pods"]}]}
    assert kube.post(ROLES, role | {"rules": []}).status_code == 201
    path = f"{ROLES}/r?fieldValidation=Strict"
    answer = {
        "put": lambda: kube.put(path, wrong),
        "merge": lambda: kube.patch(path, {"rules": wrong["rules"]}),
        "apply": lambda: kube.apply(f"{ROLES}/r", wrong, query="&force=true&fieldValidation=Strict"),
    }[how]()
    assert answer.status_code == 400
    assert 'unknown field "rules[0].apiGroup" (did you mean apiGroups?)' in answer.json()["message"]


def test_a_value_of_another_type_is_refused_whatever_the_mode(kube: Kube) -> None:
    role = {"metadata": {"name": "r"}, "rules": [{"verbs": "get"}]}
    answer = kube.post(f"{ROLES}?fieldValidation=Ignore", role)
    assert answer.status_code == 422
    assert "rules[0].verbs" in answer.json()["message"]


def test_a_custom_resource_is_checked_by_its_schema(kube: Kube) -> None:
    assert kube.post(CRDS, definition("gadgets", "x.example")).status_code == 201
    gadgets = "/apis/x.example/v1/namespaces/default/gadgets"
    wrong = made(min=1, sise="3")
    answer = kube.post(f"{gadgets}?fieldValidation=Strict", wrong)
    assert 'unknown field "spec.sise" (did you mean size?)' in answer.json()["message"]
    assert kube.post(gadgets, wrong).json()["spec"] == {"min": 1, "max": 5}
    answer = kube.post(gadgets, {"metadata": {"name": "h"}, "spec": {"min": "large"}})
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "spec.min")


def test_the_rest_api_tells_and_refuses_when_asked_to(kube: Kube, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.public_id}/apply"
    told = kube.client.post(f"{path}?dryRun=true", twice(), content_type="application/json").json()
    assert any(each.startswith(f'Pod "wrong": {WORDS}') for each in told["warnings"])
    assert len(told["warnings"]) == 2
    strict = kube.client.post(f"{path}?fieldValidation=Strict", twice(), content_type="application/json")
    assert strict.status_code == 400
    assert "spec.nodeSelectr" in str(strict.json())
    with pytest.raises(InvalidManifest):
        apply_documents(cluster=cluster, objects=[twice()], field_validation="Strict")


@pytest.mark.parametrize("query", ["dryrun=All", "dry_run=All", "fieldvalidation=Strict"])
def test_a_misspelt_parameter_writes_nothing(kube: Kube, query: str) -> None:
    before = LogEntry.objects.count()
    answer = kube.post(f"{PODS}?{query}", make_pod("p9"))
    assert answer.status_code == 400
    assert "did you mean" in answer.json()["message"]
    assert LogEntry.objects.count() == before


def test_an_unknown_parameter_is_told(kube: Kube) -> None:
    answer = kube.get(f"{PODS}?xyz=1")
    assert (answer.status_code, 'parameter \\"xyz\\"' in answer["Warning"]) == (200, True)


@pytest.mark.parametrize("query", ["dryrun=true", "titel=x"])
def test_a_misspelt_parameter_of_the_rest_api_writes_nothing(
    kube: Kube, cluster: Cluster, query: str
) -> None:
    before = LogEntry.objects.count()
    answer = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply?{query}", make_pod("p9"), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["field"]) == (400, query.partition("=")[0])
    assert LogEntry.objects.count() == before
