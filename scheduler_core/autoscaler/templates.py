"""What a fresh node of a group looks like, by its nodes or by its own template, and the pods that come with it.

Source: cluster-autoscaler/simulator/node_info_utils.go, processors/nodeinfosprovider/mixed_nodeinfos_processor.go,
utils/taints/taints.go, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.autoscaler.cluster_state import Flags
from scheduler_core.autoscaler.snapshot import GroupTemplate
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.node import (
    LABEL_HOSTNAME,
    LABEL_INSTANCE_TYPE,
    LABEL_REGION,
    LABEL_REGION_BETA,
    LABEL_ZONE,
    LABEL_ZONE_BETA,
    Node,
    node_from,
)
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import resource_list, whole_units

Document = Mapping[str, Any]
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
_STARTUP: Final = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
)
_STATUS: Final = "status-taint.cluster-autoscaler.kubernetes.io/"
_REPORTED: Final = frozenset({
    TO_BE_DELETED,
    DELETION_CANDIDATE,
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination",
    "NodeWithImpairedVolumes",
})  # fmt: skip
_TEMPLATE: Final = "cluster-autoscaler.kubernetes.io/template-node"
_DAEMON: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
GPU: Final = "nvidia.com/gpu"
GPU_LABEL: Final = "TestGPULabel/accelerator"
_OLD_LABELS: Final = (
    (LABEL_INSTANCE_TYPE, "beta.kubernetes.io/instance-type"),
    (LABEL_REGION, LABEL_REGION_BETA),
    (LABEL_ZONE, LABEL_ZONE_BETA),
)
CRITICAL: Final = "system-node-critical"


def prepared(document: Document) -> Document:
    """An object as the autoscaler's lists have it: with namespace and uid, a node with hostname and allocatable."""
    metadata = dict(document.get("metadata") or {})
    kind, name = document["kind"], metadata.get("name", "")
    changed = {**document, "metadata": metadata}
    if kind == "Node":
        labels = {**(metadata.get("labels") or {})}
        labels.setdefault(LABEL_HOSTNAME, name)
        metadata["labels"] = labels
        metadata.setdefault("uid", f"Node:{name}")
        status = dict(document.get("status") or {})
        status.setdefault("allocatable", status.get("capacity") or {})
        changed["status"] = status
    else:
        namespace = metadata.setdefault("namespace", "default")
        metadata.setdefault("uid", f"{kind}:{namespace}/{name}")
    return changed


def lasting_taints(document: Document) -> list[Document]:
    """A node's taints but those that tell of its condition."""
    return [
        taint for taint in (document.get("spec") or {}).get("taints") or () if taint["key"] not in _REPORTED
    ]


def amounts_of(node: Node, key: str = "capacity") -> dict[str, int]:
    """A node's capacity, or what is allocatable of it, in whole units."""
    return whole_units(resource_list(node.manifest.get("status") or {}, key, "status"))


def has_gpu(node: Node) -> bool:
    """By its label, or by what it offers."""
    return GPU_LABEL in node.labels or node.allocatable.get(GPU, 0) > 0


def is_daemon(pod: Pod) -> bool:
    """Whether it is of a DaemonSet, or is to be taken as if it were."""
    return pod.is_of_daemon_set or pod.annotations.get(_DAEMON) == "true"


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Whether its priority is so low that nothing is done for it."""
    written = pod.manifest["spec"].get("priority")
    return written is not None and written < cutoff


def is_startup_taint(key: str, flags: Flags) -> bool:
    """Whether a node with the taint has not started yet."""
    return key in flags("startup-taint") or key in flags("ignore-taint") or key.startswith(_STARTUP)


def template_of(
    node: Node,
    pods: Iterable[Pod],
    daemon_sets: Sequence[Document],
    flags: Flags,
    *,
    forced: bool,
) -> GroupTemplate:
    """A fresh node like another one.

    Parameters
    ----------
    forced : bool
        DaemonSets that have no pod there count all, else only those of critical pods.
    """
    manifest = dict(node.manifest)
    spec = dict(manifest.get("spec") or {})
    spec["taints"] = [
        taint
        for taint in lasting_taints(manifest)
        if not (
            is_startup_taint(taint["key"], flags)
            or taint["key"] in flags("status-taint")
            or taint["key"].startswith(_STATUS)
        )
    ]
    if flags("scale-from-unschedulable"):
        spec.pop("unschedulable", None)
    labels = {**node.labels, _TEMPLATE: "true"}
    manifest |= {"spec": spec, "metadata": {**manifest["metadata"], "labels": labels}}
    kept = [pod for pod in pods if not pod.is_terminating and (pod.is_mirror or is_daemon(pod))]
    running = {_daemon_uid(pod) for pod in kept}
    template = GroupTemplate(node_from(manifest), tuple(kept))
    for daemon_set in daemon_sets:
        if daemon_set["metadata"].get("uid") in running:
            continue
        pod = daemon_pod(daemon_set)
        if (forced or _is_critical(pod)) and runs_on(pod, template.node):
            template.pods += (pod,)
    return template


def own_template(template: GroupTemplate) -> GroupTemplate:
    """A group's own template has its labels by their old names, too."""
    labels = dict(template.node.labels)
    labels |= {old: labels[new] for new, old in _OLD_LABELS if new in labels}
    manifest = dict(template.node.manifest)
    manifest["metadata"] = {**manifest["metadata"], "labels": labels}
    return GroupTemplate(node_from(manifest), template.pods)


def fresh_node(template: GroupTemplate, suffix: str) -> GroupTemplate:
    """A copy of a template under another name, its pods too."""
    name = f"{template.node.name}-{suffix}"
    manifest = dict(template.node.manifest)
    labels = {**template.node.labels, LABEL_HOSTNAME: name}
    manifest["metadata"] = {**manifest["metadata"], "name": name, "uid": f"fresh:{name}", "labels": labels}
    pods = []
    for pod in template.pods:
        metadata = {
            **pod.manifest["metadata"], "name": f"{pod.name}-{suffix}", "uid": f"fresh:{name}:{pod.uid}",
        }  # fmt: skip
        spec = {**pod.manifest["spec"], "nodeName": name}
        pods.append(pod_from({**pod.manifest, "metadata": metadata, "spec": spec}))
    return GroupTemplate(node_from(manifest), tuple(pods))


def renamed(template: GroupTemplate, name: str) -> GroupTemplate:
    """A template under a name."""
    manifest = dict(template.node.manifest)
    manifest["metadata"] = {**manifest["metadata"], "name": name}
    return GroupTemplate(node_from(manifest), template.pods)


def runs_on(pod: Pod, node: Node) -> bool:
    try:
        matches = pod.required_node_affinity.match(node.labels, node.name)
    except SelectorError:
        return False
    refusing = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return matches and all(pod.tolerates(taint) for taint in refusing)


def _daemon_uid(pod: Pod) -> str:
    controller = pod.meta.controller
    return controller.uid if controller is not None and pod.is_of_daemon_set else ""


def _is_critical(pod: Pod) -> bool:
    spec = pod.manifest["spec"]
    preempts = spec.get("preemptionPolicy") in (None, "PreemptLowerPriority")
    return spec.get("priorityClassName") == CRITICAL and preempts


def daemon_pod(daemon_set: Document) -> Pod:
    """A pod of a DaemonSet; it tolerates what the DaemonSet controller has it tolerate."""
    metadata, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    owner = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": metadata["name"],
        "uid": metadata.get("uid", ""), "controller": True,
    }  # fmt: skip
    spec = dict(template.get("spec") or {})
    keys = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *({"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in keys),
    ]
    own = template.get("metadata") or {}
    return pod_from(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name']}-pod",
                "namespace": metadata.get("namespace", "default"),
                "uid": f"daemon:{metadata.get('uid', metadata['name'])}",
                "labels": own.get("labels") or {},
                "annotations": own.get("annotations") or {},
                "ownerReferences": [owner],
            },
            "spec": spec,
            "status": {},
        }
    )
