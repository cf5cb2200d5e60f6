"""What an API server does to a manifest before a scheduler sees it: v1 defaulting and priority admission.

Every function returns a new document and leaves its argument alone; parts that need no default are shared.

Source: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go (matchLabelKeys),
plugin/pkg/admission/priority/admission.go, v1.34; its admitPodGroup, v1.36
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects import fields
from scheduler_core.objects.kinds import SHAPING
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from
from scheduler_core.objects.resources import CPU, MEMORY, aggregate, is_supported_pod_level_resource

NAMESPACED_KINDS = frozenset(
    (
        *(name for name, kind in SHAPING.items() if kind.namespaced),
        *("ConfigMap", "Event", "Lease", "Secret", "ServiceAccount"),
    )
)
"""Kinds that live in a namespace, among those a cluster here can hold."""

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
SYSTEM_CRITICAL_PRIORITY = (
    2_000_000_000  # upstream's scheduling.SystemCriticalPriority: from here on, the system's
)
SYSTEM_PRIORITY_CLASSES = {
    "system-node-critical": SYSTEM_CRITICAL_PRIORITY + 1000,
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
}
"""Classes that exist without an object."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A named priority."""

    name: str
    value: int
    global_default: bool
    preemption_policy: str


def priority_class_from(manifest: fields.Document) -> PriorityClass:
    """Parse a PriorityClass manifest."""
    return PriorityClass(
        name=fields.string(fields.mapping(manifest, "metadata", ""), "name", "metadata"),
        value=fields.integer(manifest, "value", ""),
        global_default=fields.boolean(manifest, "globalDefault", ""),
        preemption_policy=fields.string(manifest, "preemptionPolicy", "") or PREEMPT_LOWER_PRIORITY,
    )


class PriorityClasses:
    """The classes pods may name: those given, and the two built in.

    Parameters
    ----------
    classes : iterable of PriorityClass
        The objects of the cluster.
    """

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._by_name = {
            name: PriorityClass(name, value, False, PREEMPT_LOWER_PRIORITY)
            for name, value in SYSTEM_PRIORITY_CLASSES.items()
        }
        self._default: PriorityClass | None = None
        for item in classes:
            self._by_name[item.name] = item
            # Two global defaults: the lower value wins, as in admission's getDefaultPriority.
            if item.global_default and (self._default is None or item.value < self._default.value):
                self._default = item

    def named(self, name: str) -> PriorityClass | None:
        """The class of a name; None where there is none."""
        return self._by_name.get(name)

    def resolve(self, spec: fields.Document, *, is_group: bool = False) -> tuple[int, str, str]:
        """Priority, preemption policy and class name of the spec of a pod or PodGroup that is created.

        Raises
        ------
        ForbiddenObject
            `priorityClassName` names no class, or a priority or policy is written that is not the class's.
        """
        found, name = self._class_of(spec)
        value = found.value if found else 0
        policy = found.preemption_policy if found else PREEMPT_LOWER_PRIORITY
        computed = "priority admission controller computed {} from the given PriorityClass name"
        written = fields.optional_integer(spec, "priority", "spec")
        if written is not None and written != value:
            words = (
                f"priority set in the pod group ({written}) must match the priority computed ({value}) based on the"
                " priority class set in the spec"
                if is_group
                else f"the integer value of priority ({written}) must not be provided in pod spec; "
                + computed.format(value)
            )
            raise ForbiddenObject("spec.priority", written, words)
        written_policy = "" if is_group else fields.string(spec, "preemptionPolicy", "spec")
        if written_policy and written_policy != policy:
            raise ForbiddenObject(
                "spec.preemptionPolicy",
                written_policy,
                f"the string value of PreemptionPolicy ({written_policy}) must not be provided in pod spec; "
                + computed.format(policy),
            )
        return value, policy, name

    def _class_of(self, spec: fields.Document) -> tuple[PriorityClass | None, str]:
        name = fields.string(spec, "priorityClassName", "spec")
        if not name:
            return self._default, self._default.name if self._default else ""
        found = self.named(name)
        if found is None:
            raise ForbiddenObject(
                "spec.priorityClassName", name, f"no PriorityClass with name {name} was found"
            )
        return found, name


class StoredPriorities(PriorityClasses):
    """Defaults for objects an API server has stored already, and for recordings: written values are kept."""

    def resolve(self, spec: fields.Document, *, is_group: bool = False) -> tuple[int, str, str]:
        """As for one that is created, but that a priority without a class and any policy are kept.

        Raises
        ------
        ForbiddenObject
            `priorityClassName` names no class.
        """
        policy = fields.string(spec, "preemptionPolicy", "spec")
        if not fields.string(spec, "priorityClassName", "spec") and spec.get("priority") is not None:
            return fields.integer(spec, "priority", "spec"), policy or PREEMPT_LOWER_PRIORITY, ""
        found, name = self._class_of(spec)
        value = found.value if found else 0
        return value, policy or (found.preemption_policy if found else PREEMPT_LOWER_PRIORITY), name


class KeptPriority(PriorityClasses):
    """For a pod or PodGroup that is updated: what admission made of priority, policy and class stays.

    Parameters
    ----------
    spec : mapping
        The stored object's. A value that is written all the same is left for the comparison of the two to refuse.
    """

    def __init__(self, spec: fields.Document) -> None:
        super().__init__()
        self._spec = spec

    def resolve(self, spec: fields.Document, *, is_group: bool = False) -> tuple[int, str, str]:
        """What is written, else what is stored: leaving out what the default class gave is no change."""
        written = fields.optional_integer(spec, "priority", "spec")
        value = fields.integer(self._spec, "priority", "spec") if written is None else written
        policy, name = (
            fields.string(spec, key, "spec") or fields.string(self._spec, key, "spec")
            for key in ("preemptionPolicy", "priorityClassName")
        )
        return value, policy or PREEMPT_LOWER_PRIORITY, name


def prepare(manifest: fields.Document, priority_classes: PriorityClasses | None = None) -> dict[str, Any]:
    """Default an object as the API server would, its kind decides how.

    Parameters
    ----------
    manifest : mapping
        With `kind`; `metadata.namespace` and `metadata.uid` are filled in when absent.
    priority_classes : PriorityClasses, optional
        Needed for pods and PodGroups; absent means the two built-in classes only.
    """
    result = dict(manifest)
    kind = fields.string(manifest, "kind", "")
    meta = dict(fields.mapping(manifest, "metadata", ""))
    if kind in NAMESPACED_KINDS:
        if not meta.get("namespace"):
            meta["namespace"] = "default"
        default_uid = f"{meta['namespace']}/{meta.get('name', '')}"
    else:
        default_uid = str(meta.get("name", ""))
    if not meta.get("uid"):
        meta["uid"] = default_uid
    result["metadata"] = meta
    match kind:
        case "Pod":
            result["spec"] = pod_spec_with_defaults(
                fields.mapping(manifest, "spec", ""),
                fields.mapping(meta, "labels", "metadata"),
                priority_classes or PriorityClasses(),
            )
            if manifest.get("status"):
                result["status"] = _pod_status(fields.mapping(manifest, "status", ""))
        case "Node":
            result["status"] = _node_status(fields.mapping(manifest, "status", ""))
        case "Namespace":
            labels = {
                **fields.mapping(meta, "labels", "metadata"),
                "kubernetes.io/metadata.name": meta.get("name", ""),
            }
            meta["labels"] = labels
        case "PersistentVolume":
            amounts = rounded(fields.mapping(manifest, "spec", ""), "capacity")
            result["spec"] = {"volumeMode": "Filesystem", **_present(amounts)}
        case "PersistentVolumeClaim":
            claim = with_rounded_resources(fields.mapping(manifest, "spec", ""))
            result["spec"] = {"volumeMode": "Filesystem", **_present(claim)}
            status = rounded(fields.mapping(manifest, "status", ""), "capacity", "allocatedResources")
            result["status"] = {"phase": "Pending", **_present(status)}
        case "ResourceClaim" | "ResourceClaimTemplate":
            result = {**with_device_defaults(result), "metadata": meta}
        case "PodGroup":
            spec = fields.mapping(manifest, "spec", "")
            value, _, name = (priority_classes or PriorityClasses()).resolve(spec, is_group=True)
            named = {"priorityClassName": name} if name else {}
            result["spec"] = {**spec, "priority": value, **named}
        case "PriorityClass":
            if not manifest.get("preemptionPolicy"):
                result["preemptionPolicy"] = PREEMPT_LOWER_PRIORITY
            if manifest.get("value") is None:
                result["value"] = 0  # always written, as Go writes a number without `omitempty`
        case "StorageClass":
            if manifest.get("volumeBindingMode") is None:
                result["volumeBindingMode"] = "Immediate"
            if manifest.get("reclaimPolicy") is None:
                result["reclaimPolicy"] = "Delete"
    return result


def _present(document: fields.Document) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None}


def _node_status(status: fields.Document) -> dict[str, Any]:
    result = dict(rounded(status, "capacity", "allocatable"))
    if status.get("allocatable") is None and status.get("capacity") is not None:
        result["allocatable"] = dict(fields.mapping(result, "capacity", "status"))
    return result


def _pod_status(status: fields.Document) -> dict[str, Any]:
    """What a kubelet says of containers it may have resized, rounded as all amounts are."""
    for key in ("containerStatuses[]", "initContainerStatuses[]", "ephemeralContainerStatuses[]"):
        status = changed_at(status, key, "status", _rounded_status)
    return dict(status)


def _rounded_status(status: fields.Document, path: str) -> fields.Document:
    return rounded(with_rounded_resources(status), "allocatedResources")


_POD_SPEC_DEFAULTS = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}


def pod_spec_with_defaults(
    spec: fields.Document, labels: Mapping[str, str], priority_classes: PriorityClasses
) -> dict[str, Any]:
    """A pod spec with v1 defaults, its priority resolved and its label keys merged into selectors."""
    result = {**_POD_SPEC_DEFAULTS, **_present(spec)}
    if "securityContext" not in result:
        result["securityContext"] = {}
    host_network = fields.boolean(spec, "hostNetwork", "spec")
    for key in ("initContainers", "containers"):
        if key in result:
            result[key] = [
                _container_with_defaults(item, path, host_network)
                for path, item in fields.mappings(result, key, "spec")
            ]
    # What the containers request together is summed up before each is rounded.
    pod_level = pod_level_resources(result)
    if pod_level is not None:
        result["resources"] = rounded(pod_level, "limits", "requests")
    for key in ("initContainers", "containers"):
        if key in result:
            result[key] = [with_rounded_resources(item) for item in result[key]]
    if spec.get("overhead"):
        result["overhead"] = in_milli_units(fields.mapping(spec, "overhead", "spec"))
    value, policy, class_name = priority_classes.resolve(spec)
    result["priority"] = value
    result["preemptionPolicy"] = policy
    if class_name:
        result["priorityClassName"] = class_name
    if not spec.get("affinity") and not spec.get("topologySpreadConstraints"):
        return result
    whole: fields.Document = result
    for where in _WITH_LABEL_KEYS:
        whole = changed_at(whole, where, "spec", partial(_merge_label_keys, labels=labels))
    return dict(whole)


_WITH_LABEL_KEYS = (
    "topologySpreadConstraints[]",
    *(
        f"affinity.{kind}.{terms}"
        for kind in ("podAffinity", "podAntiAffinity")
        for terms in (
            "requiredDuringSchedulingIgnoredDuringExecution[]",
            "preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm",
        )
    ),
)


def changed_at(
    document: fields.Document,
    where: str,
    path: str,
    change: Callable[[fields.Document, str], fields.Document],
) -> fields.Document:
    """`document` with the objects at a place in it changed; itself where there is none.

    Parameters
    ----------
    where
        `spec.devices.requests[]`: the objects of a list below two others.
    path
        The document's own place.
    change
        From an object and its place to what takes its place.
    """
    key, _, rest = where.partition(".")
    name = key.removesuffix("[]")
    if document.get(name) is None:
        return document

    def below(inner: fields.Document, place: str) -> fields.Document:
        return changed_at(inner, rest, place, change) if rest else change(inner, place)

    if name == key:
        return {**document, name: below(fields.mapping(document, name, path), fields.child(path, name))}
    return {**document, name: [below(item, place) for place, item in fields.mappings(document, name, path)]}


def _container_with_defaults(container: fields.Document, path: str, host_network: bool) -> dict[str, Any]:
    result = {
        "imagePullPolicy": pull_policy(fields.string(container, "image", path)),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **_present(container),
    }
    resources = fields.mapping(container, "resources", path)
    limits = fields.mapping(resources, "limits", f"{path}.resources")
    if limits:
        requests = fields.mapping(resources, "requests", f"{path}.resources")
        result["resources"] = {**resources, "requests": {**limits, **requests}}
    elif "resources" not in result:
        result["resources"] = {}
    if container.get("ports"):
        result["ports"] = [
            _port_with_defaults(port, host_network) for _, port in fields.mappings(container, "ports", path)
        ]
    return result


def pull_policy(image: str) -> str:
    """Source: defaults.go SetDefaults_Container; an empty image parses to no tag and so is not `latest`."""
    if not image:
        return "IfNotPresent"
    name = image.rsplit("/", 1)[-1]
    if "@" in name:
        return "IfNotPresent"
    tag = name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _port_with_defaults(port: fields.Document, host_network: bool) -> dict[str, Any]:
    result = dict(port)
    if not result.get("protocol"):
        result["protocol"] = "TCP"
    if host_network and not result.get("hostPort") and result.get("containerPort"):
        result["hostPort"] = result["containerPort"]
    return result


def _merge_label_keys(term: fields.Document, path: str, labels: Mapping[str, str]) -> fields.Document:
    """Merge matchLabelKeys and mismatchLabelKeys into the term's selector; keys the pod lacks are ignored."""
    keys = fields.strings(term, "matchLabelKeys", path)
    mismatch_keys = fields.strings(term, "mismatchLabelKeys", path)
    if (not keys and not mismatch_keys) or term.get("labelSelector") is None:
        return term
    selector = dict(fields.mapping(term, "labelSelector", path))
    expressions = list(fields.sequence(selector, "matchExpressions", f"{path}.labelSelector"))
    for operator, wanted in (("In", keys), ("NotIn", mismatch_keys)):
        for key in wanted:
            requirement = {"key": key, "operator": operator, "values": [labels.get(key)]}
            # Preparing a prepared manifest again must change nothing.
            if key in labels and requirement not in expressions:
                expressions.append(requirement)
    if expressions:
        selector["matchExpressions"] = expressions
    return {**term, "labelSelector": selector}


# --- What an API server does to the amounts of an object that is written: pod-level requests, and rounding.


_HUGE_PAGES = "hugepages-"
_MILLI = -3
_AMOUNT = (str, float)


def pod_level_resources(spec: fields.Document) -> dict[str, Any] | None:
    """`spec.resources` with what the containers give it; None for a pod that says nothing at pod level.

    Containers' limits of huge pages become pod-level limits, where the pod names neither a limit nor a request of
    that size. With any limit at pod level, missing requests of cpu and memory are what the containers request
    together, and what is still missing then is requested up to its pod-level limit.

    Parameters
    ----------
    spec : mapping
        The containers' requests are filled in from their limits already.
    """
    if spec.get("resources") is None:
        return None
    resources = fields.mapping(spec, "resources", "spec")
    limits = dict(fields.mapping(resources, "limits", "spec.resources"))
    requests = dict(fields.mapping(resources, "requests", "spec.resources"))
    if limits or requests:
        for name, amount in _together(spec, "limits").items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        for name, amount in _together(spec, "requests").items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_supported_pod_level_resource(name):
                requests.setdefault(name, amount)
    result = dict(resources)
    if limits:
        result["limits"] = limits
    if requests:
        result["requests"] = requests
    return result


def _together(spec: fields.Document, key: str) -> dict[str, str]:
    """What all containers request, or are limited to, as quantities in the form of the first that names one."""
    return {name: aggregate_text(spec, key, name, amount) for name, amount in aggregate(spec, key).items()}


def aggregate_text(spec: fields.Document, key: str, name: str, amount: int) -> str:
    """An amount of all containers together (nano units) as a quantity, in the form of the first that names one."""
    for kind in ("containers", "initContainers"):
        for _, container in fields.mappings(spec, kind, "spec"):
            written = fields.mapping(fields.mapping(container, "resources", kind), key, kind).get(name)
            if written is not None and not (first := quantity_from(written)).is_zero():
                return str(Quantity(amount, -9, False, first.format))
    return str(Quantity(amount, -9, False, "DecimalSI"))


@lru_cache(maxsize=65536)
def _rounded(value: str | float) -> str | float:
    """The amount rounded up to thousandths; itself where nothing is lost, or where it is no quantity."""
    try:
        quantity = quantity_from(value)
        if quantity.exponent >= _MILLI:
            return value
        unit = 10 ** (_MILLI - quantity.exponent)
        whole = -(-abs(quantity.mantissa) // unit) * quantity.sign()
        if whole * unit == quantity.mantissa:
            return value
        return str(Quantity(whole, _MILLI, quantity.is_decimal, quantity.format))
    except QuantityError:
        # Validation names the place.
        return value


def in_milli_units(amounts: Mapping[str, Any]) -> Mapping[str, Any]:
    """A ResourceList whose amounts are rounded up to thousandths; what is no quantity stays for validation.

    >>> in_milli_units({"cpu": "100100u", "memory": "1Gi"})
    {'cpu': '101m', 'memory': '1Gi'}
    """
    changed: dict[str, Any] = {}
    # A loop, as nearly always nothing changes: every pod comes this way.
    for name, value in amounts.items():
        if isinstance(value, _AMOUNT) and (text := _rounded(value)) != value:
            changed[name] = text
    return {**amounts, **changed} if changed else amounts


def rounded(document: fields.Document, *keys: str) -> fields.Document:
    """`document` with its resource lists at `keys` rounded up to thousandths; itself where nothing changes."""
    changed: dict[str, Any] = {}
    for key in keys:
        amounts = document.get(key)
        if amounts and isinstance(amounts, Mapping) and (lists := in_milli_units(amounts)) is not amounts:
            changed[key] = lists
    return {**document, **changed} if changed else document


def with_rounded_resources(holder: fields.Document) -> fields.Document:
    """A container, a container's status or a claim's spec whose `resources` are rounded up to thousandths."""
    resources = holder.get("resources")
    if not resources or not isinstance(resources, Mapping):
        return holder
    changed = rounded(resources, "limits", "requests")
    return holder if changed is resources else {**holder, "resources": changed}


# --- Defaults of resource.k8s.io, and how its first beta is read today.


_EXACT_FIELDS = (
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity",
)  # fmt: skip
"""What stood in a request itself in v1beta1, and stands in its `exactly` now."""


def with_device_defaults(manifest: fields.Document) -> dict[str, Any]:
    """A claim or template with what the API server fills in."""
    return _with_each_request(manifest, _with_requests)


_REQUESTS_OF = {
    "ResourceClaim": "spec.devices.requests[]", "ResourceClaimTemplate": "spec.spec.devices.requests[]",
}  # fmt: skip


def _with_each_request(
    manifest: fields.Document, change: Callable[[fields.Document, str], fields.Document]
) -> dict[str, Any]:
    """A claim or template whose requests are changed; any other object as it is."""
    where = _REQUESTS_OF.get(str(manifest.get("kind")))
    return dict(changed_at(manifest, where, "", change) if where else manifest)


def from_first_beta(manifest: fields.Document) -> dict[str, Any]:
    """An object of v1beta1 as v1 writes it: exact requests under `exactly`, devices without `basic`."""
    if manifest.get("kind") != "ResourceSlice":
        return _with_each_request(manifest, _with_exactly)
    return dict(changed_at(manifest, "spec.devices[]", "", _without_basic))


def _without_basic(device: fields.Document, path: str) -> fields.Document:
    rest = {key: value for key, value in device.items() if key != "basic"}
    return {**rest, **fields.mapping(device, "basic", path)}


def _with_exactly(request: fields.Document, path: str) -> dict[str, Any]:
    if request.get("exactly") is not None or request.get("firstAvailable"):
        return dict(request)
    exactly = {key: request[key] for key in _EXACT_FIELDS if key in request}
    rest = {key: value for key, value in request.items() if key not in _EXACT_FIELDS}
    return {**rest, "exactly": exactly} if exactly else rest


def _with_requests(request: fields.Document, path: str) -> fields.Document:
    return changed_at(changed_at(request, "exactly", path, _counted), "firstAvailable[]", path, _counted)


def _counted(request: fields.Document, path: str) -> dict[str, Any]:
    result = dict(request)
    if not result.get("allocationMode"):
        result["allocationMode"] = "ExactCount"
    if result["allocationMode"] == "ExactCount" and not result.get("count"):
        result["count"] = 1
    tolerations = fields.mappings(request, "tolerations", path)
    if tolerations:
        result["tolerations"] = [{"operator": "Equal", **item} for _, item in tolerations]
    return result
