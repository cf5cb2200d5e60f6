"""Bad input gets one shape of answer that names document, field and value; nothing of the request is kept."""

from typing import Any

import pytest

from playground.clusters.models import Cluster, LogEntry
from tests.api.conftest import Api
from tests.clusters.builders import make_node, make_pod
from tests.scenarios.documents import small_text
from tests.tables import table

GOOD = "apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n---\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{container}]}}\n"

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "malformed YAML": (
        GOOD + "apiVersion: v1\nkind: [Pod\n",
        {"status": 400, "document": 1},
    ),
    "a bad quantity": (
        GOOD + POD.format(name="p", container="{name: c, resources: {requests: {cpu: 1x}}}"),
        {"document": 1, "field": "spec.containers[0].resources.requests.cpu", "value": "1x", "line": 8},
    ),
    "no kind": (GOOD + "apiVersion: v1\nmetadata: {name: p}\n", {"document": 1, "field": "kind"}),
    "a name twice": (
        GOOD + (POD + "---\n" + POD).format(name="p", container="{name: c, image: x}"),
        {"document": 2, "field": "metadata.name", "value": "p"},
    ),
    "negative cpu": (
        GOOD
        + "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '-4', pods: '10'}}\n",
        {"document": 1, "field": "status.allocatable.cpu", "value": "-4"},
    ),
    "aliases that explode": (
        "a: &a [1, 2]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\napiVersion: v1\nkind: Pod\n",
        {"document": 0, "line": 2},
    ),
    "nested too deep": ("[" * 100_000 + "]" * 100_000, {"document": 0}),
    "nothing": ("# nothing\n", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_manifests_are_refused_whole_and_the_place_is_named(
    api: Api, cluster: Cluster, case: str
) -> None:
    text, wanted = CASES[case]
    before = LogEntry.objects.count()
    answer = api.yaml(f"/clusters/{cluster.public_id}/apply", text)
    problem = answer.json()
    assert answer.status_code == 400, problem
    assert answer["Content-Type"] == "application/problem+json"
    assert problem["reason"] == "Invalid"
    assert problem["detail"]
    assert {key: problem.get(key) for key in wanted} == wanted
    assert LogEntry.objects.count() == before


def test_an_upload_of_50_mb_is_too_large(api: Api, cluster: Cluster) -> None:
    answer = api.yaml(f"/clusters/{cluster.public_id}/apply", b"#" * 50_000_000)
    assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")


def test_a_body_of_settings_is_bounded_too(api: Api) -> None:
    answer = api.post("/clusters/", {"name": "x" * 2_000_000})
    assert answer.status_code == 413


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data", "image/png"])
def test_other_media_types_are_refused(api: Api, cluster: Cluster, media: str) -> None:
    for path in ("/clusters/", f"/clusters/{cluster.public_id}/apply"):
        answer = api.send("POST", path, "name=x", media=media)
        assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("body", "field"),
    table(__file__, "a_cluster_needs_a_name_and_takes_no_unknown_keys"),
)
def test_a_cluster_needs_a_name_and_takes_no_unknown_keys(
    api: Api, body: dict[str, Any], field: str | None
) -> None:
    answer = api.post("/clusters/", body)
    if field is None:
        assert answer.status_code == 201  # white space is made one space
        return
    assert (answer.status_code, answer.json().get("field")) == (400, field), answer.json()
    assert Cluster.objects.count() == 0


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', '{"name": "a", "name": "b"}', '{"name": "\\u0000"}', "\xff"]
)
def test_a_body_that_is_no_object_is_refused(api: Api, text: str) -> None:
    answer = api.send("POST", "/clusters/", text.encode("latin-1"), media="application/json")
    assert answer.status_code == 400
    assert answer.json()["reason"] == "Invalid"


@pytest.mark.parametrize("until", ["soon", "", "-5s", "1e9h", 5, None])
def test_a_run_wants_cycle_idle_or_a_duration(api: Api, cluster: Cluster, until: Any) -> None:
    answer = api.post(f"/clusters/{cluster.public_id}/run", {"until": until})
    assert (answer.status_code, answer.json()["field"]) == (400, "until")


@pytest.mark.parametrize(
    "path",
    table(__file__, "what_is_not_there_is_a_problem_too"),
)
def test_what_is_not_there_is_a_problem_too(api: Api, cluster: Cluster, path: str) -> None:
    answer = api.get(path.format(id=cluster.public_id))
    assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "before=-1", "outcome=lost", "after=1e3", "pod=%00"])
def test_bad_query_parameters_are_named(api: Api, cluster: Cluster, query: str) -> None:
    answer = api.get(f"/clusters/{cluster.public_id}/cycles/?{query}")
    assert (answer.status_code, answer.json()["field"]) == (400, query.partition("=")[0])


def test_a_method_a_path_does_not_have_is_405(api: Api) -> None:
    answer = api.send("PUT", "/clusters/")
    assert (answer.status_code, answer.json()["reason"]) == (405, "MethodNotAllowed")
    assert "POST" in answer["Allow"]


def test_several_problems_of_one_request_come_together(api: Api, cluster: Cluster) -> None:
    bad = [make_node(f"n{i}", cpu="-1") for i in range(3)] + [make_pod("p", cpu="x")]
    problem = api.post(
        f"/clusters/{cluster.public_id}/apply", {"apiVersion": "v1", "kind": "List", "items": bad}
    ).json()
    assert len(problem["causes"]) == 3
    assert all(cause["detail"] and cause["field"] for cause in problem["causes"])


def test_every_reason_is_explained_where_a_problem_points(api: Api) -> None:
    problem = api.get("/clusters/nope/").json()
    assert api.client.get(problem["type"]).json()["reason"] == problem["reason"]


# ---- A quantity no computer adds up is refused on every surface


HUGE = "1e999999999"
YAML = table(__file__, "YAML")


def test_no_surface_takes_it(api: Api, cluster: Cluster) -> None:
    here, kube = f"/clusters/{cluster.public_id}", f"/k8s/{cluster.public_id}/api/v1"
    before = LogEntry.objects.count()
    share = small_text().replace("cpu: '1'", f"cpu: '{HUGE}'", 1)
    assert HUGE in share
    client = api.client
    answers = {
        "apply": api.yaml(f"{here}/apply", YAML),
        "pods": api.post(f"{here}/pods/", make_pod("huge", cpu=HUGE)),
        "nodes": api.post(f"{here}/nodes/", make_node("huge", cpu=HUGE)),
        "try": api.yaml(f"{here}/try", YAML),
        "share": api.yaml("/scenarios/", share),
        "kubectl": client.post(
            f"{kube}/namespaces/default/pods", make_pod("huge", cpu=HUGE), content_type="application/json"
        ),
        "kubectl patch": client.patch(
            f"{kube}/nodes/n1/status",
            {"status": {"allocatable": {"cpu": HUGE}}},
            content_type="application/merge-patch+json",
        ),
        "pod page": client.post(
            f"/c/{cluster.public_id}/pods/new/", {"action": "yaml", "yaml": YAML, "then": "queue"}
        ),
        "import page": client.post(f"/c/{cluster.public_id}/import/", {"action": "import", "text": YAML}),
        "share page": client.post("/s/new/", {"text": share}),
    }
    told = {name: (answer.status_code, HUGE in answer.content.decode()) for name, answer in answers.items()}
    assert all(status in (400, 422) and named for status, named in told.values()), told
    assert LogEntry.objects.count() == before
