"""What is read from a text, at each door: the command line, REST and a scenario give one answer in the same words."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.clusters.errors import InvalidManifest
from playground.clusters.lifecycle import create_cluster
from playground.clusters.objects.apply import apply_documents
from scheduler_core.cli.main import main
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.reading import (
    FOREIGN,
    REMOVED,
    WRONG,
    from_objects,
    notes_of,
    read_posted,
    to_current_version,
    type_of,
)
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from tests.tables import table

DATA = Path(__file__).parent / "data"
BASE = str(DATA / "base.yaml")


def simulate(capsys: pytest.CaptureFixture[str], *names: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, result and what was said beside it."""
    status = main(["simulate", "--json", *names])
    written = capsys.readouterr()
    return status, json.loads(written.out), written.err


def applied(text: bytes, client: Client) -> tuple[int, dict[str, Any]]:
    """Status and answer of a REST apply to an empty cluster."""
    cluster = create_cluster(name="test", seed=7)
    answer = client.post(f"/api/v1/clusters/{cluster.public_id}/apply", text, content_type="application/yaml")
    return answer.status_code, answer.json()


NO_GROUP = "Kubernetes has no API group {group}, and no CustomResourceDefinition here makes this kind"
FOREIGN_TYPES = table(__file__, "FOREIGN_TYPES")


@pytest.mark.parametrize(("api_version", "kind"), FOREIGN_TYPES)
@pytest.mark.django_db
def test_what_is_foreign_is_left_out_with_one_note_at_every_door(
    api_version: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {
        "replicas": 2,
        "template": template,
        "minMember": 3,
        "tasks": [{"replicas": 2, "template": template}],
    }
    foreign = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}
    words = NO_GROUP.format(group=api_version.partition("/")[0])
    path = tmp_path / "it.json"
    path.write_text(json.dumps(foreign))
    status, told, said = simulate(capsys, BASE, str(path))
    assert (status, [one["pod"] for one in told["bound"]]) == (0, ["default/p"])
    assert said == f"note: {path}: line 1: {kind} it: left out: {words}\n"
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n---\n"
    code, answer = applied(pod + json.dumps(foreign).encode(), client)
    assert (code, [one["kind"] for one in answer["created"]]) == (200, ["Pod"])
    assert [(one["kind"], one["name"], one["reason"]) for one in answer["ignored"]] == [(kind, "it", words)]
    objects = [found.value for found in load_documents(Path(BASE).read_bytes())]
    head = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario"}
    run = run_scenario(load_scenario({**head, "objects": [*objects, foreign]}))
    assert [one.pod for one in run.placements] == ["default/p"]
    assert run.notes == [f"objects[3]: {kind} it: left out: {words}"]
    later = run_scenario(
        load_scenario({**head, "objects": objects, "steps": [{"apply": foreign}, {"run": "idle"}]})
    )
    assert run.digest == later.digest and len(later.placements) == 1


def test_volcano_job(capsys: pytest.CaptureFixture[str]) -> None:
    status, told, said = simulate(capsys, BASE, str(DATA / "volcano-job.yaml"))
    assert (status, [one["pod"] for one in told["bound"]]) == (0, ["default/p"])
    assert "volcano-job.yaml: line 1: Job train: left out: " in said


@pytest.mark.django_db
def test_no_such_version(capsys: pytest.CaptureFixture[str], client: Client) -> None:
    path = DATA / "no-such-version.yaml"
    deployment = "apps/v3 is not served here: Deployment is apps/v1"
    pod = "v2 is not served here: Pod is v1"
    assert simulate(capsys, BASE, str(path)) == (
        2,
        {
            "status": "unusable",
            "error": f"{path}: line 1: Deployment x: apiVersion: {deployment}\n"
            f"{path}: line 6: Pod y: apiVersion: {pod}",
        },
        f"{path}: line 1: Deployment x: apiVersion: {deployment}\n{path}: line 6: Pod y: apiVersion: {pod}\n",
    )
    code, answer = applied(path.read_bytes(), client)
    assert (code, answer["detail"], answer["line"]) == (400, f"apiVersion: {deployment}", 1)
    assert [one["detail"] for one in answer["causes"]][-1] == f"apiVersion: {pod}"
    objects = [found.value for found in load_documents(path.read_bytes())]
    with pytest.raises(ScenarioError) as refused:
        load_scenario({"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "objects": objects})
    assert str(refused.value).split("\n")[0] == f"objects[0].apiVersion: {deployment}"


VALUES = "image: {repository: nginx, tag: '1'}\nnodeSelector: {}\nreplicas: 2\n"
CHART = "apiVersion: v2\nname: chart\nversion: 0.1.0\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("values.yaml", VALUES), ("Chart.yaml", CHART), ("kustomization.yaml", "resources: [a.yaml]\n")],
)
@pytest.mark.django_db
def test_a_document_that_is_no_object_is_left_out(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    (tmp_path / name).write_text(text)
    words = "a document without kind and metadata is no object"
    status, told, said = simulate(capsys, BASE, str(tmp_path))
    assert (status, len(told["bound"]), said) == (
        0,
        1,
        f"note: {tmp_path / name}: line 1: left out: {words}\n",
    )
    code, answer = applied(Path(BASE).read_bytes() + b"\n---\n" + text.encode(), client)
    assert (code, [one["reason"] for one in answer["ignored"]]) == (200, [words])


def test_kustomization(capsys: pytest.CaptureFixture[str]) -> None:
    status, told, said = simulate(capsys, BASE, str(DATA / "kustomization.yaml"))
    assert (status, len(told["bound"])) == (0, 1)
    assert "kustomization.yaml: line 1: Kustomization: left out: " in said


@pytest.mark.django_db
def test_bad_quantity(tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client) -> None:
    text = (DATA / "bad-quantity.yaml").read_bytes()
    (tmp_path / "a.yaml").write_bytes(Path(BASE).read_bytes())
    (tmp_path / "b.yaml").write_bytes(text)
    status, _, said = simulate(capsys, str(tmp_path))
    place = 'spec.containers[0].resources.requests.cpu: Invalid value: "500mi": unable to parse quantity\'s suffix'
    assert (status, said) == (2, f"{tmp_path / 'b.yaml'}: line 4: Pod q: {place}\n")
    code, answer = applied(text, client)
    assert (code, answer["line"], answer["kind"], answer["name"]) == (400, 4, "Pod", "q")
    assert answer["detail"] == place


def encoded() -> list[bytes]:
    text = Path(BASE).read_text()
    return [
        ("\ufeff" + text).encode(name)
        for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8")
    ]


@pytest.mark.parametrize("data", [(DATA / "utf16-powershell.yaml").read_bytes(), *encoded()])
@pytest.mark.django_db
def test_utf16_powershell(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    path = tmp_path / "objects.yaml"
    path.write_bytes(data)
    status, told, said = simulate(capsys, str(path))
    assert (status, [one["pod"] for one in told["bound"]], said) == (0, ["default/p"], "")
    assert [found.value for found in load_documents(data)] == [
        found.value for found in load_documents(Path(BASE).read_bytes())
    ]
    code, answer = applied(data, client)
    assert (code, [one["kind"] for one in answer["created"]]) == (200, ["Node", "Node", "Pod"])
    path.write_bytes(data.replace("image: x".encode("utf-16-le"), "imag: [x".encode("utf-16-le")))
    if path.read_bytes() != data:  # the place is that in the text
        assert main(["simulate", str(path)]) == 2
        assert f"{path}: line " in capsys.readouterr().err


def test_a_mark_that_is_not_kept_is_said_with_its_line() -> None:
    with pytest.raises(InvalidManifest) as refused:
        load_documents(b"\xff\xfea\x00:\x00\n\x00x")
    assert refused.value.in_text == "line 2: the text is not UTF-16"


@pytest.mark.django_db
def test_nodelist_from_the_api(tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client) -> None:
    path = DATA / "nodelist-from-the-api.json"
    pod = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod]}))
    status, told, said = simulate(capsys, str(path), str(pods))
    assert (status, [one["pod"] for one in told["bound"]], said) == (0, ["shop/web"], "")
    assert main(["plan", str(path), "any-node"]) == 0
    code, answer = applied(path.read_bytes(), client)
    assert (code, [one["name"] for one in answer["created"]]) == (200, ["n1", "n2"])


@pytest.mark.django_db
def test_an_export_of_kube_scheduler_simulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    export = table(__file__, "an_export_of_kube_scheduler_simulator")
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export))
    status, told, said = simulate(capsys, str(path))
    assert (status, [one["pod"] for one in told["bound"]]) == (0, ["default/web"])
    assert "KubeSchedulerConfiguration: left out: the configuration of a scheduler is no object" in said
    code, answer = applied(path.read_bytes(), client)
    kinds = [one["kind"] for one in answer["created"]]
    assert (code, sorted(kinds)) == (200, ["Node", "Pod", "PriorityClass", "StorageClass"])
    export["nodes"][0]["status"]["allocatable"]["cpu"] = "x"
    path.write_text(json.dumps(export, indent=1))
    status, _, said = simulate(capsys, str(path))
    line = path.read_text().split("\n").index('     "cpu": "x",') + 1
    assert status == 2 and said.startswith(f"{path}: line {line}: Node n1: status.allocatable.cpu: ")


@pytest.mark.django_db
def test_old_versions(capsys: pytest.CaptureFixture[str], client: Client) -> None:
    path = DATA / "old-versions.yaml"
    status, told, said = simulate(capsys, BASE, str(path))
    assert (status, len(told["bound"])) == (0, 5)
    wanted = table(__file__, "old_versions")
    lines = [line.split(": ", 3)[3] for line in said.splitlines()]
    assert lines == [f"{kind} {name}: {words}" for kind, name, words in wanted]
    code, answer = applied(path.read_bytes(), client)
    notes = {one["kind"]: one.get("note", "") for one in answer["created"]}
    assert code == 200 and all(words in notes[kind] for kind, _, words in wanted)


@pytest.mark.parametrize(("api_version", "kind"), list(REMOVED))
def test_each_removed_version_is_read_or_left_out_and_says_since_when(api_version: str, kind: str) -> None:
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}}
    removed, found = REMOVED[api_version, kind], type_of(api_version, kind)
    current, note = to_current_version(manifest)
    if removed.is_read:
        assert current["apiVersion"] == removed.now and found.role not in (FOREIGN, WRONG)
        assert type_of(removed.now, kind) == found
        assert (f"not served since {removed.since}" in note) is bool(removed.since)
    else:
        assert found.role == FOREIGN and f"is not served since {removed.since}" in found.words


def test_an_autoscaler_of_the_first_beta_keeps_its_targets() -> None:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}},
        {"type": "Pods", "pods": {"metricName": "rate", "targetAverageValue": "10"}},
        {"type": "External", "external": {"metricName": "queue", "targetValue": "3"}},
    ]
    spec = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": metrics}
    old = {"apiVersion": "autoscaling/v2beta1", "kind": "HorizontalPodAutoscaler", "spec": spec}
    assert to_current_version(old)[0]["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
        {"type": "Pods",
         "pods": {"metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "3"}}},
    ]  # fmt: skip


@pytest.mark.django_db
def test_podgroup_of_scheduler_plugins(capsys: pytest.CaptureFixture[str], client: Client) -> None:
    text = (DATA / "podgroup-of-scheduler-plugins.yaml").read_bytes()
    code, answer = applied(text, client)
    words = NO_GROUP.format(group="scheduling.x-k8s.io")
    assert (code, [one["reason"] for one in answer["ignored"]]) == (200, [words])
    assert "ReplicaSet" in [one["kind"] for one in answer["created"]]
    assert type_of("rbac.authorisation.k8s.io/v1", "Role").words.endswith(
        "did you mean rbac.authorization.k8s.io?"
    )


@pytest.mark.parametrize(
    "command", ["simulate", "replay", "plan", "diff", "compare", "conformance", "bench", "model"]
)
@pytest.mark.parametrize(
    ("wrong", "right"), [("--jsn", "--json"), ("--relase", "--release"), ("--sed=3", "--seed")]
)
def test_an_option_that_is_misspelt_is_answered_with_the_nearest(
    command: str, wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    has_it = right in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([command, BASE, wrong])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and f"unrecognized arguments: {wrong}" in said
    assert f"(did you mean {right}?)" in said or not has_it


TYPES = st.sampled_from(
    [*FOREIGN_TYPES, *list(REMOVED)[:12], ("v1", "ConfigMap"), ("apps/v1", "Deploymnet"), ("apps/v3", "Deployment"),
     ("v1", "Pods"), ("v2", "Pod"), ("aps/v1", "Deployment"), ("v1", "Event"), ("policy/v9", "PodDisruptionBudget")]
)  # fmt: skip


@pytest.mark.django_db
@settings(max_examples=15, deadline=None)
@given(types=st.lists(TYPES, min_size=1, max_size=4), shape=st.sampled_from(["documents", "list"]))
def test_any_types_have_one_verdict_in_the_same_words_at_every_door(
    types: list[tuple[str, str]], shape: str
) -> None:
    objects: list[dict[str, Any]] = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": f"n{place}"}}
        for place, (version, kind) in enumerate(types)
    ]
    text = "\n---\n".join(json.dumps(item) for item in objects)
    if shape == "list":
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    posted = read_posted(text)
    assert [item.manifest for item in posted] == [item.manifest for item in from_objects(objects)]
    wrong = [found.words for item in posted if (found := type_of(item.api_version, item.kind)).role == WRONG]
    left_out = [
        found.words for item in posted if (found := type_of(item.api_version, item.kind)).role == FOREIGN
    ]
    try:
        result = apply_documents(cluster=None, text=text, dry_run=True)
        assert not wrong and [item.reason for item in result.ignored] == left_out
    except InvalidManifest as error:
        said = [str(error), *(str(cause) for cause in error.causes)]
        assert not wrong or all(any(words in one for one in said) for words in wrong)
    head = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario"}
    try:
        load_scenario({**head, "objects": objects})
    except ScenarioError as error:
        assert not wrong or all(words in str(error) for words in wrong)
    else:
        assert not wrong
    assert len(notes_of(posted)) <= len(posted)


def test_a_scenario_is_no_object_to_simulate_and_one_in_utf16_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [found.value for found in load_documents(Path(BASE).read_bytes())]
    path = tmp_path / "it.scenario.json"
    head = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario"}
    path.write_bytes(("\ufeff" + json.dumps({**head, "objects": objects})).encode("utf-16-le"))
    status, told, said = simulate(capsys, str(path), BASE)
    assert (status, len(told["bound"])) == (0, 1) and "Scenario: left out: " in said
    assert main(["replay", str(path)]) == 0
    assert main(["diff", str(path), str(path)]) == 0
    assert main(["plan", str(path), "headroom"]) in (0, 1)
    assert "left out" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line", "words"), table(__file__, "a_text_without_any_object_is_refused_at_every_door")
)
@pytest.mark.django_db
def test_a_text_without_any_object_is_refused_at_every_door(
    text: str,
    line: int | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    client: Client,
) -> None:
    path = tmp_path / "nothing.yaml"
    path.write_text(text)
    place = f"{path}: line {line}" if line else f"{path}"
    for command in (["simulate", str(path)], ["plan", str(path), "any-node"]):
        assert main(command) == 2
        assert capsys.readouterr().err == f"{place}: {words}\n"
    code, answer = applied(text.encode() or b"\n", client)
    assert (code, answer["detail"], answer.get("line")) == (400, words, line)


@pytest.mark.django_db
def test_a_generated_name_is_given_at_every_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    text = b"""
apiVersion: v1
kind: Pod
metadata: {generateName: run-}
spec: {containers: [{name: c, image: x}]}
"""
    (tmp_path / "run.yaml").write_bytes(text + b"---" + text)
    status, told, _ = simulate(capsys, BASE, str(tmp_path / "run.yaml"))
    names = [one["pod"] for one in told["bound"] if one["pod"].startswith("default/run-")]
    assert status == 0 and len(set(names)) == 2
    code, answer = applied(text, client)
    assert code == 200 and answer["created"][0]["name"].startswith("run-")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.django_db
def test_the_page_reads_an_upload_by_its_byte_order_mark(encoding: str, client: Client) -> None:
    upload = SimpleUploadedFile("base.yaml", Path(BASE).read_text().encode(encoding))
    answer = client.post("/new/import/", {"upload": upload, "action": "preview"})
    assert answer.status_code == 200 and b"It cannot be imported" not in answer.content


@pytest.mark.django_db
def test_a_number_of_thousands_of_digits_is_refused_in_words(client: Client) -> None:
    text = b'{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": ' + b"9" * 5000 + b"}}"
    code, answer = applied(text, client)
    assert (code, answer["detail"]) == (400, "is a number too large")


WHOLE = [
    Path(BASE).read_text(),
    *((DATA / name).read_text() for name in ("invalid-pods.yaml", "old-versions.yaml")),
]
PIECES = [
    "", ":", ": ", "\t", "\n", "- ", "{", "}", "[", "]", '"', "'", "#", "&a ", "*a", "!!binary x", "|", ">", "null",
    "~", "---\n", "%YAML 1.1\n", "\x00", "\x85", "\u2028", "é", "😀", "1e999", "0x1F", "1_000", "yes", "<<: *a",
    "? ", "@", "apiVersion: v1\n", "kind: List\n", "9" * 400, "\r\n", "\ufeff",
]  # fmt: skip


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """Manifests as a person may have them: cut, doubled, with something else between."""
    text = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.sampled_from([0, 0, 1, 2, 9, 40])))
        text = text[:begin] + draw(st.sampled_from(PIECES)) + text[end:]
    return text


@pytest.mark.django_db
@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=mangled())
def test_any_text_has_one_verdict_in_the_same_words_at_every_door(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    cluster = create_cluster(name="test", seed=7)
    path = f"/api/v1/clusters/{cluster.public_id}/apply?dryRun=true"
    answer = client.post(path, text.encode(), content_type="application/yaml")
    body = answer.json()
    found = [] if answer.status_code == 200 else [body, *body.get("causes", ())]
    by_rest = [(one.get("line"), one["detail"]) for one in found]
    page = client.post(f"/c/{cluster.public_id}/import/", {"text": text, "action": "preview"})
    by_page = [(problem["line"], problem["message"]) for problem in page.context.get("problems") or ()]
    assert by_page == by_rest or page.context["form"].errors
    file = tmp_path / "it.yaml"
    file.write_bytes(text.encode())
    capsys.readouterr()
    status = main(["simulate", str(file)])
    said = [line for line in capsys.readouterr().err.split("\n") if line and not line.startswith("note: ")]
    assert (status == 2) == bool(by_rest), (said, by_rest)
    # An answer names the first of them alone, where there are many.
    assert len(said) == len(by_rest) or len(said) > len(by_rest) == 20
    for line, (number, words) in zip(said, by_rest, strict=False):
        assert line.startswith(f"{file}: line {number}: " if number else f"{file}: ") and line.endswith(words)
