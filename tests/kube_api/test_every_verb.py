"""Every verb of kubectl on every kind of the table: done to each object, or refused in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.kubectls import Kubectl, extremes
from tests.kube_api.test_kubectl import EVERY_KIND
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

LINE = re.compile(r"^([a-z.0-9]+)/\S+ (.+)$", re.MULTILINE)
ADDS_AN_ANNOTATION = r"sed -i -e 's/^    annotations:$/    annotations:\n      edited: \"yes\"/'"
SCALED = ("deployment.apps", "replicaset.apps", "replicationcontroller", "statefulset.apps")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("one_in", [6, pytest.param(1, marks=pytest.mark.nightly("playground/kube_api/"))])
def test_each_verb_is_done_to_an_object_of_each_kind(
    asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path, one_in: int
) -> None:
    """Each request is of one kind; by day some of them, the namespace among these."""
    manifests = [found for found in yaml.safe_load_all(EVERY_KIND.read_text()) if found][::one_in]
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
