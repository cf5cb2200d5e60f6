"""When a pod rejected by InterPodAffinity is worth another try.

Namespaces are matched without their labels here: a term's namespaceSelector sees an empty set of labels.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, v1.34
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from scheduler_core.framework.cluster_event import (
    NODE,
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import AffinityTerm, Pod
from scheduler_core.releases import OLDEST, Release

_PENDING_POD = SKIP.because("the other pod is on no node")
_MATCHES_NOW = QUEUE.because("a pod on a node matches the pod's affinity now")
_OUT_OF_THE_WAY = QUEUE.because("a pod on a node no longer matches the pod's anti-affinity")
_NO_CHANGE = SKIP.because("the other pod's change matters to no affinity term")
_FRIEND = QUEUE.because("a pod that matches the pod's affinity came to a node")
_STRANGER = SKIP.because("the new pod does not match the pod's affinity")
_OWN_LABELS = QUEUE.because("the pod's own labels changed")
_AVOIDER_GONE = QUEUE.because("a pod whose anti-affinity matches the pod is gone")
_RIVAL_GONE = QUEUE.because("a pod that matches the pod's anti-affinity is gone")
_NO_RIVAL = SKIP.because("the deleted pod does not match the pod's anti-affinity")
_DOMAIN = QUEUE.because("the node is in a topology domain the pod's affinity looks at")
_OTHER_DOMAIN = QUEUE.because("the node changed its topology domain")
_NEW_DOMAIN = QUEUE.because("a new node may be free of what the pod's anti-affinity avoids")
_NO_DOMAIN = SKIP.because("nothing changed about the topology domains of the pod's terms")


def events_to_register(release: Release) -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(
            ClusterEvent(POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE),
            partial(after_pod_change, release=release),
        ),
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), after_node_change
        ),
    ]


def after_pod_change(
    pod: Pod, old: Pod | None, new: Pod | None, *, release: Release = OLDEST
) -> QueueingHint:
    looks_both_ways = release.has("AffinityHintsBothWays")
    nominated_counts = release.has("NominatedPodsCountInHints")
    if looks_both_ways and old is not None and new is not None and new.uid == pod.uid:
        return _OWN_LABELS
    for other in (old, new):
        if other is None or other.node_name or (nominated_counts and other.nominated_node_name):
            continue
        return _PENDING_POD
    terms, anti_terms = pod.required_affinity, pod.required_anti_affinity
    # Both lists are looked at first: a term that cannot be read is an error whatever the event.
    has_terms, has_anti_terms = bool(terms), bool(anti_terms)
    if old is not None and new is not None:
        if has_terms and not _matches_all(terms, old) and _matches_all(terms, new):
            return _MATCHES_NOW
        if has_anti_terms and _matches_all(anti_terms, old) and not _matches_all(anti_terms, new):
            return _OUT_OF_THE_WAY
        return _NO_CHANGE
    if new is not None:
        return _FRIEND if has_terms and _matches_all(terms, new) else _STRANGER
    assert old is not None
    if has_anti_terms and _matches_all(anti_terms, old):
        return _RIVAL_GONE
    avoids = looks_both_ways and old.required_anti_affinity
    return _AVOIDER_GONE if avoids and _matches_all(old.required_anti_affinity, pod) else _NO_RIVAL


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    for term in pod.required_affinity:
        key = term.topology_key
        if key in new.labels:
            if old is None or key not in old.labels:
                return _DOMAIN
            if old.labels[key] != new.labels[key]:
                return _OTHER_DOMAIN
    for term in pod.required_anti_affinity:
        key = term.topology_key
        if old is None:
            return _NEW_DOMAIN
        if key in old.labels and old.labels[key] != new.labels.get(key):
            return _OTHER_DOMAIN
    return _NO_DOMAIN


def _matches_all(terms: Sequence[AffinityTerm], other: Pod) -> bool:
    return all(
        (other.namespace in term.namespaces or term.namespace_selector.matches({}))
        and term.selector.matches(other.labels)
        for term in terms
    )
