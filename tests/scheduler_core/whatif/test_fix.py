"""Every single fix that helps is found, and none that does not: against trying them all, one by one."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core.fork import Fork
from scheduler_core.objects.reading import from_objects
from scheduler_core.whatif.fix_search import Search, SearchLimits
from scheduler_core.whatif.fixes import Fix
from tests.manifests import make_object
from tests.scheduler_core.whatif.random_clusters import (
    ALL,
    CLASSES,
    GPU,
    SPREAD,
    Cluster,
    Manifest,
    draw_cluster,
    node,
    pod,
)

# ---- all single edits, one by one


def brute_force(cluster: Cluster) -> set[tuple[Any, ...]]:
    return {
        *_pod_edits(cluster), *_requests(cluster), *_spread(cluster), *_priorities(cluster),
        *_nodes(cluster), *_departures(cluster),
    }  # fmt: skip


def _pod_edits(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    spec = cluster.pending["spec"]
    taints = {
        (taint["key"], taint.get("value", ""), taint["effect"])
        for item in cluster.nodes
        for taint in item["spec"].get("taints", ())
        if taint["effect"] != "PreferNoSchedule"
    }
    if any(item["spec"].get("unschedulable") for item in cluster.nodes):
        taints.add(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    for key, value, effect in taints:
        changed = cluster.edited()
        changed.pending["spec"].setdefault("tolerations", []).append(
            {"key": key, "value": value, "effect": effect, "operator": "Equal"}
        )
        if changed.places:
            yield "tolerate", key, value, effect
    for key in spec.get("nodeSelector", ()):
        changed = cluster.edited()
        del changed.pending["spec"]["nodeSelector"][key]
        if changed.places:
            yield "drop-selector", key
    affinity = spec.get("affinity", {})
    required = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required:
        for index, term in enumerate(required["nodeSelectorTerms"]):
            expressions = term["matchExpressions"]
            for place in range(len(expressions)) if len(expressions) > 1 else ():
                changed = cluster.edited()
                terms = changed.pending["spec"]["affinity"]["nodeAffinity"][
                    "requiredDuringSchedulingIgnoredDuringExecution"
                ]["nodeSelectorTerms"]
                del terms[index]["matchExpressions"][place]
                if changed.places:
                    yield "drop-requirement", index, place
        changed = cluster.edited()
        del changed.pending["spec"]["affinity"]["nodeAffinity"]
        if changed.places:
            yield ("drop-node-affinity",)
    for key, kind in (("podAffinity", "drop-affinity-term"), ("podAntiAffinity", "drop-anti-affinity-term")):
        for index in range(
            len(affinity.get(key, {}).get("requiredDuringSchedulingIgnoredDuringExecution", ()))
        ):
            changed = cluster.edited()
            del changed.pending["spec"]["affinity"][key]["requiredDuringSchedulingIgnoredDuringExecution"][
                index
            ]
            if changed.places:
                yield kind, index
    for index in range(len(spec["containers"][0]["ports"])):
        changed = cluster.edited()
        del changed.pending["spec"]["containers"][0]["ports"][index]
        if changed.places:
            yield "drop-host-port", index


def _requests(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    """Amounts on these clusters are whole tenths of a cpu, mebibytes and devices."""
    requests = cluster.pending["spec"]["containers"][0]["resources"]["requests"]
    steps = {
        "cpu": [f"{100 * tenth}m" for tenth in range(40, -1, -1)],
        "memory": [f"{512 * step}Mi" for step in range(20, -1, -1)],
        GPU: [str(count) for count in range(5, -1, -1)],
    }
    for resource, values in steps.items():
        if resource not in requests or requests[resource] == "0":
            continue
        for value in values[values.index(requests[resource]) + 1 :]:
            changed = cluster.edited()
            changed.pending["spec"]["containers"][0]["resources"]["requests"][resource] = value
            if changed.places:
                yield "lower-request", resource, value
                break


def _spread(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    for index, item in enumerate(cluster.pending["spec"].get("topologySpreadConstraints", ())):
        if item["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        for max_skew in range(item["maxSkew"] + 1, len(cluster.pods) + item["maxSkew"] + 2):
            changed = cluster.edited()
            changed.pending["spec"]["topologySpreadConstraints"][index]["maxSkew"] = max_skew
            if changed.places:
                yield "relax-spread", index, max_skew
                break
        else:
            changed = cluster.edited()
            del changed.pending["spec"]["topologySpreadConstraints"][index]
            if changed.places:
                yield "drop-spread", index


def _priorities(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    for item in CLASSES:
        if item.value <= cluster.pending_pod().priority:
            continue
        changed = cluster.edited()
        changed.pending["spec"]["priorityClassName"] = item.name
        if changed.outcome() in ("bound", "preempting"):
            yield "raise-priority", item.name


def _nodes(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    for index, item in enumerate(cluster.nodes):
        changed = cluster.edited()
        spec = changed.nodes[index]["spec"]
        if spec.pop("unschedulable", False) and changed.places:
            yield "uncordon", item["metadata"]["name"]
        changed = cluster.edited()
        extra = copy.deepcopy(item)
        extra["metadata"]["name"] = extra["metadata"]["labels"]["kubernetes.io/hostname"] = "extra"
        extra["spec"].pop("unschedulable", None)
        changed.nodes.append(extra)
        # Nodes with devices are for pods that ask for them.
        asks = GPU in cluster.pending["spec"]["containers"][0]["resources"]["requests"]
        if (asks or GPU not in item["status"]["allocatable"]) and changed.places:
            yield ("add-node",)


def _departures(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    alone: set[str] = set()
    for index, item in enumerate(cluster.pods):
        changed = cluster.edited()
        del changed.pods[index]
        if changed.places:
            alone.add(item["metadata"]["name"])
            yield "delete-pod", item["metadata"]["name"]
    for each in cluster.nodes:
        name = each["metadata"]["name"]
        there = [item for item in cluster.pods if item["spec"]["nodeName"] == name]
        if len(there) < 2 or any(item["metadata"]["name"] in alone for item in there):
            continue
        changed = cluster.edited()
        changed.pods = [item for item in changed.pods if item["spec"]["nodeName"] != name]
        if name in changed.feasible():
            yield "free-room", name


def told(fixes: list[Fix]) -> set[tuple[Any, ...]]:
    """What was found, in the words of `brute_force`."""
    result: set[tuple[Any, ...]] = set()
    for fix in fixes:
        write = next(iter(fix.change.get("write", ())), {})
        spec = write.get("spec", {})
        match fix.what:
            case "tolerate":
                last = spec["tolerations"][-1]
                result.add((fix.what, last["key"], last.get("value", ""), last["effect"]))
            case "drop-selector":
                result.add((fix.what, fix.removed[0].split(":")[0]))
            case "lower-request":
                resource = fix.removed[0].split(":")[0]
                result.add((fix.what, resource, _request(spec, resource)))
            case "raise-priority":
                result.add((fix.what, spec["priorityClassName"]))
            case "uncordon":
                result.add((fix.what, write["metadata"]["name"]))
            case "delete-pod":
                result.add((fix.what, fix.change["delete"][0].split("/")[1]))
            case "free-room":
                result.add((fix.what, fix.title.rsplit(" on ", 1)[1]))
            case "add-node" | "label-node" | "pair" | "honor-policy" | "provide-resource":
                continue
            case _:
                result.add(_by_place(fix.what, spec))
    return result


def _request(spec: Manifest, resource: str) -> str:
    text = str(spec["containers"][0]["resources"]["requests"][resource])
    if resource == "cpu" and not text.endswith("m"):
        return f"{int(text) * 1000}m"
    if resource == "memory":
        units = {"Gi": 1024, "Mi": 1, "Ki": 1 / 1024}
        return f"{int(text[:-2]) * units[text[-2:]]}Mi" if text[-2:] in units else f"{int(text) >> 20}Mi"
    return text


def _by_place(kind: str, spec: Manifest) -> tuple[Any, ...]:
    """Edits that are told by the place they changed: found by what is left."""
    return (kind, json.dumps(spec, sort_keys=True))


_BY_PLACE = {
    "drop-requirement", "drop-node-affinity", "drop-affinity-term", "drop-anti-affinity-term", "drop-host-port",
    "relax-spread", "drop-spread",
}  # fmt: skip


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_the_edits_found_are_all_that_brute_force_finds(seed: int) -> None:
    cluster = draw_cluster(Random(seed))
    if cluster.places:
        assert cluster.fixes() == []
        return
    expected = brute_force(cluster)
    fixes = cluster.fixes()
    found = told(fixes)
    # One kind of new node is enough, be it of a kind that is not there yet.
    assert ("add-node",) not in expected or any(fix.what == "add-node" for fix in fixes)
    expected -= {("add-node",)}
    assert {item for item in found if item[0] not in _BY_PLACE} == {
        item for item in expected if item[0] not in _BY_PLACE
    }
    # Those told by place are compared by number and kind; each of them is proven again below.
    assert sorted(item[0] for item in found if item[0] in _BY_PLACE) == sorted(
        item[0] for item in expected if item[0] in _BY_PLACE
    )
    skews = {item[2] for item in expected if item[0] == "relax-spread"}
    assert skews == {
        fix.change["write"][0]["spec"]["topologySpreadConstraints"][0]["maxSkew"]
        for fix in fixes
        if fix.what == "relax-spread"
    }


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_what_is_told_holds_when_it_is_done(seed: int) -> None:
    cluster = draw_cluster(Random(seed))
    for limits in (ALL, SearchLimits(per_kind=2, exhaustive_pods=0, elsewhere=0)):
        fixes = cluster.fixes(limits)
        ranks = [fix.rank for fix in fixes]
        assert ranks == sorted(ranks)
        for fix in fixes:
            changed = done(cluster, fix.change)
            wanted = ("bound", "preempting") if fix.what == "raise-priority" else ("bound",)
            assert changed.outcome() in wanted, fix.title


def done(cluster: Cluster, change: Any) -> Cluster:
    """The cluster with an edit's change made."""
    changed = cluster.edited()
    if "delete" in change:
        gone = {key.split("/")[1] for key in change["delete"]}
        changed.pods = [item for item in changed.pods if item["metadata"]["name"] not in gone]
    moves = dict(change.get("move", ()))
    for item in changed.pods:
        item["spec"]["nodeName"] = moves.get(f"default/{item['metadata']['name']}", item["spec"]["nodeName"])
    for manifest in copy.deepcopy(list(change.get("write", ()))):
        if manifest["kind"] == "Pod":
            changed.pending = manifest
        else:
            name = manifest["metadata"]["name"]
            changed.nodes = [item for item in changed.nodes if item["metadata"]["name"] != name]
            changed.nodes.append(manifest)
    return changed


def test_nothing_of_the_real_cluster_changes() -> None:
    cluster = draw_cluster(Random(11))
    simulation = cluster.simulation()
    before = json.dumps(simulation.checkpoint(), default=str)
    Search(Fork(simulation.scheduler), (cluster.pending_pod(),), priority_classes=CLASSES).run()
    assert json.dumps(simulation.checkpoint(), default=str) == before


def test_a_set_of_pods_that_must_go_has_none_that_could_stay() -> None:
    small = [pod(f"p{index}", on="n0", requests={"cpu": "500m"}) for index in range(4)]
    cluster = Cluster([node("n0")], small, pod("pending", requests={"cpu": "900m"}, priority=0))
    sets = [fix for fix in cluster.fixes() if fix.what == "free-room"]
    assert [fix.change["delete"] for fix in sets] == [["default/p2", "default/p3"]]
    assert (sets[0].kind, sets[0].harm) == ("harms", "2 pods lost")


def test_max_skew_is_relaxed_no_further_than_needed() -> None:
    nodes = [node("n0", labels={"zone": "a"}), node("n1", cpu="1", labels={"zone": "b"})]
    pods = [pod(f"p{index}", on="n0", labels={"app": "x"}) for index in range(2)]
    spec = {"requests": {"cpu": "1500m"}, "topologySpreadConstraints": [SPREAD]}
    fixes = Cluster(nodes, pods, pod("pending", labels={"app": "x"}, priority=0, **spec)).fixes()
    relaxed = [(fix.title, fix.lands) for fix in fixes if fix.what == "relax-spread"]
    assert relaxed == [("Relax maxSkew over zone from 1 to 3", {"default/pending": "n0"})]


def test_a_pod_that_waits_at_permit_is_rejected_not_deleted() -> None:
    cluster = Cluster([node("n0")], [], pod("pending", requests={"cpu": "1500m"}, priority=0))
    scheduler = cluster.simulation().scheduler
    waiting = Cluster([], [], pod("gang-0", requests={"cpu": "1"}, priority=0)).pending_pod()
    scheduler.pods[waiting.uid] = waiting
    scheduler.cache.assume(waiting, "n0")
    scheduler.waiting_pods.add(waiting, "n0", {"Gang": 10**9}, 0)
    fixes = Search(Fork(scheduler), (cluster.pending_pod(),), limits=ALL).run()
    found = [fix for fix in fixes if fix.what in ("reject", "delete-pod")]
    assert [(fix.title, fix.harm) for fix in found] == [
        ("Reject gang-0 at Permit", "1 pod back to the queue")
    ]
    assert found[0].change == {"reject": ["default/gang-0"]}
    assert scheduler.waiting_pods.get(waiting.uid) is not None
    assert scheduler.cache.is_assumed(waiting.uid)


def found(cluster: Cluster, kind: str) -> list[Any]:
    return [fix for fix in cluster.fixes(SearchLimits()) if fix.what == kind]


def test_a_node_may_be_labelled_as_the_pod_wants_it_and_nodes_alike_are_told_once() -> None:
    nodes = [node("n0", labels={"disk": "hdd"}), node("n1", labels={"disk": "hdd"}), node("n2", cpu="1")]
    wants = pod("pending", requests={"cpu": "1500m"}, nodeSelector={"disk": "ssd"})
    cluster = Cluster(nodes, [], wants)
    [fix] = found(cluster, "label-node")
    assert (fix.title, fix.lands, fix.headline) == ("Label n0 disk=ssd", {"default/pending": "n0"}, False)
    assert fix.note == "1 other node like it would do, too; Pods that look for what it was no longer find it"
    assert done(cluster, fix.change).outcome() == "bound"
    # What a label says of hardware or place is not to be put on a node that is there; a new one may stand there.
    wants["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "moon"}
    elsewhere = Cluster(nodes, [], wants)
    assert not found(elsewhere, "label-node")
    [fix] = found(elsewhere, "add-node")
    assert fix.title.endswith("in zone moon")
    assert done(elsewhere, fix.change).outcome() == "bound"


def test_where_no_node_is_large_enough_a_larger_one_is_told_and_tried() -> None:
    cluster = Cluster([node("n0", cpu="2"), node("n1", cpu="2")], [], pod("pending", requests={"cpu": "7"}))
    [fix] = found(cluster, "add-node")
    assert (fix.title, fix.price) == ("Add 1 × c6i.2xlarge", "$0.39 an hour")
    assert done(cluster, fix.change).outcome() == "bound"


def test_two_edits_are_told_where_no_single_one_leaves_others_in_peace() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    wants = pod("pending", requests={"cpu": "500m"}, nodeSelector={"topology.kubernetes.io/zone": "b"})
    cluster = Cluster(
        [node("n0", labels={"topology.kubernetes.io/zone": "a"}, spec={"taints": [taint]})], [], wants
    )
    [fix] = found(cluster, "pair")
    first, second = fix.title.split(", and ")
    assert first.startswith("Tolerate the taint") and second.startswith("drop the node selector")
    assert not fix.headline and done(cluster, fix.change).outcome() == "bound"
    assert [item.what for item in cluster.fixes(SearchLimits())] == ["add-node", "pair"]


def test_pods_that_make_room_are_followed_to_where_they_land_and_who_brings_them_back() -> None:
    pods = [
        pod("kept", on="n0", requests={"cpu": "1500m"}),
        pod("owned", on="n1", requests={"cpu": "1500m"}, owned=True),
    ]
    nodes = [node("n0", cpu="2"), node("n1", cpu="2"), node("small", cpu="1600m", labels={"no": "pending"})]
    pods.append(pod("filler", on="small", requests={"cpu": "100m"}))
    cluster = Cluster(nodes, pods, pod("pending", requests={"cpu": "1900m"}, priority=0))
    ends = {fix.title: [one.document() for one in fix.displaced] for fix in found(cluster, "delete-pod")}
    [lost] = ends["Delete kept on n0"]
    assert (lost["owner"], lost["node"]) == ("", None) and "no owner" in lost["message"]
    [back] = ends["Delete owned on n1"]
    assert back["owner"].startswith("ReplicaSet") and back["ownerIsThere"] is False
    assert back["node"] == "small"


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_what_harms_others_comes_last_and_is_no_headline(seed: int) -> None:
    fixes = draw_cluster(Random(seed)).fixes(SearchLimits())
    takes_away = [bool(fix.lost) for fix in fixes]
    assert takes_away == sorted(takes_away)
    assert not [fix.title for fix in fixes if fix.kind == "harms" and fix.headline]


@pytest.mark.parametrize(("used", "is_shown"), [("700m", True), ("1200m", False)])
def test_a_request_is_not_lowered_below_what_pods_like_it_used(used: str, is_shown: bool) -> None:
    cluster = Cluster(
        [node("n0")],
        [pod("p0", on="n0", requests={"cpu": "1"}, owned=True)],
        pod("pending", requests={"cpu": "1100m"}, owned=True),
    )
    usage = [{"name": "c", "usage": {"cpu": used, "memory": "20Mi"}}]
    head = ("metrics.k8s.io/v1beta1", "PodMetrics", "p0")
    metrics = make_object(*head, namespace="default", containers=usage)
    cluster.pods = [item.manifest for item in from_objects([*cluster.pods, metrics])[:-1]]
    lowered = [fix for fix in cluster.fixes() if fix.what == "lower-request" and "CPU" in fix.title]
    assert [fix.note.endswith("pods like it use 700m at most") for fix in lowered] == [True] * is_shown


@pytest.mark.parametrize(("asked", "is_headline"), [("2500m", True), ("2600m", False)])
def test_a_lower_request_is_a_headline_while_at_most_a_fifth_of_it_goes(
    asked: str, is_headline: bool
) -> None:
    cluster = Cluster([node("n0", cpu="2")], [], pod("pending", requests={"cpu": asked}))
    [fix] = found(cluster, "lower-request")
    assert fix.headline is is_headline and done(cluster, fix.change).outcome() == "bound"


def test_all_who_are_evicted_for_pods_alike_are_told() -> None:
    low = [pod(f"low-{at}", on=at, requests={"cpu": "1"}, priority=10) for at in ("n0", "n1")]
    pending = pod("pending", requests={"cpu": "1500m"}, priority=0)
    cluster = Cluster([node("n0"), node("n1")], low, pending)
    others = (
        cluster.pending_pod(),
        Cluster(
            [], [], {**pending, "metadata": {**pending["metadata"], "name": "other", "uid": "o"}}
        ).pending_pod(),
    )
    fixes = Search(Fork(cluster.simulation().scheduler), others, priority_classes=CLASSES, limits=ALL).run()
    raised = next(fix for fix in fixes if fix.title == "Raise to the priority class high")
    assert (raised.placed, {one.pod for one in raised.displaced}) == (2, {"default/low-n0", "default/low-n1"})


def test_a_lower_request_that_leaves_room_for_one_says_whom_the_others_evict() -> None:
    low = [pod("low", on="n1", requests={"cpu": "1"}, priority=10)]
    pending = pod("pending", requests={"cpu": "3"}, priority=100)
    cluster = Cluster([node("n0"), node("n1")], low, pending)
    other = {**pending, "metadata": {**pending["metadata"], "name": "other", "uid": "o"}}
    pods = (cluster.pending_pod(), Cluster([], [], other).pending_pod())
    fixes = Search(Fork(cluster.simulation().scheduler), pods, limits=ALL).run()
    lowered = [fix for fix in fixes if fix.what == "lower-request"]
    assert [(fix.placed, [one.pod for one in fix.displaced]) for fix in lowered] == [(2, ["default/low"])]


def test_fewer_devices_are_requested_and_limited() -> None:
    spec = pod("pending", requests={GPU: "3"}, priority=0)
    spec["spec"]["containers"][0]["resources"]["limits"] = {GPU: "3"}
    fixes = Cluster([node("n0", extended={GPU: "1"})], [], spec).fixes()
    [written] = [fix.change["write"][0] for fix in fixes if fix.what == "lower-request"]
    assert written["spec"]["containers"][0]["resources"] == {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
