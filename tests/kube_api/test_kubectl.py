"""Real kubectls against a real server: the oldest and the newest this machine has."""

import html
import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.accounts.models import User
from playground.accounts.tokens import create_token
from playground.clusters.demo import create_demo
from playground.clusters.drive.config import set_clock
from playground.clusters.kinds import KINDS
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Cycle, Pod, PriorityClass
from tests.clusters.builders import make_cluster, make_pod
from tests.in_thread import served
from tests.kube_api.conftest import eventually
from tests.kube_api.kubectls import Kubectl, programs
from tests.markup import html_of
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

EVERY_KIND = Path(__file__).parent / "data" / "every_kind.yaml"

DEPLOYMENT = table(__file__, "DEPLOYMENT")


def running(app: str, count: int) -> Callable[[], bool]:
    return lambda: (
        Pod.objects.filter(labels__app=app, phase="Running", terminating=False).count() == count
        and Pod.objects.filter(labels__app=app).count() == count
    )


def test_the_life_of_a_deployment(kubectl: Kubectl) -> None:
    assert "deployment.apps/shop created" in kubectl("apply", "-f", "-", text=DEPLOYMENT)
    eventually(running("shop", 3))
    assert "unchanged" in kubectl("apply", "-f", "-", text=DEPLOYMENT)
    assert "configured" in kubectl("apply", "-f", "-", text=DEPLOYMENT.replace("replicas: 3", "replicas: 2"))
    eventually(running("shop", 2))
    shown = kubectl("get", "pods", "-o", "wide", "-l", "app=shop")
    assert re.search(r"shop-\S+\s+1/1\s+Running\s+0\s+\d+", shown)
    assert "NOMINATED NODE" in shown
    assert re.search(r"shop\s+2/2\s+2\s+2", kubectl("get", "deploy", "shop"))
    kubectl("scale", "deployment", "shop", "--replicas=4")
    eventually(running("shop", 4))
    kubectl("delete", "deployment", "shop")
    eventually(running("shop", 0))


def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    eventually(running("shop", 3))
    kubectl("taint", "node", "n1", "dedicated=db:NoSchedule")
    assert "dedicated=db:NoSchedule" in kubectl("describe", "node", "n1")
    kubectl("taint", "node", "n1", "dedicated-")
    # A pod in protobuf.
    kubectl("debug", "node/n2", "--image=x")
    kubectl("cordon", "n2")
    assert "SchedulingDisabled" in kubectl("get", "node", "n2")
    kubectl("uncordon", "n2")
    kubectl("create", "pdb", "shop", "--selector=app=shop", "--min-available=3")
    eventually(lambda: "3 " in kubectl("get", "pdb", "shop"))
    node = Pod.objects.filter(labels__app="shop").values_list("node_name", flat=True)[0]
    drain = ("drain", "--ignore-daemonsets", "--force")
    stuck = kubectl.run(*drain, node, "--timeout=1s")
    assert stuck.returncode != 0 and "disruption budget" in stuck.stderr
    assert not Pod.objects.filter(terminating=True).exists()
    kubectl("delete", "pdb", "shop")
    kubectl("uncordon", node)
    kubectl(*drain, "n1", "--timeout=60s")
    eventually(running("shop", 3))
    assert set(Pod.objects.values_list("node_name", flat=True)) == {"n2"}


def test_a_pod_is_described_as_its_cycle_page_tells_it(
    kubectl: Kubectl, live_cluster: Cluster, client: Client
) -> None:
    kubectl("taint", "node", "n2", "dedicated=db:NoSchedule")
    kubectl("create", "-f", "-", text=json.dumps(make_pod("huge", cpu="64")))
    eventually(lambda: "FailedScheduling" in kubectl("get", "events"))
    cycle = Cycle.objects.get(cluster=live_cluster, pod_name="huge")
    assert cycle.message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {dedicated: db}. "
    )
    # The very words: in describe, in the condition, in the event, on the page.
    described = kubectl("describe", "pod", "huge")
    assert re.search(r"PodScheduled +False", described)
    event = re.search(r"Warning +FailedScheduling +\S+ +default-scheduler +(.*)", described)
    assert event and event[1] == cycle.message
    found = json.loads(kubectl("get", "pod", "huge", "-o", "json"))
    condition = next(item for item in found["status"]["conditions"] if item["type"] == "PodScheduled")
    assert (condition["reason"], condition["message"]) == ("Unschedulable", cycle.message)
    listed = json.loads(kubectl("get", "events", "-o", "json"))["items"]
    assert [item["message"] for item in listed if item["reason"] == "FailedScheduling"] == [cycle.message]
    page = client.get(f"/c/{live_cluster.public_id}/cycles/{cycle.number}/").content.decode()
    words = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert cycle.message in " ".join(words.split())
    assert "0/1" in kubectl("get", "pod", "huge")
    # And one that is placed.
    kubectl("run", "solo", "--image=x")
    eventually(lambda: "Scheduled" in kubectl("get", "events", "--field-selector=reason=Scheduled"))
    cycle = Cycle.objects.get(cluster=live_cluster, pod_name="solo")
    described = kubectl("describe", "pod", "solo")
    assert f"Successfully assigned default/solo to {cycle.node}" in described
    assert re.search(r"PodScheduled +True", described)
    page = html_of(client.get(f"/c/{live_cluster.public_id}/cycles/{cycle.number}/"))
    assert re.search(rf"solo</b>.*<b ?>{cycle.node}</b>", page)


def test_probes_are_described_with_the_defaults_of_an_api_server(kubectl: Kubectl) -> None:
    probed = table(__file__, "probes_are_described_with_the_defaults_of_an_api_server")
    kubectl("apply", "-f", "-", text=probed)
    eventually(running("probed", 1))
    # Since 1.37 the thresholds are called by their names.
    thresholds = r"(#success=1 #failure=3|successThreshold=1 failureThreshold=3)"
    liveness = r"Liveness: +http-get http://:80/ delay=0s timeout=1s period=5s " + thresholds
    for described in (
        kubectl("describe", "deployment", "probed"),
        kubectl("describe", "pod", "-l", "app=probed"),
    ):
        assert re.search(liveness, described)
        assert re.search(r"Readiness: .*delay=0s timeout=1s period=10s " + thresholds, described)


def test_pods_are_watched_and_waited_for(kubectl: Kubectl) -> None:
    watching = kubectl.start("get", "pods", "-w", "-o", "wide")
    try:
        kubectl("run", "solo", "--image=x")
        assert watching.stdout
        lines = iter(watching.stdout.readline, "")
        timer = threading.Timer(60, watching.kill)
        timer.start()
        seen = next(line for line in lines if "Running" in line)
        timer.cancel()
        assert re.match(r"solo\s+1/1\s+Running\s+0\s+\S+\s+\S+\s+n[12]", seen)
    finally:
        watching.kill()
        watching.communicate()
    kubectl("wait", "--for=condition=PodScheduled", "pod/solo", "--timeout=30s")
    kubectl("delete", "pod", "solo", "--grace-period=2")
    assert kubectl.run("get", "pod", "solo").returncode != 0


def test_typed_creates_lists_and_discovery(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("create", "priorityclass", "high", "--value=100")
    kubectl("create", "deployment", "web", "--image=web:1", "-n", "team")
    kubectl("create", "configmap", "cm", "--from-literal=a=b", "-n", "team")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b", "-n", "team")
    assert "web" in kubectl("get", "deployments", "-A")
    assert re.search(r"high\s+100\s+false", kubectl("get", "pc", "high"))
    assert re.search(r"secret/s\s+Opaque\s+1", kubectl("get", "cm,secret", "-n", "team"))
    resources = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "deployments.apps", "csistoragecapacities.storage.k8s.io"} <= set(resources)
    assert "No resources found" in kubectl.run("get", "sts", "-A").stderr
    unknown = kubectl.run("get", "widgets")
    assert 'the server doesn\'t have a resource type "widgets"' in unknown.stderr
    assert "v1.34.1" in kubectl("version", "-o", "json")


def test_questions_about_the_server_itself(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    refused = kubectl.run("auth", "can-i", "delete", "tokenreviews.authentication.k8s.io")
    assert (refused.returncode, refused.stdout.strip()) == (1, "no - tokenreviews has no verb delete")
    assert re.search(r"deployments\.apps .*\[create delete", kubectl("auth", "can-i", "--list"))
    assert re.search(r"pods +po +v1 +true +Pod", kubectl("api-resources"))
    assert re.search(r"^NAME +CPU\(cores\)", kubectl("top", "nodes"), re.MULTILINE)
    assert "apps/v1" in kubectl("api-versions")
    assert "running at" in kubectl("cluster-info")


def test_kinds_are_explained(kubectl: Kubectl) -> None:
    assert re.search(r"tolerationSeconds\s*<integer>", kubectl("explain", "pod.spec.tolerations"))
    assert re.search(r"selector\s*<(LabelSelector|Object)>", kubectl("explain", "pdb.spec"))
    refused = kubectl.run("explain", "deployment.spec.replica")
    assert refused.returncode != 0
    assert 'field "replica" does not exist' in refused.stderr


def test_a_misspelt_field_is_refused_before_it_is_sent(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "-f", "-", text=DEPLOYMENT.replace("replicas: 3", "replica: 3"))
    assert refused.returncode != 0
    # Before 1.25 a kubectl checks by itself, and names the field's type in place of its path.
    told = r'unknown field "(spec\.replica"|replica" in io\.k8s\.api\.apps\.v1\.DeploymentSpec)'
    assert re.search(told, refused.stderr)
    assert kubectl.run("get", "deployment", "shop").returncode != 0


def test_an_apply_merges_lists_by_their_keys(kubectl: Kubectl) -> None:
    two = table(__file__, "an_apply_merges_lists_by_their_keys")
    kubectl("apply", "-f", "-", text=two)
    changed = (
        two.replace("      - {name: a, image: a:1}\n", "")
        .replace('{name: P, value: "1"}, ', "")
        .replace("emptyDir: {}", "configMap: {name: c}")
        .replace("{key: a, operator: Exists}, ", "")
    )
    kubectl("apply", "-f", "-", text=changed)
    found = json.loads(kubectl("get", "deployment", "two", "-o", "json"))["spec"]["template"]["spec"]
    assert [(item["name"], [one["name"] for one in item["env"]]) for item in found["containers"]] == [
        ("b", ["Q"])
    ]
    assert found["volumes"] == [{"name": "v", "configMap": {"name": "c", "defaultMode": 0o644}}]
    assert [item["key"] for item in found["tolerations"]] == ["b"]


def test_a_pod_without_containers_says_so(kubectl: Kubectl) -> None:
    kubectl("run", "solo", "--image=x")
    words = 'there are no containers in a playground: pod "solo" is simulated'
    eventually(lambda: "Running" in kubectl("get", "pod", "solo"))
    for command in (("logs", "solo"), ("exec", "solo", "--", "ls"), ("port-forward", "pod/solo", ":80")):
        refused = kubectl.run(*command)
        assert refused.returncode != 0
        assert words in refused.stderr, (command, refused.stderr)


def test_a_paused_cluster_tells_the_command_that_lets_it_run(kubectl: Kubectl, live_cluster: Cluster) -> None:
    set_clock(cluster=live_cluster, mode="paused")
    said = kubectl.run("create", "-f", "-", text=DEPLOYMENT)
    assert said.returncode == 0
    assert "Warning: cluster is paused: nothing is scheduled or terminated; let it run at 1x: " in said.stderr
    command = re.search(r"curl .*/clock", said.stderr)
    assert command
    done = subprocess.run(
        ["sh", "-c", f"{command[0]} --silent --fail"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mode"] == "realtime"
    eventually(running("shop", 3))


@pytest.mark.openssl
@pytest.mark.parametrize("program", programs(), ids=lambda program: Path(program).name)
def test_a_personal_token_opens_ones_own_cluster_and_no_other(
    program: str, transactional_db: None, wakes: list[object], settings: Any, tmp_path: Path
) -> None:
    # kubectl sends a token over HTTPS only.
    settings.EMBEDDED = False
    ada, eve = (User.objects.create_user(name) for name in ("ada", "eve"))
    cluster = create_cluster(name="hers", owner=ada)
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    with served(ssl_keyfile=str(key), ssl_certfile=str(certificate)) as site:
        kubectl = Kubectl(program, f"https://{site.place}/k8s/{cluster.public_id}", tmp_path)
        kubectl.arguments.append(f"--certificate-authority={certificate}")
        hers, theirs = (f"--token={create_token(user=user, name='t')[1]}" for user in (ada, eve))
        assert "created" in kubectl(hers, "create", "namespace", "team")
        assert kubectl(hers, "auth", "can-i", "delete", "pods").strip() == "yes"
        stranger = kubectl.run(theirs, "get", "namespaces")
        assert stranger.returncode != 0
        assert f'cluster "{cluster.public_id}" not found' in stranger.stderr
        stranger = kubectl.run("--token=ksp_nonsense", "get", "namespaces")
        assert stranger.returncode != 0
        assert "You must be logged in to the server" in stranger.stderr


@pytest.mark.nightly("playground/kube_api/")
@pytest.mark.timeout(400)  # some fifty calls of kubectl
@pytest.mark.parametrize("program", programs(), ids=lambda program: Path(program).name)
def test_every_kind_is_read_described_and_explained_on_the_demo_and_freshly_applied(
    program: str, asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path
) -> None:
    cluster = create_demo()
    for row in PriorityClass.objects.filter(cluster=cluster):
        # As the demo was stored before the default was.
        row.manifest.pop("preemptionPolicy", None)
        row.save()
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    kubectl("apply", "-f", str(EVERY_KIND))
    kubectl("apply", "-f", str(EVERY_KIND.with_name("custom_object.yaml")))
    assert re.search(r"^fresh +5$", kubectl("get", "gd", "-n", "fresh"), re.M)
    version = kubectl("version", "--client", "-o", "json")
    names = ",".join(kind.resource for kind in KINDS)
    printed = kubectl("get", names, "-A")
    listed = json.loads(kubectl("get", names, "-A", "-o", "json"))["items"]
    # One of each kind and phase the demo has, and whatever was applied: a kubectl asks five times a second at most
    # once it has asked ten times, so a few objects each.
    chosen: dict[tuple[str, ...], tuple[str, str]] = {}
    for item in listed:
        meta, fresh = item["metadata"], "fresh" in item["metadata"]["name"]
        source = "applied" if fresh else "demo"
        phase = "" if fresh else item.get("status", {}).get("phase", "")
        group = item["apiVersion"].rpartition("/")[0]
        kind = next(kind for kind in KINDS if (kind.group, kind.kind) == (group, item["kind"]))
        chosen.setdefault(
            (source, item["apiVersion"], item["kind"], phase),
            (meta.get("namespace", ""), f"{kind.resource}/{meta['name']}"),
        )
    for kind in KINDS:
        if kind.kind != "Event":
            assert re.search(rf"{kind.singular}{'.' + kind.group if kind.group else ''}/\S*fresh", printed), (
                kind.kind
            )
    described = ""
    for namespace in sorted({namespace for namespace, _ in chosen.values()}):
        named = [name for place, name in chosen.values() if place == namespace]
        for start in range(0, len(named), 4):
            described += kubectl("describe", "-n", namespace or "default", *named[start : start + 4])
    assert len(re.findall(r"^Name: ", described, re.M)) == len(chosen)
    assert ("demo", "scheduling.k8s.io/v1", "PriorityClass", "") in chosen
    # One of 1.20 does not print it yet.
    policies = re.findall(r"^PreemptionPolicy: +(.*)$", described, re.M)
    assert policies == ["PreemptLowerPriority"] * 2 or (not policies and "v1.20." in version)
    assert len(re.findall(r"^Name: +\S*fresh\S*$", described, re.M)) == len(KINDS) - 1
    for kind in KINDS[::4]:
        explained = kubectl("explain", kind.plural, f"--api-version={kind.api_version}")
        assert re.search(rf"KIND: +{kind.kind}$", explained, re.M), kind.kind


@pytest.mark.nightly("playground/kube_api/")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("program", programs(), ids=lambda program: Path(program).name)
def test_an_object_of_any_kind_that_is_applied_again_is_unchanged(
    program: str, asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path
) -> None:
    cluster = make_cluster()
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    applied = ("apply", "-f", str(EVERY_KIND))
    names = ",".join(kind.resource for kind in KINDS if kind.kind != "Event")

    def versions() -> dict[tuple[str, str], str]:
        listed = json.loads(kubectl("get", names, "-n", "fresh", "-o", "json"))["items"]
        return {
            (item["kind"], item["metadata"]["name"]): item["metadata"]["resourceVersion"] for item in listed
        }

    assert len(re.findall("created$", kubectl(*applied), re.M)) == len(KINDS) - 1
    before = versions()
    # A kubectl compares lists that are replaced as a whole, and finds the defaults in their items: it then sends a
    # patch and says so, with any API server. Nothing comes of it.
    whole = {
        "pod",
        "statefulset.apps",
        "resourceclaim.resource.k8s.io",
        "resourceclaimtemplate.resource.k8s.io",
        "endpoints",
        "endpointslice.discovery.k8s.io",
        # One of 1.20 knows a CronJob of v1beta1 alone, and takes that of v1 for what it does not know.
        *(["cronjob.batch"] if "1.20" in Path(program).name else ()),
    }
    again = dict(re.findall(r"^(\S+)/\S+ (\w+)$", kubectl(*applied), re.M))
    assert len(again) == len(KINDS) - 1
    assert {kind for kind, said in again.items() if said != "unchanged"} == whole
    assert versions() == before
