"""Examples for the OpenAPI document; a test sends every request among them."""

from __future__ import annotations

from typing import Any, Final

CLOCK: Final = {
    "mode": "paused",
    "rate": 1.0,
    "now": "2026-01-02T00:00:10Z",
    "startedAt": "2026-01-02T00:00:00Z",
    "nextDeadline": {"at": "2026-01-02T00:05:00Z", "what": "flush of unschedulable pods"},
    "note": None,
    "offered": False,
}
RELEASE: Final = {
    "name": "1.36",
    "emulates": "v1.36.2",
    "default": True,
    "agreedDecisions": 3512,
    "gates": [{"name": "OpportunisticBatching", "stage": "Beta", "default": True, "locked": False}],
    "changes": [{"name": "ImageVolumesScored", "sentence": "ImageLocality counts the images of volumes."}],
}
CLUSTER_RELEASE: Final = {
    "kubernetesRelease": "1.36",
    "featureGates": {"OpportunisticBatching": False},
    "emulates": "v1.36.2",
}
CLUSTER: Final = {
    "id": "k7m2qw9xtr",
    "name": "demo",
    "createdAt": "2026-01-02T00:00:00Z",
    "url": "/api/v1/clusters/k7m2qw9xtr/",
    "page": "/c/k7m2qw9xtr/",
    "kubernetes": "/k8s/k7m2qw9xtr",
    "resourceVersion": "42",
    "seed": 7,
    "kubernetesRelease": "1.36",
    "featureGates": {},
    "nodes": 12,
    "pods": 40,
    "bound": 38,
    "pending": 2,
    "cycles": 40,
    "running": False,
    "parked": None,
    "clock": CLOCK,
}
MANIFESTS: Final = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1}
spec:
  containers:
  - name: web
    image: web:1
    resources: {requests: {cpu: 500m, memory: 256Mi}}
"""
POD_JSON: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-2"},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}
NODE_JSON: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-2", "labels": {"topology.kubernetes.io/zone": "b"}},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
CLASS_JSON: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "business-critical"},
    "value": 100000,
    "preemptionPolicy": "PreemptLowerPriority",
}
BUDGET_JSON: Final[dict[str, Any]] = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "payments", "namespace": "default"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "payments"}}},
}


def stored_object(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it comes back."""
    meta = manifest["metadata"] | {
        "uid": "5f2c8a64-9d0b-4f6e-8a52-0d5b9c3e1a77",
        "resourceVersion": "43",
        "creationTimestamp": "2026-01-02T00:00:10Z",
    }
    return manifest | {"metadata": meta}


APPLIED: Final = {
    "created": [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
        {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-1"},
    ],
    "configured": [],
    "unchanged": [],
    "ignored": [],
    "warnings": [],
}
RUN: Final[dict[str, Any]] = {
    "id": "p3v8ncyt4w",
    "url": "/api/v1/clusters/k7m2qw9xtr/runs/p3v8ncyt4w/",
    "until": "idle",
    "maxCycles": 100000,
    "state": "queued",
    "cancelRequested": False,
    "progress": None,
    "cyclesDone": 0,
    "podsBound": 0,
    "pendingAtStart": None,
    "pendingNow": None,
    "clock": None,
    "stop": None,
    "message": None,
    "createdAt": "2026-01-02T00:00:00Z",
    "startedAt": None,
    "finishedAt": None,
}
CYCLE: Final = {
    "cycle": 1,
    "url": "/api/v1/clusters/k7m2qw9xtr/cycles/1/",
    "at": "2026-01-02T00:00:00Z",
    "pod": "default/web-1",
    "uid": "3f0c4f0e-6a5b-4a43-9d5e-2f3c1a7b9e10",
    "profile": "default-scheduler",
    "attempt": 1,
    "outcome": "bound",
    "node": "node-1",
    "sentence": "default/web-1 bound to node-1: the only feasible node of 1.",
    "message": None,
    "nodes": 1,
    "nFeasible": 1,
    "nViable": 1,
    "repeats": 0,
    "digest": "9d1c",
    "engine": "1.0.0",
}
QUEUE_ITEM: Final = {
    "pod": "default/web-2",
    "position": 1,
    "priority": 0,
    "priorityClass": None,
    "attempts": 1,
    "secondsLeft": None,
    "reason": "0/1 nodes are available: 1 Insufficient cpu.",
    "node": None,
    "plugin": "NodeResourcesFit",
    "event": None,
    "read": True,
}
QUEUE: Final = {
    "active": [],
    "permit": [],
    "binding": [],
    "backoff": [],
    "unschedulable": [QUEUE_ITEM],
    "gated": [],
    "foreign": [],
}
POOL: Final = {
    "name": "gpu-{n:02}",
    "count": 2,
    "cpu": "16",
    "memory": "64Gi",
    "extended": {"nvidia.com/gpu": "4"},
    "taints": ["gpu=true:NoSchedule"],
    "zones": ["zone-a", "zone-b"],
}
CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "percentageOfNodesToScore": 50}],
}
OLD_CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
    "kind": "KubeSchedulerConfiguration",
    "metricsBindAddress": "10.0.0.1:10251",
}
CONVERTED_CONFIG: Final = {
    "config": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
    "changes": [
        {
            "field": "apiVersion",
            "value": "kubescheduler.config.k8s.io/v1beta3",
            "detail": "was removed in Kubernetes 1.29: it is kubescheduler.config.k8s.io/v1 now",
            "kept": True,
        },
        {
            "field": "metricsBindAddress",
            "value": "10.0.0.1:10251",
            "detail": "was removed in v1beta3: the flags --bind-address and --secure-port say it",
            "kept": False,
        },
    ],
    "problem": None,
}
MOCK_RULES: Final = {
    "name": "licences",
    "rules": [
        {"deny": {"labels": {"disk": "hdd"}, "reason": "no licence for this node"}},
        {"score": {"nodes": ["node-1"], "points": 10}},
        {"slow": {"by": "200ms"}},
    ],
}
MOCK_EXTENDER: Final = MOCK_RULES | {
    "id": "w4m9xk2trb",
    "url": "/api/v1/clusters/k7m2qw9xtr/mock-extenders/w4m9xk2trb/",
    "urlPrefix": "http://127.0.0.1:8000/mock-extenders/w4m9xk2trb",
    "calls": {"filter": 3, "prioritize": 3},
    "createdAt": "2026-01-02T00:00:00Z",
}
TOKEN: Final = {
    "id": 1,
    "name": "laptop",
    "hint": "ksp_aB3dE5",
    "scope": "read",
    "cluster": "fk5pq8t2ab",
    "createdAt": "2026-01-02T00:00:00Z",
    "expiresAt": "2026-04-02T00:00:00Z",
    "lastUsedAt": None,
}
VERSION: Final = {
    "emulates": "v1.36.2",
    "releases": ["1.34", "1.35", "1.36"],
    "engine": "1.0.0",
    "api": "v1",
    "sampling": {
        "default": "every node is evaluated",
        "profiles": "a profile's percentageOfNodesToScore is honoured",
    },
    "knownDifferences": [],
}

DECISION: Final = {
    "resourceVersion": "42",
    "kind": "bind",
    "at": "2026-01-02T00:00:00Z",
    "pod": "default/web-1",
    "schedulerName": "bin-packer",
    "author": "bin-packer/v0.9 (linux/amd64)",
    "node": "node-1",
    "victims": [],
    "verdict": "different",
    "ours": {
        "outcome": "bound",
        "node": "node-2",
        "victims": [],
        "points": 389,
        "ourPoints": 451,
        "nTied": 0,
        "nFeasible": 3,
        "plugin": "NodeResourcesFit",
        "score": 22,
        "ourScore": 84,
        "reasons": [],
    },
    "why": "389 points against 451. NodeResourcesFit says 22 of 100 there, 84 here.",
    "url": "/api/v1/clusters/w4n7kq2xzp/judge/42/bind/",
}
SCHEDULERS: Final = {
    "waiting": 0,
    "items": [
        {
            "schedulerName": "bin-packer",
            "profile": False,
            "here": True,
            "pods": 40,
            "bound": 38,
            "pending": 2,
            "decisions": 41,
            "lastDecision": "2026-01-01T00:12:30Z",
            "programs": ["bin-packer/v0.9"],
        }
    ],
    "programs": [
        {
            "author": "bin-packer/v0.9 (linux/amd64)",
            "schedulerNames": ["bin-packer"],
            "binds": 38,
            "preemptions": 1,
            "noNode": 2,
            "lastDecision": "2026-01-01T00:12:30Z",
        }
    ],
    "leases": [
        {
            "namespace": "kube-system",
            "name": "bin-packer",
            "holderIdentity": "host-1_5f0c",
            "renewTime": "2026-01-01T08:00:00.000000Z",
            "held": True,
        }
    ],
}
AGREEMENT: Final = {
    "agreement": 96.7,
    "decisions": 244,
    "counts": {"agree": 197, "tie": 39, "different": 5, "infeasible": 3, "unknown": 0},
    "left": 0,
    "authors": ["bin-packer/v0.9 (linux/amd64)"],
    "inCommon": [{"plugin": "NodeResourcesFit", "verdict": "different", "number": 4}],
    "items": [DECISION],
    "next": None,
}
