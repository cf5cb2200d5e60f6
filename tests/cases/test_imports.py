"""Imports: a rebuilt owner loses and ends no pod that came with a dump, and the preview says what comes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import LogEntry, Manifest, Pod
from playground.clusters.objects.apply import ApplyResult, apply_documents
from playground.engine.dumps import decide_pending, facts_of_dump
from playground.engine.rebuilt_owners import rebuilt_owners
from tests.manifests import deployment, node
from tests.rare_cycles import run_until

DATA = Path(__file__).parent / "data"
pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

Object = dict[str, Any]


def imported(**what: Any) -> tuple[ApplyResult, ApplyResult]:
    """Import a dump as the page does, and let it run; all that the preview says is what is there.

    Returns
    -------
    tuple
        What the preview and what Create say.
    """
    preview = apply_documents(cluster=None, dry_run=True, rebuild_owners=True, **what)
    facts = facts_of_dump(preview.manifests)
    said = {
        (m["metadata"]["namespace"], m["metadata"]["name"]) for m in preview.manifests if m["kind"] == "Pod"
    }
    decided = decide_pending(preview.manifests, release="1.36", n_pending=facts["pending"])
    assert not decided["problem"] and not decided["evicted"]
    cluster = create_cluster(name="prod", seed=7)
    made = apply_documents(cluster=cluster, rebuild_owners=True, **what)
    assert (made.rebuilt, made.missing_owners) == (preview.rebuilt, preview.missing_owners)
    rows = Pod.objects.filter(cluster=cluster)
    before = {(pod.namespace, pod.name): pod for pod in rows}
    assert set(before) == said
    finished = [pod for pod in before.values() if pod.phase in ("Succeeded", "Failed")]
    placed = [pod for pod in before.values() if pod.node_name and pod not in finished]
    assert (facts["placed"], facts["finished"]) == (len(placed), len(finished))
    assert facts["pending"] == len(before) - len(placed) - len(finished)
    run_until(cluster, "idle")
    after = {(pod.namespace, pod.name): pod for pod in rows.all()}
    assert {key: pod.uid for key, pod in after.items()} == {key: pod.uid for key, pod in before.items()}
    assert not LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.DELETE).exists()
    bound = {f"{space}/{name}" for (space, name), pod in after.items() if pod.node_name}
    already = {f"{space}/{name}" for (space, name), pod in before.items() if pod.node_name}
    assert {pod for pod, outcome in decided["pods"].items() if outcome["node"]} == bound - already
    return preview, made


@pytest.mark.parametrize("file", ["import-loses-a-pending-pod.yaml", "import-kills-a-running-pod.yaml"])
def test_an_import_loses_and_kills_no_pod(file: str) -> None:
    preview, _ = imported(text=(DATA / file).read_text())
    assert preview.rebuilt == {} and preview.missing_owners == {"ReplicaSet": 1}


def pod(name: str, labels: dict[str, str], owner: tuple[str, str] | None = None, **more: Any) -> Object:
    """A pod; `node`, `phase`, `cpu` and `pinned` say the rest."""
    spec: Object = {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": more.get("cpu", "1m")}}}]
    }
    if more.get("node"):
        spec["nodeName"] = more["node"]
    if more.get("pinned"):
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [more["pinned"]]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {"nodeAffinity": required}
    meta: Object = {"name": name, "namespace": "default", "labels": labels, "uid": f"pod-{name}"}
    if owner:
        kind, of = owner
        version = "batch/v1" if kind == "Job" else "apps/v1"
        reference = {"apiVersion": version, "kind": kind, "name": of, "uid": f"{kind}-{of}"}
        meta["ownerReferences"] = [reference | {"controller": True}]
    if owner and owner[0] == "Job":
        spec["restartPolicy"] = "Never"
    phase = more.get("phase") or ("Running" if more.get("node") else "Pending")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


LABELS = st.fixed_dictionaries(
    {"app": st.sampled_from(["a", "b"])},
    optional={
        "tier": st.sampled_from(["x", "y"]),
        "pod-template-hash": st.just("6d8f"),
        "debug": st.just("1"),
    },
)
PLACES = st.tuples(st.sampled_from(["", "", "n0", "n1"]), st.sampled_from(["1m", "1m", "9"]))
PHASES = st.sampled_from(["", "", "", "Succeeded", "Failed"])


@st.composite
def dumps(draw: st.DrawFn) -> list[Object]:
    """A few nodes, pods of owners that are missing, pods without an owner, and labels that they share."""
    taint = {"key": "own", "effect": draw(st.sampled_from(["NoSchedule", "NoExecute"]))}
    found = [
        node(f"n{number}", taints=[taint] if number == 2 and draw(st.booleans()) else [])
        for number in range(3)
    ]
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]))
        name, labels = f"w{number}-6d8f", draw(LABELS)
        owner = (kind, name)
        places = [f"n{place}" for place in sorted(draw(st.sets(st.integers(0, 2), min_size=1)))]
        n_pods = len(places) if kind == "DaemonSet" else draw(st.integers(1, 3))
        gap, lone = draw(st.integers(0, 3)), draw(st.booleans())
        for place in range(n_pods):
            own = labels | draw(st.sampled_from([{}, {}, {"debug": "1"}]))
            where, cpu = draw(PLACES)
            pinned = ""
            if kind == "DaemonSet":
                pinned = places[place] if lone else places[0]
                where = pinned if draw(st.booleans()) else ""
            number_of_it = place + (place >= gap) if kind == "StatefulSet" else place
            phase = draw(PHASES) if where else ""
            found.append(
                pod(f"{name}-{number_of_it}", own, owner, node=where, cpu=cpu if not where else "1m",
                    pinned=pinned, phase=phase)
            )  # fmt: skip
        if kind == "ReplicaSet" and draw(st.booleans()):
            mine = [item for item in found if item["metadata"]["name"].startswith(f"{name}-")]
            active = [item for item in mine if item["status"]["phase"] in ("Running", "Pending")]
            template = {"metadata": {"labels": {k: v for k, v in labels.items() if k != "pod-template-hash"}},
                        "spec": {"containers": [{"name": "c", "image": "x"}]}}  # fmt: skip
            if all(item["metadata"]["labels"].items() >= labels.items() for item in mine):
                wanted = draw(st.sampled_from([len(active), min(1, len(active))]))
                spec = {"replicas": wanted, "template": template,
                        "selector": {"matchLabels": template["metadata"]["labels"]}}  # fmt: skip
                meta = {"name": f"w{number}", "namespace": "default", "uid": f"d{number}"}
                found.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    for number in range(draw(st.integers(0, 3))):
        where, cpu = draw(PLACES)
        found.append(pod(f"lonely-{number}", draw(LABELS), node=where, cpu=cpu if not where else "1m"))
    return found


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(dump=dumps())
def test_random_dumps_lose_nothing_end_nothing_and_are_what_the_preview_says(dump: list[Object]) -> None:
    pods = [item for item in dump if item["kind"] == "Pod"]
    nodes = [item for item in dump if item["kind"] == "Node"]
    uids = {one["uid"] for item in pods for one in item["metadata"].get("ownerReferences", ())}
    made = rebuilt_owners(pods, frozenset(uids), nodes=nodes)
    for owner in made:
        selector = owner["spec"]["selector"]
        absent = {one["key"] for one in selector.get("matchExpressions", ())}
        taken = [
            item
            for item in pods
            if selector["matchLabels"].items() <= item["metadata"]["labels"].items()
            and not absent & item["metadata"]["labels"].keys()
        ]
        theirs = [
            item
            for item in pods
            if any(
                one["uid"] == owner["metadata"]["uid"] for one in item["metadata"].get("ownerReferences", ())
            )
        ]
        assert taken == theirs
    imported(objects=dump)


def test_an_owner_whose_labels_others_have_too_is_told_apart_by_a_label_that_only_they_have() -> None:
    mine = [pod(f"db-{number}", {"app": "a"}, ("StatefulSet", "db"), node="n0") for number in range(2)]
    other = pod("web-1", {"app": "a", "pod-template-hash": "1"}, ("ReplicaSet", "web-1"), node="n0")
    preview, _ = imported(objects=[node("n0"), *mine, other])
    assert preview.rebuilt == {"StatefulSet": 1, "ReplicaSet": 1} and preview.missing_owners == {}


def test_a_daemon_set_that_is_not_everywhere_stays_where_it_is() -> None:
    agents = [pod(f"gpu-{n}", {"app": "gpu"}, ("DaemonSet", "gpu"), node=n, pinned=n) for n in ("n0", "n2")]
    preview, _ = imported(objects=[*(node(f"n{number}") for number in range(4)), *agents])
    assert preview.rebuilt == {"DaemonSet": 1}


def test_a_replica_set_wants_no_pod_for_one_that_was_evicted() -> None:
    of = ("ReplicaSet", "web-1")
    phases = ("", "Failed", "Failed")
    pods = [pod(f"web-1-{n}", {"app": "a"}, of, node="n0", phase=phase) for n, phase in enumerate(phases)]
    imported(objects=[node("n0"), *pods])


def test_a_deployment_takes_over_the_replica_set_that_is_rebuilt() -> None:
    labels = {"app": "web"}
    pods = [
        pod(f"web-1-{n}", labels | {"pod-template-hash": "1"}, ("ReplicaSet", "web-1"), node="n0")
        for n in "ab"
    ]
    owner = deployment("web", 2, cpu="1m")
    owner["metadata"]["uid"] = "d"
    preview, _ = imported(objects=[node("n0"), *pods, owner])
    assert preview.rebuilt == {"ReplicaSet": 1}
    [row] = Manifest.objects.filter(kind="ReplicaSet")
    assert row.manifest["metadata"]["ownerReferences"][0]["uid"] == "d"


def test_an_owner_that_an_api_server_refuses_is_not_guessed() -> None:
    mine = [pod(f"once-{n}", {"job-name": "once"}, ("Job", "once")) for n in "ab"]
    for one in mine:
        one["spec"]["restartPolicy"] = "Always"
    preview, _ = imported(objects=[node("n0"), *mine])
    assert preview.rebuilt == {} and preview.missing_owners == {"Job": 2}


def test_a_deployment_whose_replica_set_is_refuted_is_paused_and_makes_no_pod() -> None:
    labels = {"app": "web", "pod-template-hash": "1"}
    pods = [pod("web-1-a", labels, ("ReplicaSet", "web-1"), node="n0"), pod("stranger", labels, node="n0")]
    preview, made = imported(objects=[node("n0"), *pods, deployment("web", 1)])
    assert preview.rebuilt == {} and preview.missing_owners == {"ReplicaSet": 1}
    assert [
        said.startswith("Deployment web is paused: the ReplicaSet of its pods") for said in made.warnings
    ] == [True]
