"""A manifest in the shape of Argo CD's high-availability one: 70 objects of 12 kinds, 2 MB of YAML most of it schemas.

Made from a seed, so that no manifest of others is kept here: the counts by kind, the depth and size of the schemas and
what stands in the pods follow the original, the words do not.
"""

from __future__ import annotations

import random
from typing import Any, Final

LABEL: Final = "app.kubernetes.io/part-of"
PARTS: Final = ("controller", "sets", "login", "notes", "cache-proxy", "files", "web")
N_OBJECTS: Final = 70
WORDS: Final = (  # noqa: SIM905 (a list of words reads better)
    "source target revision path chart values plugin sync retry backoff health ignore prune generator cluster list "
    "git matrix merge template project server namespace selector labels params ref repo token secret key filter"
).split()


def manifest(seed: int = 1) -> list[dict[str, Any]]:
    """The objects, as their document has them; namespaced ones name no namespace."""
    draw = random.Random(seed)
    crds = [_definition(draw, kind, 9000 * n) for n, kind in enumerate(("Application", "Project", "Set"), 1)]
    accounts = [_object("v1", "ServiceAccount", name) for name in (*PARTS, "cache")]
    roles = [_object(RBAC, "Role", name, rules=_rules(draw)) for name in PARTS]
    wide = [_object(RBAC, "ClusterRole", f"argo-{name}", rules=_rules(draw)) for name in PARTS[:3]]
    bindings = [_binding("RoleBinding", "Role", name, name) for name in PARTS]
    bindings += [_binding("ClusterRoleBinding", "ClusterRole", f"argo-{name}", name) for name in PARTS[:3]]
    maps = [_object("v1", "ConfigMap", name, data=_data(draw)) for name in (*PARTS, "hosts", "health")]
    secrets = [_object("v1", "Secret", name, type="Opaque") for name in ("login", "notes")]
    services = [_service(name) for name in (*PARTS, "cache-0", "cache-1", "cache-2", "metrics")]
    services.append(_service("cache", clusterIP="None"))
    deployments = [_workload("Deployment", name) for name in PARTS[1:]]
    sets = [_workload("StatefulSet", name) for name in ("controller", "cache")]
    policies = [_policy(name) for name in (*PARTS, "cache")]
    return [
        *crds, *accounts, *roles, *wide, *bindings, *maps, *secrets, *services, *deployments, *sets, *policies
    ]  # fmt: skip


RBAC: Final = "rbac.authorization.k8s.io/v1"


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    labels = {LABEL: "argo-sized", "app.kubernetes.io/name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}, **fields}


def _definition(draw: random.Random, kind: str, n_fields: int) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "description": " ".join(draw.choices(WORDS, k=12)),
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _grown(draw, n_fields // 10),
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": "argo.example", "scope": "Namespaced", "names": names, "versions": [version]}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.argo.example", spec=spec)


def _grown(draw: random.Random, n_fields: int) -> dict[str, Any]:
    """A schema of about so many fields, deep rather than broad."""
    if n_fields < 4:
        leaf: dict[str, Any] = {"type": draw.choice(("string", "integer", "boolean"))}
        if draw.random() < 0.2:
            return {"type": "array", "items": leaf}
        if draw.random() < 0.1:
            return {"type": "object", "additionalProperties": leaf}
        return leaf | ({"description": " ".join(draw.choices(WORDS, k=6))} if draw.random() < 0.3 else {})
    names = draw.sample(WORDS, k=min(len(WORDS), draw.randint(3, 9)))
    inner = {name: _grown(draw, (n_fields - len(names)) // len(names)) for name in names}
    grown = {"type": "object", "properties": inner}
    return {"type": "array", "items": grown} if draw.random() < 0.2 else grown


def _rules(draw: random.Random) -> list[dict[str, Any]]:
    groups = ("", "apps", "argo.example", "coordination.k8s.io")
    verbs = ["create", "get", "list", "watch", "update", "patch", "delete"]
    return [
        {"apiGroups": [draw.choice(groups)], "resources": draw.sample(WORDS, 3), "verbs": verbs}
        for _ in range(5)
    ]


def _binding(kind: str, of: str, name: str, account: str) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": "argo"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": name}
    return _object(RBAC, kind, name, roleRef=reference, subjects=subjects)


def _data(draw: random.Random) -> dict[str, str]:
    return {
        word: "\n".join(" ".join(draw.choices(WORDS, k=9)) for _ in range(12))
        for word in draw.sample(WORDS, 4)
    }


def _service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [
        {"name": "http", "port": 80, "targetPort": 8080},
        {"name": "metrics", "port": 8082, "protocol": "TCP"},
    ]
    return _object(
        "v1", "Service", name, spec={"selector": {"app.kubernetes.io/name": name}, "ports": ports} | spec
    )


def _workload(kind: str, name: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": name}
    anti = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    variable = {"configMapKeyRef": {"key": "source", "name": name, "optional": True}}
    container = {
        "name": "main",
        "image": f"argo.example/{name}:v3",
        "imagePullPolicy": "Always",
        "args": [f"/bin/{name}", "--metrics=8082"],
        "env": [{"name": word.upper(), "valueFrom": variable} for word in WORDS[:20]],
        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 8082, "name": "metrics"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8082}, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8082}, "initialDelaySeconds": 5},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"mountPath": "/config", "name": "config"}, {"mountPath": "/tmp", "name": "tmp"}],
    }
    spec: dict[str, Any] = {
        "replicas": 3 if name in ("cache", "cache-proxy") else 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": {"checksum/config": name}},
            "spec": {
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"podAffinityTerm": anti, "weight": 100}]}},
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "serviceAccountName": name,
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "initContainers": [{"name": "copy", "image": "argo.example/copy:v3", "command": ["cp"]}],
                "containers": [container],
                "volumes": [
                    {"name": "config", "configMap": {"name": name, "defaultMode": 493}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        },
    }  # fmt: skip
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return _object("apps/v1", kind, name, spec=spec)


def _policy(name: str) -> dict[str, Any]:
    sources = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": part}}} for part in PARTS[:3]]
    ingress = [{"from": sources, "ports": [{"port": 8080, "protocol": "TCP"}]}, {"ports": [{"port": 8082}]}]
    spec = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}, "policyTypes": ["Ingress"]}
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, spec=spec | {"ingress": ingress})
