"""Every verb of kubectl on every kind of the table: done to each object, or refused in one sentence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.drive.config import set_clock
from playground.clusters.models import Cluster, LogEntry, Pod
from playground.clusters.objects.write import replace_object
from tests.changes import one_in
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import eventually
from tests.kube_api.kubectls import Kubectl, extremes, programs
from tests.kube_api.test_kubectl import EVERY_KIND
from tests.manifests import deployment, make_object
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

LINE = re.compile(r"^([a-z.0-9]+)/\S+ (.+)$", re.MULTILINE)
ADDS_AN_ANNOTATION = r"sed -i -e 's/^    annotations:$/    annotations:\n      edited: \"yes\"/'"
SCALED = ("deployment.apps", "replicaset.apps", "replicationcontroller", "statefulset.apps")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("step", [18, pytest.param(1, marks=pytest.mark.nightly("playground/kube_api/"))])
def test_each_verb_is_done_to_an_object_of_each_kind(
    asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path, step: int
) -> None:
    """Each request is of one kind; by day some of them, the namespace among these."""
    manifests = [found for found in yaml.safe_load_all(EVERY_KIND.read_text()) if found][::step]
    n_objects = len(manifests)
    every = tmp_path / "every.yaml"
    every.write_text(yaml.safe_dump_all(manifests))
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{make_cluster().public_id}", tmp_path)
    file = ("-f", str(every))

    def said(*words: str) -> dict[str, str]:
        return dict(LINE.findall(kubectl(*words, *file)))

    assert set(said("create").values()) == {"created"}
    names = kubectl("get", *file, "-o", "name").split()
    assert len(names) == n_objects
    for words, done in (
        (("label", "--overwrite", "walked=yes"), "labeled"),
        (("annotate", "--overwrite", "walked=yes"), "annotated"),
        (("patch", "--type=merge", "-p", '{"metadata":{"labels":{"merged":"yes"}}}'), "patched"),
        (
            ("patch", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/json","value":"yes"}]'),
            "patched",
        ),
        (("patch", "--type=strategic", "-p", '{"metadata":{"labels":{"strategic":"yes"}}}'), "patched"),
    ):
        found = said(*words)
        assert (len(found), set(found.values())) == (n_objects, {done}), words
    listed = json.loads(kubectl("get", *file, "-o", "json"))["items"]
    wanted = {"walked", "merged", "json", "strategic"}
    assert all(wanted <= {*item["metadata"]["labels"]} for item in listed)
    assert all(item["metadata"]["annotations"]["walked"] == "yes" for item in listed)
    applied = said("apply", "--server-side", "--force-conflicts")
    assert (len(applied), set(applied.values())) == (n_objects, {"serverside-applied"})
    applied = said("apply")
    assert (len(applied), {*applied.values()} - {"configured", "unchanged"}) == (n_objects, set())
    kubectl.environment["KUBE_EDITOR"] = ADDS_AN_ANNOTATION
    edited = dict(LINE.findall(kubectl("edit", *names, "-n", "fresh")))
    assert (len(edited), set(edited.values())) == (n_objects, {"edited"})
    met = kubectl("wait", *file, "--for=jsonpath={.metadata.annotations.edited}=yes", "--timeout=120s")
    assert len(met.splitlines()) == n_objects and met.count(" condition met\n") == n_objects
    unlike = tmp_path / "unlike.yaml"
    for manifest in manifests:
        manifest["metadata"]["labels"] = {"unlike": "yes"}
    unlike.write_text(yaml.safe_dump_all(manifests))
    differences = kubectl.run("diff", "-f", str(unlike))
    assert differences.returncode == 1, differences.stderr
    changed = [line for line in differences.stdout.splitlines() if re.match(r"[-+](?![-+])", line)]
    assert sum("unlike:" in line for line in changed) == n_objects
    assert not [line for line in changed if "status" in line or "resourceVersion" in line]
    replaced = said("replace")
    assert (len(replaced), set(replaced.values())) == (n_objects, {"replaced"})
    # What can be scaled is; of the others one sentence tells that they cannot.
    can = [name for name in names if name.partition("/")[0] in SCALED]
    assert kubectl("scale", *can, "-n", "fresh", "--replicas=0").splitlines() == [
        f"{name} scaled" for name in can
    ]
    # kubectl asks no further than the first that cannot.
    for name in [name for name in names if name not in can][::8]:
        done = kubectl.run("scale", name, "-n", "fresh", "--replicas=0")
        told = [line for line in done.stderr.splitlines() if not line.startswith("Warning:")]
        assert done.returncode == 1 and len(told) == 1, (name, done.stderr)
        assert told[0].startswith("Error from server (NotFound)"), told
    # The namespace stands first in the file and takes with it what is in it, so that it goes last.
    gone = kubectl(
        "delete", "--wait=false", "--grace-period=0", "--force", *reversed(names[1:]), "-n", "fresh"
    )
    assert len(re.findall(r" force deleted", gone)) == n_objects - 1
    kubectl("delete", names[0])
    left = kubectl.run("get", *file, "-o", "name")
    assert left.stdout == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    table(__file__, "what_is_not_done_says_why"),
)
def test_what_is_not_done_says_why(
    words: tuple[str, ...],
    sentence: str,
    asgi_server: str,
    transactional_db: None,
    wakes: list[Any],
    tmp_path: Path,
) -> None:
    robot = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    cluster = make_cluster(make_node("n1"), make_pod("p1", node="n1"), robot)
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    refused = kubectl.run(*words)
    assert refused.returncode != 0
    assert sentence in refused.stderr, refused.stderr


# ---- Whole files by real kubectls: applied twice, compared, pruned and deleted; and workloads rolled back


def test_a_file_is_applied_twice_compared_pruned_and_deleted(
    asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path
) -> None:
    # A kubectl asks for the versions that its own release knows, so that only a new one can prune here, or at 1.34.
    cluster = make_cluster(make_node("n1"))
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    kubectl("create", "namespace", "shop")
    objects = table(__file__, "OBJECTS")

    def done(*words: str, file: list[dict[str, Any]] = objects) -> list[list[str]]:
        text = yaml.safe_dump_all(file)
        return [line.split() for line in kubectl(*words, "-n", "shop", "-f", "-", text=text).splitlines()]

    assert {line[-1] for line in done("apply")} == {"created"}
    entries = LogEntry.objects.filter(cluster=cluster).count()
    assert {line[-1] for line in done("apply")} == {"unchanged"}
    assert done("diff") == [] and LogEntry.objects.filter(cluster=cluster).count() == entries
    pruned = {("ConfigMap", "hosts"), ("Service", "metrics"), ("Deployment", "web")}
    less = [each for each in objects if (each["kind"], each["metadata"]["name"]) not in pruned]
    said = done("apply", "--prune", "-l", "part-of=shop", file=less)
    assert {name for name, what in said if what == "pruned"} == {
        "configmap/hosts", "service/metrics", "deployment.apps/web"
    }  # fmt: skip
    assert len(done("delete", file=less)) == len(less)
    left = kubectl("get", "all,cm,sa", "-n", "shop", "-o", "name")
    # As each namespace has.
    assert left.split() == ["configmap/kube-root-ca.crt", "serviceaccount/default"]


@pytest.mark.parametrize(
    "kind",
    one_in(3, ["Deployment", "StatefulSet", "DaemonSet"], "playground/kube_api/", "scheduler_core/sim/"),
)
def test_a_workload_goes_back_to_what_it_was(kubectl: Kubectl, live_cluster: Cluster, kind: str) -> None:
    set_clock(cluster=live_cluster, mode="realtime", rate=60.0)  # rollouts take their time
    spec = deployment("shop", 1, cpu="100m")["spec"]
    if kind == "StatefulSet":
        spec["serviceName"] = "shop"
    elif kind == "DaemonSet":
        del spec["replicas"]
    kubectl("apply", "-f", "-", text=json.dumps(make_object("apps/v1", kind, "shop", spec=spec)))
    place = f"{kind.lower()}/shop"

    def runs(image: str) -> bool:
        pods = Pod.objects.filter(cluster=live_cluster, labels__app="shop", terminating=False)
        found = {(pod.phase, pod.manifest["spec"]["containers"][0]["image"]) for pod in pods}
        return found == {("Running", image)}

    def revisions() -> list[str]:
        return re.findall(r"^(\d)\s", kubectl("rollout", "history", place), re.M)

    eventually(lambda: runs("i"))
    kubectl("set", "image", place, "c=i:2")
    kubectl("rollout", "status", place, "--timeout=60s")
    eventually(lambda: runs("i:2"))
    assert revisions() == ["1", "2"]
    assert re.search(r"Image:\s+i\n", kubectl("rollout", "history", place, "--revision=1"))
    assert "rolled back" in kubectl("rollout", "undo", place)
    eventually(lambda: runs("i"))
    assert revisions() == ["2", "3"]
    kubectl("rollout", "undo", place, "--to-revision=2")
    eventually(lambda: runs("i:2"))
    assert "restarted" in kubectl("rollout", "restart", place)
    if kind == "Deployment":
        kubectl("rollout", "pause", place)
        assert "paused" in kubectl.run("rollout", "undo", place).stderr
        kubectl("rollout", "resume", place)


# ---- VerticalPodAutoscalers: their definition as their project ships it, cut to what a list shows; applied and listed


DEFINITION = (Path(__file__).parent / "data" / "vertical_autoscaler.yaml").read_text()
OBJECT: dict[str, Any] = table(__file__, "OBJECT")
RECOMMENDED = {
    "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "recommendation": {"containerRecommendations": [
        {"containerName": "c", "target": {"cpu": "250m", "memory": "262144k"}}]},
}  # fmt: skip


@pytest.mark.nightly("playground/kube_api/", "playground/clusters/custom_kinds.py")
@pytest.mark.parametrize("program", programs(), ids=lambda path: path.rpartition("/")[2])
def test_a_vertical_autoscaler_is_applied_listed_and_deleted(
    program: str, asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Any
) -> None:
    cluster: Cluster = make_cluster(make_node("n1"))
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    said = kubectl("apply", "-f", "-", text=DEFINITION)
    assert said.endswith("verticalpodautoscalers.autoscaling.k8s.io created\n")
    assert "created" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    assert "unchanged" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    cluster.refresh_from_db()
    replace_object(cluster=cluster, manifest=OBJECT | {"status": RECOMMENDED}, subresource="status")
    head, row = (line.split() for line in kubectl("get", "vpa").splitlines())
    assert head == ["NAME", "MODE", "CPU", "MEM", "PROVIDED", "AGE"]
    assert row[:-1] == ["web", "Auto", "250m", "262144k", "True"]
    wrong = OBJECT | {"spec": OBJECT["spec"] | {"updatePolicy": {"updateMode": "Sometimes"}}}
    refused = kubectl.run("apply", "-f", "-", text=yaml.safe_dump(wrong))
    assert refused.returncode == 1 and "updateMode" in refused.stderr
    assert kubectl("delete", "vpa", "web").startswith("verticalpodautoscaler.autoscaling.k8s.io")
