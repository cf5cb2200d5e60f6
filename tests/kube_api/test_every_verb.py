"""Every verb of kubectl on every kind of the table: done to each object, or refused in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.kinds import KINDS
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.kubectls import Kubectl, extremes
from tests.kube_api.test_kubectl import EVERY_KIND

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

N_OBJECTS = len(KINDS) - 1
"""One of each kind but Event, which is never applied."""
LINE = re.compile(r"^([a-z.0-9]+)/\S+ (.+)$", re.MULTILINE)
ADDS_AN_ANNOTATION = r"sed -i -e 's/^    annotations:$/    annotations:\n      edited: \"yes\"/'"
SCALED = ("deployment.apps", "replicaset.apps", "replicationcontroller", "statefulset.apps")


@pytest.mark.timeout(400)
def test_each_verb_is_done_to_an_object_of_each_kind(
    asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path
) -> None:
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{make_cluster().public_id}", tmp_path)
    file = ("-f", str(EVERY_KIND))

    def said(*words: str) -> dict[str, str]:
        return dict(LINE.findall(kubectl(*words, *file)))

    assert set(said("create").values()) == {"created"}
    names = kubectl("get", *file, "-o", "name").split()
    assert len(names) == N_OBJECTS
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
        assert (len(found), set(found.values())) == (N_OBJECTS, {done}), words
    listed = json.loads(kubectl("get", *file, "-o", "json"))["items"]
    wanted = {"walked", "merged", "json", "strategic"}
    assert all(wanted <= {*item["metadata"]["labels"]} for item in listed)
    assert all(item["metadata"]["annotations"]["walked"] == "yes" for item in listed)
    applied = said("apply", "--server-side", "--force-conflicts")
    assert (len(applied), set(applied.values())) == (N_OBJECTS, {"serverside-applied"})
    applied = said("apply")
    assert (len(applied), {*applied.values()} - {"configured", "unchanged"}) == (N_OBJECTS, set())
    kubectl.environment["KUBE_EDITOR"] = ADDS_AN_ANNOTATION
    edited = dict(LINE.findall(kubectl("edit", *names, "-n", "fresh")))
    assert (len(edited), set(edited.values())) == (N_OBJECTS, {"edited"})
    met = kubectl("wait", *file, "--for=jsonpath={.metadata.annotations.edited}=yes", "--timeout=120s")
    assert len(met.splitlines()) == N_OBJECTS and met.count(" condition met\n") == N_OBJECTS
    unlike = tmp_path / "unlike.yaml"
    manifests = [found for found in yaml.safe_load_all(EVERY_KIND.read_text()) if found]
    for manifest in manifests:
        manifest["metadata"]["labels"] = {"unlike": "yes"}
    unlike.write_text(yaml.safe_dump_all(manifests))
    differences = kubectl.run("diff", "-f", str(unlike))
    assert differences.returncode == 1, differences.stderr
    changed = [line for line in differences.stdout.splitlines() if re.match(r"[-+](?![-+])", line)]
    assert sum("unlike:" in line for line in changed) == N_OBJECTS
    assert not [line for line in changed if "status" in line or "resourceVersion" in line]
    replaced = said("replace")
    assert (len(replaced), set(replaced.values())) == (N_OBJECTS, {"replaced"})
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
    assert len(re.findall(r" force deleted", gone)) == N_OBJECTS - 1
    kubectl("delete", names[0])
    left = kubectl.run("get", *file, "-o", "name")
    assert left.stdout == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("debug", "p1", "--image=x"), "there are no containers in a playground"),
        (("logs", "p1"), "there are no containers in a playground"),
        (("cp", "p1:/x", "/tmp/x"), "there are no containers in a playground"),
        (
            ("certificate", "approve", "nothing"),
            'certificatesigningrequests.certificates.k8s.io "nothing" not found',
        ),
        (("create", "token", "robot"), "ServiceAccounts have no tokens in a playground"),
        (("create", "token", "nothing"), 'serviceaccounts "nothing" not found'),
    ],
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
