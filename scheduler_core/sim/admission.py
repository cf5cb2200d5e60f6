"""What an API server does to a written object beside defaulting (`objects.defaults.prepare`) and validation.

PriorityClasses keep their rules, pods get the default tolerations.
What plays the API server (the scenario loader, an HTTP surface) calls these before a write reaches the simulation.

Source: plugin/pkg/admission/priority/admission.go, plugin/pkg/admission/defaulttolerationseconds/admission.go,
pkg/apis/scheduling/validation/validation.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES
from scheduler_core.objects.fields import Document, format_seconds, mapping, sequence
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
DEFAULT_TOLERATION_S = 300
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
POD_UPDATES = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` and `spec.schedulingGates` (only removals):"
    " delete the pod and create it again"
)
TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def system_priority_classes() -> list[dict[str, Any]]:
    """The two built-in classes as objects, as every cluster lists them."""
    descriptions = {
        "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary.",
        "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    }
    return [
        object_of(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            {"name": name},
            value=SYSTEM_PRIORITY_CLASSES[name],
            globalDefault=False,
            description=description,
            preemptionPolicy=PREEMPT_LOWER_PRIORITY,
        )
        for name, description in descriptions.items()
    ]


def with_default_tolerations(spec: Document) -> dict[str, Any]:
    """A pod spec that stays 300 s on a node that is not ready or unreachable, unless it says otherwise."""
    tolerations = [dict(item) for item in sequence(spec, "tolerations", "spec") if isinstance(item, Mapping)]
    said = [item.get("key") for item in tolerations if item.get("effect") in ("NoExecute", "", None)]
    missing = [key for key in TOLERATED_TAINTS if key not in said]
    if not missing or "" in said or None in said:
        return dict(spec)
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION_S}
        for key in missing
    ]
    return {**spec, "tolerations": [*tolerations, *added]}


def with_gated_condition(pod: Document, now_ns: int) -> dict[str, Any]:
    """A pod that is about to be created, with the condition that says that its gates hold it back, if it has any.

    Source: pkg/registry/core/pod/strategy.go applySchedulingGatedCondition, v1.34
    """
    if not sequence(mapping(pod, "spec", ""), "schedulingGates", "spec"):
        return dict(pod)
    status = mapping(pod, "status", "")
    conditions = sequence(status, "conditions", "status")
    if any(item.get("type") == "PodScheduled" for item in conditions):
        return dict(pod)
    condition = {**GATED, "lastTransitionTime": format_seconds(now_ns)}
    return {**pod, "status": {**status, "conditions": [*conditions, condition]}}


# --- LimitRange: what containers, pods and claims of a namespace get if they say nothing, and may ask for at most.


ANNOTATION: Final = "kubernetes.io/limit-ranger"
Amounts = dict[str, Quantity]


def items_of(limit_ranges: Iterable[Document]) -> Iterator[Document]:
    """The limits of all LimitRanges of a namespace, with their defaults."""
    for limit_range in limit_ranges:
        for item in (limit_range.get("spec") or {}).get("limits") or ():
            yield _with_defaults(item)


def _with_defaults(item: Document) -> dict[str, Any]:
    """A container's default limit is its maximum, its default request the default limit, or the minimum."""
    result = dict(item)
    if item.get("type") == "Container":
        result["default"] = {**(item.get("max") or {}), **(item.get("default") or {})}
        result["defaultRequest"] = {
            **(item.get("min") or {}),
            **result["default"],
            **(item.get("defaultRequest") or {}),
        }
    return result


def with_limit_range_defaults(pod: Document, limit_ranges: Iterable[Document]) -> dict[str, Any]:
    """The pod with requests and limits where its containers name none; an annotation says which came so."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in items_of(limit_ranges):
        if item.get("type") == "Container":
            # The first LimitRange that has one counts.
            requests = {**item["defaultRequest"], **requests}
            limits = {**item["default"], **limits}
    spec = dict(pod.get("spec") or {})
    if not requests and not limits:
        return dict(pod)
    said: list[str] = []
    for key, word in (("containers", "container"), ("initContainers", "init container")):
        if spec.get(key):
            spec[key] = [_completed(item, requests, limits, word, said) for item in spec[key]]
    if not said:
        return dict(pod)
    meta = dict(pod.get("metadata") or {})
    words = f"LimitRanger plugin set: {'; '.join(said)}"
    meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: words}
    return {**pod, "metadata": meta, "spec": spec}


def _completed(
    container: Document, requests: Mapping[str, Any], limits: Mapping[str, Any], word: str, said: list[str]
) -> dict[str, Any]:
    resources = dict(container.get("resources") or {})
    for key, given, what in (("requests", requests, "request"), ("limits", limits, "limit")):
        own = resources.get(key) or {}
        missing = sorted(name for name in given if name not in own)
        if key == "requests":
            # A limit alone is a request, too: that default comes first.
            stated = resources.get("limits") or {}
            own = {**{name: stated[name] for name in sorted(stated) if name not in own}, **own}
            missing = [name for name in missing if name not in own]
        if missing:
            said.append(f"{', '.join(missing)} {what} for {word} {container.get('name', '')}")
        if own or missing:
            resources[key] = {**own, **{name: given[name] for name in missing}}
    return {**container, "resources": resources} if resources else dict(container)


def check_limit_ranges(manifest: Document, limit_ranges: Iterable[Document]) -> None:
    """Refuse a pod or a claim that a LimitRange of its namespace does not allow.

    Raises
    ------
    ForbiddenObject
        With every complaint, as upstream words them.
    """
    complaints: list[str] = []
    spec = manifest.get("spec") or {}
    for item in items_of(limit_ranges):
        type_ = str(item.get("type") or "")
        if manifest.get("kind") == "PersistentVolumeClaim" and type_ == "PersistentVolumeClaim":
            amounts = _amounts((spec.get("resources") or {}).get("requests"))
            for name, bound in _bounds(item, "min"):
                complaints += _minimum(type_, name, bound, amounts, {})
            for name, bound in _bounds(item, "max"):
                complaints += _maximum(type_, name, bound, amounts, {}, of_requests=True)
        if manifest.get("kind") != "Pod":
            continue
        if type_ == "Container":
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                resources = container.get("resources") or {}
                requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
                complaints += _complaints(item, requests, limits)
        elif type_ == "Pod":
            complaints += _complaints(item, total_of(spec, "requests"), total_of(spec, "limits"))
    if complaints:
        unique = list(dict.fromkeys(complaints))
        raise ForbiddenObject("spec", None, unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def total_of(spec: Document, key: str) -> Amounts:
    """Requests or limits of a pod as the sum of its containers', at least what one init container needs."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        for name, amount in _amounts((container.get("resources") or {}).get(key)).items():
            total[name] = total[name].add(amount) if name in total else amount
    for container in spec.get("initContainers") or ():
        for name, amount in _amounts((container.get("resources") or {}).get(key)).items():
            if container.get("restartPolicy") == "Always":
                total[name] = total[name].add(amount) if name in total else amount
            elif name not in total or amount.cmp(total[name]) > 0:
                total[name] = amount
    return total


def _complaints(item: Document, requests: Amounts, limits: Amounts) -> list[str]:
    type_ = str(item.get("type"))
    found: list[str] = []
    for name, bound in _bounds(item, "min"):
        found += _minimum(type_, name, bound, requests, limits)
    for name, bound in _bounds(item, "max"):
        found += _maximum(type_, name, bound, requests, limits)
    for name, bound in _bounds(item, "maxLimitRequestRatio"):
        found += _ratio(type_, name, bound, requests, limits)
    return found


def _minimum(type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    words = f"minimum {name} usage per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return [f"{words}.  No request is specified"]
    if request.cmp(bound) < 0:
        return [f"{words}, but request is {request}"]
    if limit is not None and limit.cmp(bound) < 0:
        return [f"{words}, but limit is {limit}"]
    return []


def _maximum(
    type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts, *, of_requests: bool = False
) -> list[str]:
    words = f"maximum {name} usage per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if of_requests:
        if request is None:
            return [f"{words}.  No request is specified"]
    elif limit is None:
        return [f"{words}.  No limit is specified"]
    elif limit.cmp(bound) > 0:
        return [f"{words}, but limit is {limit}"]
    if request is not None and request.cmp(bound) > 0:
        return [f"{words}, but request is {request}"]
    return []


def _ratio(type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    words = f"{name} max limit to request ratio per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None or request.is_zero():
        return [f"{words}, but no request is specified or request is 0"]
    if limit is None or limit.is_zero():
        return [f"{words}, but no limit is specified or limit is 0"]
    ratio = limit.milli_value() / request.milli_value()
    if ratio > bound.milli_value() / 1000:
        return [f"{words}, but provided ratio is {ratio:f}"]
    return []


def _bounds(item: Document, key: str) -> list[tuple[str, Quantity]]:
    return sorted(_amounts(item.get(key)).items())


def _amounts(named: Any) -> Amounts:
    return {str(name): quantity_from(amount) for name, amount in (named or {}).items()}


# --- ResourceQuota: what all objects of a namespace may ask for together.


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


# --- LimitRanges and ResourceQuotas at work on what controllers make; what people write is admitted before.


Manifest = Mapping[str, Any]
LIMITING = ("LimitRange", "ResourceQuota")


class RefusedObject(ForbiddenObject):
    """A namespace's limits do not allow an object.

    Attributes
    ----------
    name : str
        What it would have been called.
    """

    def __init__(self, error: ForbiddenObject, name: str) -> None:
        super().__init__(error.path, error.value, error.reason)
        self.name = name


class NamespaceLimits:
    """What holds in each namespace, counted as objects come and go; all of it follows from the objects there are.

    Parameters
    ----------
    all_of : callable
        Manifests of a kind.
    everything : callable
        Manifests of all kinds.
    """

    def __init__(
        self, all_of: Callable[[str], Iterable[Manifest]], everything: Callable[[], Iterable[Manifest]]
    ) -> None:
        self._all_of = all_of
        self._everything = everything
        self._namespaces: set[str] | None = None
        self._quotas: dict[str, list[tuple[Manifest, Amounts]]] = {}

    def changed(self, kind: str, old: Manifest | None, new: Manifest | None) -> None:
        """An object came, changed or went."""
        if kind in LIMITING:
            self._namespaces = None
            self._quotas.clear()
            return
        if not self._quotas:
            return
        for manifest, is_new in ((old, False), (new, True)):
            if manifest is None:
                continue
            for quota, used in self._quotas.get(_namespace(manifest), ()):
                if not matches(quota, manifest):
                    continue
                for name, amount in _usage(manifest).items():
                    if name in used:
                        used[name] = used[name].add(amount) if is_new else used[name].sub(amount)

    def limit(self, namespace: str) -> bool:
        """Whether anything is limited there."""
        if self._namespaces is None:
            self._namespaces = {_namespace(item) for kind in LIMITING for item in self._all_of(kind)}
        return namespace in self._namespaces

    def completes(self, namespace: str) -> bool:
        """Whether pods made there get more than their template says."""
        return self.limit(namespace) and bool(self._of("LimitRange", namespace))

    def admitted(self, manifest: Manifest) -> dict[str, Any]:
        """An object that is about to be made, prepared, with the defaults of its namespace.

        Raises
        ------
        RefusedObject
            In an API server's words.
        """
        namespace, result = _namespace(manifest), dict(manifest)
        if not self.limit(namespace):
            return result
        try:
            ranges = self._of("LimitRange", namespace)
            if ranges and result.get("kind") == "Pod":
                result = with_limit_range_defaults(result, ranges)
            check_limit_ranges(result, ranges)
            usage = _usage(result)
            for quota, used in self._used(namespace):
                if matches(quota, result):
                    check_quota(quota, used, result, usage)
        except ForbiddenObject as error:
            raise RefusedObject(error, str(manifest["metadata"]["name"])) from None
        except QuantityError:
            # A limit that cannot be read limits nothing.
            return result
        return result

    def _used(self, namespace: str) -> list[tuple[Manifest, Amounts]]:
        if namespace not in self._quotas:
            charged = [(item, _usage(item)) for item in self._everything() if _namespace(item) == namespace]
            self._quotas[namespace] = [
                (quota, used_of(quota, charged)) for quota in self._of("ResourceQuota", namespace)
            ]
        return self._quotas[namespace]

    def _of(self, kind: str, namespace: str) -> list[Manifest]:
        found = [item for item in self._all_of(kind) if _namespace(item) == namespace]
        return sorted(found, key=lambda item: str(item["metadata"]["name"]))


def _usage(manifest: Manifest) -> Amounts:
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return usage_of(manifest, f"{str(manifest.get('kind', '')).lower()}s", group)


def _namespace(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or "")
