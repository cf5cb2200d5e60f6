"""ResourceQuota: what all objects of a namespace may ask for together.

Source: pkg/quota/v1/evaluator/core, apiserver/pkg/admission/plugin/resourcequota/controller.go, v1.34
Differs: an update is charged for nothing; services are counted whole, without their ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.fields import Document
from scheduler_core.objects.quantity import Quantity, quantity_from
from scheduler_core.sim.limit_ranges import Amounts, total_of

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = {
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ReplicationController": "replicationcontrollers",
    "ResourceQuota": "resourcequotas",
    "Secret": "secrets",
    "Service": "services",
}
_MUST: Final = (
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
)  # fmt: skip
"""What each container has to name where a quota holds it."""


def usage_of(manifest: Document, resource: str, group: str) -> Amounts:
    """What an object is charged for, by the names quotas have for it; nothing for a pod that has ended.

    Parameters
    ----------
    resource, group
        Of its kind: `deployments`, `apps`.
    """
    one = quantity_from(1)
    kind = manifest.get("kind")
    spec = manifest.get("spec") or {}
    count = f"count/{resource}.{group}" if group else f"count/{resource}"
    if kind == "Pod":
        if (manifest.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return {count: one}
        used = {count: one, "pods": one}
        for name, amount in total_of(spec, "requests").items():
            used[f"requests.{name}"] = amount
            if name in _PLAIN or name.startswith("hugepages-"):
                used[name] = amount
        for name, amount in total_of(spec, "limits").items():
            if name in _PLAIN:
                used[f"limits.{name}"] = amount
        return used
    used = {count: one}
    if kind in _COUNTED and not group:
        used[_COUNTED[str(kind)]] = one
    if kind == "Service" and spec.get("type") in ("LoadBalancer", "NodePort"):
        if spec["type"] == "LoadBalancer":
            used["services.loadbalancers"] = one
        used["services.nodeports"] = quantity_from(len(spec.get("ports") or ()) or 1)
    if kind == "PersistentVolumeClaim":
        stored = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        if stored is not None:
            used["requests.storage"] = quantity_from(stored)
        storage_class = spec.get("storageClassName")
        if storage_class:
            prefix = f"{storage_class}.storageclass.storage.k8s.io/"
            used[f"{prefix}persistentvolumeclaims"] = one
            if stored is not None:
                used[f"{prefix}requests.storage"] = quantity_from(stored)
    return used


def matches(quota: Document, manifest: Document) -> bool:
    """Whether a quota's scopes take in an object; only pods have scopes."""
    spec = quota.get("spec") or {}
    wanted = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not wanted:
        return True
    return manifest.get("kind") == "Pod" and all(_in_scope(item, manifest) for item in wanted)


def _in_scope(item: Mapping[str, Any], pod: Document) -> bool:
    spec = pod.get("spec") or {}
    match item.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            name, values = str(spec.get("priorityClassName") or ""), item.get("values") or ()
            return {
                "Exists": bool(name),
                "DoesNotExist": not name,
                "In": name in values,
                "NotIn": name not in values,
            }.get(str(item.get("operator")), False)
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec)
    return False


def _is_best_effort(spec: Document) -> bool:
    for key in ("requests", "limits"):
        if any(
            name in ("cpu", "memory") and not amount.is_zero() for name, amount in total_of(spec, key).items()
        ):
            return False
    return True


def _crosses_namespaces(spec: Document) -> bool:
    affinity = spec.get("affinity") or {}
    for key in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(key) or {}
        found = list(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        found += [item.get("podAffinityTerm") or {} for item in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in found):
            return True
    return False


def hard_of(quota: Document) -> Amounts:
    """What a quota allows."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {str(name): quantity_from(amount) for name, amount in hard.items()}


def used_of(quota: Document, charged: Iterable[tuple[Document, Amounts]]) -> Amounts:
    """What is used of a quota, zeros included.

    Parameters
    ----------
    charged : iterable of (manifest, usage)
        Every object of the namespace with its `usage_of`.
    """
    used = {name: quantity_from(0) for name in hard_of(quota)}
    for manifest, usage in charged:
        if not usage.keys() & used.keys() or not matches(quota, manifest):
            continue
        for name, amount in usage.items():
            if name in used:
                used[name] = used[name].add(amount)
    return used


def check_quota(quota: Document, used: Amounts, manifest: Document, usage: Amounts) -> None:
    """Refuse an object for which a quota has no room, or that does not say what the quota counts.

    Raises
    ------
    ForbiddenObject
        In upstream's words.
    """
    name = str((quota.get("metadata") or {}).get("name", ""))
    hard = hard_of(quota)
    if manifest.get("kind") == "Pod":
        _check_named(name, hard, manifest)
    wanted = {key: usage[key] for key in hard if key in usage}
    over = [key for key, amount in wanted.items() if used[key].add(amount).cmp(hard[key]) > 0]
    if over:
        told = [_listed({key: amounts[key] for key in over}) for amounts in (wanted, used, hard)]
        raise ForbiddenObject(
            "spec", None, f"exceeded quota: {name}, requested: {told[0]}, used: {told[1]}, limited: {told[2]}"
        )


def _check_named(name: str, hard: Amounts, pod: Document) -> None:
    spec = pod.get("spec") or {}
    missing = []
    for key in sorted(set(hard) & set(_MUST)):
        what, _, resource = key.rpartition(".")
        which = "limits" if what == "limits" else "requests"
        lacking = [
            str(container.get("name", ""))
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
            if resource not in ((container.get("resources") or {}).get(which) or {})
        ]
        if lacking:
            missing.append(f"{key} for: {','.join(sorted(lacking))}")
    if missing:
        raise ForbiddenObject("spec", None, f"failed quota: {name}: must specify {'; '.join(missing)}")


def _listed(amounts: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))


def status_of(quota: Document, used: Amounts) -> dict[str, Any]:
    """The status a quota has with so much in use."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {
        "hard": {str(name): str(amount) for name, amount in hard_of(quota).items()} if hard else {},
        "used": {name: str(amount) for name, amount in used.items()},
    }
