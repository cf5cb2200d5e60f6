"""NodeDeclaredFeatures: pods that need a feature of the kubelet go to nodes that declare it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework import interface as fw
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.fields import boolean, mapping, mappings, string
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(fw.PreFilterPlugin[frozenset[str]], fw.FilterPlugin[frozenset[str] | None]):
    """Rejects rows whose `status.declaredFeatures` lack what the pod needs.

    The features of a node are interned as a whole list, so each distinct list is looked at once a pod.

    Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go,
    staging/src/k8s.io/component-helpers/nodedeclaredfeatures, v1.36

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> from scheduler_core.releases import release_named
    >>> declares = {"status": {"declaredFeatures": ["UserNamespacesHostNetworkSupport"]}}
    >>> pod = {"hostNetwork": True, "hostUsers": False}
    >>> verdicts(NodeDeclaredFeatures, pod, release=release_named("1.36"), n1={}, n2=declares)
    {'n1': "node(s) didn't match Pod's required features", 'n2': 'passes'}
    """

    name: ClassVar[str] = "NodeDeclaredFeatures"
    sentences: ClassVar[Sequence[str]] = ("node(s) didn't match Pod's required features",)
    default_weight: ClassVar[int | None] = 0
    feature_gate: ClassVar[str | None] = "NodeDeclaredFeatures"
    filter_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    filter_without_state: ClassVar[bool] = False

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Node", "Add|UpdateNodeDeclaredFeature", after_node_change),
            on("Pod", "Update", after_pod_update),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return features_needed(pod)

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[frozenset[str]]:
        if not self.handle.release.gate("NodeDeclaredFeatures"):
            return fw.SKIP_FILTER
        needed = features_needed(pod)
        return fw.PreFilterResult(state=needed) if needed else fw.SKIP_FILTER

    def filter(self, state: frozenset[str] | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        assert state is not None
        lists = nodes.vocabulary.feature_lists
        lacks = np.array([not state.issubset(lists[index]) for index in range(len(lists))], bool)
        return Verdicts.where(lacks[nodes.feature_list_id[rows]], Code.UnschedulableAndUnresolvable)


def features_needed(pod: Pod) -> frozenset[str]:
    """Names of the features that scheduling infers from a pod's spec.

    Source: component-helpers/nodedeclaredfeatures/features, v1.36
    """
    spec = mapping(pod.manifest, "spec", "")
    needed = set()
    if any(
        string(rule, "action", rule_path) == "RestartAllContainers"
        for kind in ("containers", "initContainers")
        for path, container in mappings(spec, kind, "spec")
        for rule_path, rule in mappings(container, "restartPolicyRules", path)
    ):
        needed.add(RESTART_ALL_CONTAINERS)
    if boolean(spec, "hostNetwork", "spec") and not boolean(spec, "hostUsers", "spec", default=True):
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


# ---- hints: when a pod that the plugin rejected is worth another try

_NEW_FEATURES = QUEUE.because("the node declares other features")
_SAME_FEATURES = SKIP.because("the node declares the same features as before")
_OTHER_POD = SKIP.because("another pod changed")
_NEEDS_OTHERS = QUEUE.because("the pod needs other features now")
_SAME_NEEDS = SKIP.because("the pod needs the same features as before")


def after_pod_update(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    if pod.uid != new.uid:
        return _OTHER_POD
    return _SAME_NEEDS if features_needed(old) == features_needed(new) else _NEEDS_OTHERS


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    if old is not None and old.declared_features == new.declared_features:
        return _SAME_FEATURES
    return _NEW_FEATURES
