"""What an API server refuses that the scheduler itself would not notice, for the kinds kept here.

Each check raises `InvalidObject` naming field and value; the first problem of an object is enough. Only what
matters to a playground is checked: an image may be missing, a volume may be of any type.

Source: pkg/apis/core/validation/validation.go, pkg/apis/apps/validation/validation.go,
pkg/apis/policy/validation/validation.go, v1.34
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from playground.engine import acting_validation
from playground.engine.job_validation import check_job, not_simulated
from playground.engine.lease_validation import check_lease
from playground.engine.limit_validation import check_limit_range, check_quota
from scheduler_core.dynamic_resources import validation as device_validation
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.amount_defaults import aggregate_text
from scheduler_core.objects.fields import (
    child,
    integer,
    mapping,
    mappings,
    optional_integer,
    optional_string,
    string,
    string_map,
    strings,
)
from scheduler_core.objects.label_syntax import (
    label_errors,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.labels import SelectorError, label_selector_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.pod_group import pod_group_from
from scheduler_core.objects.policy import pod_disruption_budget_from
from scheduler_core.objects.resources import (
    aggregate_limits,
    aggregate_requests,
    is_extended_resource,
    is_supported_pod_level_resource,
    quantity_nano,
    resource_list,
)

Document = Mapping[str, Any]

_ANNOTATION_BYTES: Final = 256 * 1024
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` keeps the whole manifest: an object has the room it has besides that copy of itself."""
_PERCENT: Final = re.compile(r"[0-9]+%")
_UNHEALTHY_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_TEMPLATED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")
_SIMULATED: Final = (*_TEMPLATED, "CronJob", "Namespace", "Pod")
"""Kinds whose annotations may say how long pods last and what they use."""
# Names of these become host names or label values.
_LABEL_NAMED: Final = ("Namespace", "Service")
# Names of these are a segment of a path and may be anything else.
_PATH_NAMED: Final = ("ClusterRole", "ClusterRoleBinding", "IPAddress", "Role", "RoleBinding")


def validate(manifest: Document) -> None:
    """Check one object after defaulting.

    Raises
    ------
    InvalidObject
        With the field path and the value at fault.
    """
    kind = string(manifest, "kind", "")
    _metadata(manifest, kind)
    if kind in _SIMULATED:
        acting_validation.annotations(mapping(manifest, "metadata", ""), "metadata")
    match kind:
        case "Pod":
            _pod_spec(mapping(manifest, "spec", ""), "spec")
            _one_of(manifest, ("status", "phase"), _PHASES)
            pod_from(manifest)
        case "Node":
            _node(manifest)
        case "PodDisruptionBudget":
            _budget(manifest)
        case _ if kind in _TEMPLATED:
            _workload(manifest, kind)
        case "CronJob":
            spec = acting_validation.cron_job(manifest)
            check_job(spec, "spec.jobTemplate.spec")
            _job_template(spec, "spec.jobTemplate.spec")
        case "Lease":
            check_lease(manifest)
        case "HorizontalPodAutoscaler":
            acting_validation.autoscaler(manifest)
        case "Service":
            _service(mapping(manifest, "spec", ""))
        case "PersistentVolume":
            _capacity(mapping(manifest, "spec", ""), "capacity", "spec")
        case "PersistentVolumeClaim":
            spec = mapping(manifest, "spec", "")
            _capacity(mapping(spec, "resources", "spec"), "requests", "spec.resources")
        case "LimitRange":
            check_limit_range(manifest)
        case "ResourceQuota":
            check_quota(manifest)
        case "PodGroup":
            pod_group_from(manifest)
        case _ if kind in device_validation.KINDS:
            device_validation.check(manifest)


def _metadata(manifest: Document, kind: str) -> None:
    meta = mapping(manifest, "metadata", "")
    name = string(meta, "name", "metadata")
    if not name:
        raise InvalidObject("metadata.name", None, "name or generateName is required")
    if kind in _PATH_NAMED:
        if name in (".", "..") or "/" in name or "%" in name:
            raise InvalidObject(
                "metadata.name", name, "may not be '.' or '..' and may not contain '/' or '%'"
            )
        _rest_of_metadata(meta)
        return
    wrong = label_errors(name) if kind in _LABEL_NAMED else subdomain_errors(name)
    if wrong:
        raise InvalidObject("metadata.name", name, wrong[0])
    _rest_of_metadata(meta)


def validate_metadata(manifest: Document, kind: str) -> None:
    """Check an object's metadata alone.

    Raises
    ------
    InvalidObject
    """
    _metadata(manifest, kind)


def _rest_of_metadata(meta: Document) -> None:
    namespace = string(meta, "namespace", "metadata")
    if namespace and (wrong := label_errors(namespace)):
        raise InvalidObject("metadata.namespace", namespace, wrong[0])
    _labels(meta, "labels", "metadata")
    annotations = string_map(meta, "annotations", "metadata")
    for key in annotations:
        _qualified_name(key, "metadata.annotations", key)
    own = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
    if _size(own) > _ANNOTATION_BYTES:
        words = f"Too long: may not be more than {_ANNOTATION_BYTES} bytes"
        raise InvalidObject("metadata.annotations", None, words)


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())


def taken_only_here(manifest: Document) -> list[str]:
    """Sentences about a valid object that an API server would refuse, or whose fields nothing follows here."""
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    said = []
    if (size := _size(annotations)) > _ANNOTATION_BYTES:
        said.append(
            f"metadata.annotations: an API server refuses this object: its annotations have {size} bytes, more than"
            f" {_ANNOTATION_BYTES}, because kubectl apply keeps the manifest in {LAST_APPLIED};"
            " use kubectl apply --server-side"
        )
    return [*said, *not_simulated(manifest)]


def _labels(document: Document, key: str, path: str) -> dict[str, str]:
    labels = string_map(document, key, path)
    base = child(path, key)
    for name, value in labels.items():
        _qualified_name(name, base, name)
        if wrong := label_value_errors(value):
            raise InvalidObject(f"{base}[{name}]", value, wrong[0])
    return labels


def _qualified_name(name: str, path: str, value: str) -> None:
    if wrong := qualified_name_errors(name):
        raise InvalidObject(path, value, wrong[0])


def _one_of(manifest: Document, keys: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    path = ""
    document = manifest
    for key in keys[:-1]:
        document = mapping(document, key, path)
        path = child(path, key)
    value = string(document, keys[-1], path)
    if value and value not in allowed:
        raise InvalidObject(child(path, keys[-1]), value, f"must be one of {', '.join(allowed)}")


def _amounts(document: Document, key: str, path: str) -> dict[str, int]:
    """A ResourceList in nano units, none of them negative."""
    amounts = resource_list(document, key, path)
    base = child(path, key)
    for name, amount in amounts.items():
        _qualified_name(name, base, name)
        if amount < 0:
            raise InvalidObject(
                child(base, name), mapping(document, key, path)[name], "must be greater than or equal to 0"
            )
        if is_extended_resource(name) and amount % 10**9:
            raise InvalidObject(
                child(base, name),
                mapping(document, key, path)[name],
                "must be an integer",
            )
    return amounts


def _node(manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    status = mapping(manifest, "status", "")
    for path, taint in mappings(spec, "taints", "spec"):
        key = string(taint, "key", path)
        if not key:
            raise InvalidObject(f"{path}.key", None, "is required")
        _qualified_name(key, f"{path}.key", key)
        value = string(taint, "value", path)
        if wrong := label_value_errors(value):
            raise InvalidObject(f"{path}.value", value, wrong[0])
        effect = string(taint, "effect", path)
        if effect not in _TAINT_EFFECTS:
            raise InvalidObject(
                f"{path}.effect", effect or None, f"must be one of {', '.join(_TAINT_EFFECTS)}"
            )
    _amounts(status, "capacity", "status")
    _amounts(status, "allocatable", "status")
    node_from(manifest)


def _pod_spec(spec: Document, path: str) -> None:
    names: set[str] = set()
    containers = mappings(spec, "containers", path)
    if not containers:
        raise InvalidObject(f"{path}.containers", None, "is required")
    for item_path, container in [*mappings(spec, "initContainers", path), *containers]:
        _container(container, item_path, names)
    pod_level = mapping(spec, "resources", path)
    if pod_level:
        _pod_level_resources(spec, pod_level, path)
    _amounts(spec, "overhead", path)
    string_map(spec, "nodeSelector", path)
    for item_path, toleration in mappings(spec, "tolerations", path):
        _toleration(toleration, item_path)
    _claims(spec, path)
    grace_s = optional_integer(spec, "terminationGracePeriodSeconds", path)
    if grace_s is not None and grace_s < 0:
        raise InvalidObject(
            f"{path}.terminationGracePeriodSeconds", grace_s, "must be greater than or equal to 0"
        )
    priority = integer(spec, "priority", path)
    if not -(2**31) <= priority < 2**31:
        raise InvalidObject(f"{path}.priority", priority, "does not fit 32 bits")
    _selectors(spec, path)


def _claims(spec: Document, path: str) -> None:
    names: set[str] = set()
    for claim_path, claim in mappings(spec, "resourceClaims", path):
        _name_of_one(claim, claim_path, names)
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            of = optional_string(claim, key, claim_path)
            if of is not None and (wrong := subdomain_errors(of)):
                raise InvalidObject(f"{claim_path}.{key}", of, wrong[0])


def _name_of_one(document: Document, path: str, names: set[str]) -> None:
    """A label that none of those before it has, whose `names` it joins."""
    name = string(document, "name", path)
    if not name:
        raise InvalidObject(f"{path}.name", None, "is required")
    if wrong := label_errors(name):
        raise InvalidObject(f"{path}.name", name, wrong[0])
    if name in names:
        raise InvalidObject(f"{path}.name", name, "is there twice")
    names.add(name)


def _container(container: Document, path: str, names: set[str]) -> None:
    _name_of_one(container, path, names)
    resources = mapping(container, "resources", path)
    if resources:
        _requests_and_limits(resources, f"{path}.resources")
    for port_path, port in mappings(container, "ports", path):
        for key in ("containerPort", "hostPort"):
            number = optional_integer(port, key, port_path)
            if number is not None and not (number == 0 and key == "hostPort") and not 0 < number < 65536:
                raise InvalidObject(f"{port_path}.{key}", number, "must be between 1 and 65535, inclusive")
        protocol = string(port, "protocol", port_path)
        if protocol and protocol not in _PROTOCOLS:
            raise InvalidObject(f"{port_path}.protocol", protocol, f"must be one of {', '.join(_PROTOCOLS)}")


def _requests_and_limits(resources: Document, path: str) -> None:
    requests = _amounts(resources, "requests", path)
    limits = _amounts(resources, "limits", path)
    for name, limit in limits.items():
        request = requests.get(name)
        if request is None:
            continue
        value = mapping(resources, "requests", path)[name]
        if request > limit:
            raise InvalidObject(
                child(f"{path}.requests", name),
                value,
                f"must be less than or equal to {name} limit of {mapping(resources, 'limits', path)[name]}",
            )
        if is_extended_resource(name) and request != limit:
            raise InvalidObject(
                child(f"{path}.requests", name),
                value,
                f"must be equal to {name} limit of {mapping(resources, 'limits', path)[name]}",
            )


def _pod_level_resources(spec: Document, resources: Document, path: str) -> None:
    """What the pod requests as a whole covers its containers. Source: validatePodResourceConsistency, v1.34."""
    base = f"{path}.resources"
    if resources.get("claims"):
        raise InvalidObject(f"{base}.claims", None, "may not be set at pod level")
    for key in ("requests", "limits"):
        for name in mapping(resources, key, base):
            if not is_supported_pod_level_resource(name):
                place = child(f"{base}.{key}", name)
                raise InvalidObject(place, name, "is not one of cpu, memory and hugepages- at pod level")
    _requests_and_limits(resources, base)
    requests = resource_list(resources, "requests", base)
    limits = resource_list(resources, "limits", base)
    for key, whole, together in (
        ("requests", requests, aggregate_requests(spec)),
        ("limits", limits, {k: v for k, v in aggregate_limits(spec).items() if k.startswith("hugepages-")}),
    ):
        for name, amount in together.items():
            if name in whole and amount > whole[name]:
                raise InvalidObject(
                    child(f"{base}.{key}", name),
                    mapping(resources, key, base)[name],
                    f"must be greater than or equal to aggregate container {key} of "
                    f"{aggregate_text(spec, key, name, amount)}",
                )
    for item_path, container in mappings(spec, "containers", path):
        own = mapping(mapping(container, "resources", item_path), "limits", f"{item_path}.resources")
        for name, amount in resource_list({"limits": own}, "limits", f"{item_path}.resources").items():
            if name in limits and amount > limits[name]:
                raise InvalidObject(
                    child(f"{item_path}.resources.limits", name),
                    own[name],
                    f"must be less than or equal to pod limits of {mapping(resources, 'limits', base)[name]}",
                )


def _toleration(toleration: Document, path: str) -> None:
    operator = string(toleration, "operator", path)
    if operator not in ("", "Equal", "Exists"):
        raise InvalidObject(f"{path}.operator", operator, "must be one of Equal, Exists")
    if operator == "Exists" and string(toleration, "value", path):
        raise InvalidObject(
            f"{path}.value", toleration["value"], "value must be empty when `operator` is 'Exists'"
        )
    if not string(toleration, "key", path) and operator != "Exists":
        raise InvalidObject(
            f"{path}.operator",
            operator or None,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    effect = string(toleration, "effect", path)
    if effect and effect not in _TAINT_EFFECTS:
        raise InvalidObject(f"{path}.effect", effect, f"must be one of {', '.join(_TAINT_EFFECTS)}")
    optional_integer(toleration, "tolerationSeconds", path)


def _selectors(spec: Document, path: str) -> None:
    """Shapes the scheduler reads leniently: spread constraints and affinity terms."""
    for item_path, constraint in mappings(spec, "topologySpreadConstraints", path):
        if integer(constraint, "maxSkew", item_path) < 1:
            raise InvalidObject(
                f"{item_path}.maxSkew", constraint.get("maxSkew"), "must be greater than zero"
            )
        if not string(constraint, "topologyKey", item_path):
            raise InvalidObject(f"{item_path}.topologyKey", None, "is required")
        action = string(constraint, "whenUnsatisfiable", item_path)
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            raise InvalidObject(
                f"{item_path}.whenUnsatisfiable",
                action or None,
                "must be one of DoNotSchedule, ScheduleAnyway",
            )
    affinity = mapping(spec, "affinity", path)
    for item_path, expression in _node_expressions(affinity, f"{path}.affinity"):
        operator = string(expression, "operator", item_path)
        if operator not in _NODE_OPERATORS:
            raise InvalidObject(
                f"{item_path}.operator", operator or None, f"must be one of {', '.join(_NODE_OPERATORS)}"
            )
    for name in ("podAffinity", "podAntiAffinity"):
        terms = mapping(affinity, name, f"{path}.affinity")
        base = f"{path}.affinity.{name}"
        for item_path, term in _affinity_terms(terms, base):
            if not string(term, "topologyKey", item_path):
                raise InvalidObject(f"{item_path}.topologyKey", None, "is required")
            strings(term, "namespaces", item_path)


def _node_expressions(affinity: Document, path: str) -> Iterator[tuple[str, Document]]:
    node = mapping(affinity, "nodeAffinity", path)
    base = f"{path}.nodeAffinity"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = mappings(mapping(node, required, base), "nodeSelectorTerms", f"{base}.{required}")
    for item_path, item in mappings(node, "preferredDuringSchedulingIgnoredDuringExecution", base):
        terms.append((f"{item_path}.preference", mapping(item, "preference", item_path)))
    for term_path, term in terms:
        yield from mappings(term, "matchExpressions", term_path)
        yield from mappings(term, "matchFields", term_path)


def _affinity_terms(terms: Document, base: str) -> Iterator[tuple[str, Document]]:
    yield from mappings(terms, "requiredDuringSchedulingIgnoredDuringExecution", base)
    for path, item in mappings(terms, "preferredDuringSchedulingIgnoredDuringExecution", base):
        weight = integer(item, "weight", path)
        if not 1 <= weight <= 100:
            raise InvalidObject(f"{path}.weight", item.get("weight"), "must be in the range 1-100")
        yield f"{path}.podAffinityTerm", mapping(item, "podAffinityTerm", path)


def _budget(manifest: Document) -> None:
    """Source: pkg/apis/policy/validation/validation.go ValidatePodDisruptionBudgetSpec, v1.34."""
    spec = mapping(manifest, "spec", "")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        raise InvalidObject("spec", None, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        _amount_or_percent(spec.get(key), f"spec.{key}")
    _label_selector(spec, "selector", "spec")
    policy = string(spec, "unhealthyPodEvictionPolicy", "spec")
    if policy and policy not in _UNHEALTHY_POLICIES:
        supported = ", ".join(f'"{name}"' for name in _UNHEALTHY_POLICIES)
        raise InvalidObject("spec.unhealthyPodEvictionPolicy", policy, f"supported values: {supported}")
    status = mapping(manifest, "status", "")
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        count = optional_integer(status, key, "status")
        if count is not None and count < 0:
            raise InvalidObject(f"status.{key}", count, "must be greater than or equal to 0")
    pod_disruption_budget_from(manifest)


def _amount_or_percent(value: object, path: str) -> None:
    """Source: pkg/apis/apps/validation/validation.go ValidatePositiveIntOrPercent, IsNotMoreThan100Percent."""
    if value is None:
        return
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            raise InvalidObject(
                path,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            )
        if len(value) > 12 or int(value[:-1]) > 100:
            raise InvalidObject(path, value, "must not be greater than 100%")
    elif isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise InvalidObject(path, value, "must be a whole number of 32 bits or a percentage")
    elif value < 0:
        raise InvalidObject(path, value, "must be greater than or equal to 0")


def _label_selector(document: Document, key: str, path: str) -> None:
    """Source: apimachinery/pkg/apis/meta/v1/validation/validation.go ValidateLabelSelector, v1.34."""
    selector = mapping(document, key, path)
    base = child(path, key)
    _labels(selector, "matchLabels", base)
    for item_path, expression in mappings(selector, "matchExpressions", base):
        operator = string(expression, "operator", item_path)
        values = strings(expression, "values", item_path)
        if operator in ("In", "NotIn"):
            if not values:
                raise InvalidObject(
                    f"{item_path}.values", None, "must be specified when `operator` is 'In' or 'NotIn'"
                )
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                raise InvalidObject(
                    f"{item_path}.values",
                    None,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
        else:
            raise InvalidObject(f"{item_path}.operator", operator, "not a valid selector operator")
        name = string(expression, "key", item_path)
        _qualified_name(name, f"{item_path}.key", name)


def _workload(manifest: Document, kind: str) -> None:
    spec = mapping(manifest, "spec", "")
    if kind == "Job":
        check_job(spec, "spec")
    template_labels = _job_template(spec, "spec")
    selector = spec.get("selector")
    if kind == "Job" or (kind == "ReplicationController" and selector is None):
        return
    if not selector:
        raise InvalidObject("spec.selector", None, "is required")
    document = {"matchLabels": selector} if kind == "ReplicationController" else selector
    try:
        parsed = label_selector_from(mapping({"selector": document}, "selector", "spec"))
    except SelectorError as error:
        field = ".".join(filter(None, ("spec.selector", error.path)))
        raise InvalidObject(field, None, str(error)) from None
    if not parsed.matches(template_labels):
        raise InvalidObject(
            "spec.template.metadata.labels",
            dict(template_labels),
            "`selector` does not match template `labels`",
        )


def _job_template(spec: Document, path: str) -> dict[str, str]:
    """Check the numbers and the pod template of a workload's spec; returns the template's labels."""
    for key in ("replicas", "completions", "parallelism"):
        number = optional_integer(spec, key, path)
        if number is not None and number < 0:
            raise InvalidObject(f"{path}.{key}", number, "must be greater than or equal to 0")
    template = mapping(spec, "template", path)
    place = f"{path}.template"
    if not template:
        raise InvalidObject(place, None, "is required")
    meta = mapping(template, "metadata", place)
    labels = _labels(meta, "labels", f"{place}.metadata")
    acting_validation.annotations(meta, f"{place}.metadata")
    _pod_spec(mapping(template, "spec", place), f"{place}.spec")
    return labels


def _service(spec: Document) -> None:
    """Source: pkg/apis/core/validation/validation.go ValidateService, v1.34."""
    string_map(spec, "selector", "spec")
    type_ = string(spec, "type", "spec")
    if type_ and type_ not in _SERVICE_TYPES:
        raise InvalidObject("spec.type", type_, f"must be one of {', '.join(_SERVICE_TYPES)}")
    names: set[str] = set()
    ports = mappings(spec, "ports", "spec")
    for path, port in ports:
        name = string(port, "name", path)
        if not name and len(ports) > 1:
            raise InvalidObject(f"{path}.name", None, "is required")
        if name in names and name:
            raise InvalidObject(f"{path}.name", name, "is there twice")
        names.add(name)
        number = optional_integer(port, "port", path) or 0
        if not 0 < number < 65536:
            raise InvalidObject(f"{path}.port", number, "must be between 1 and 65535, inclusive")
        protocol = string(port, "protocol", path)
        if protocol and protocol not in _PROTOCOLS:
            raise InvalidObject(f"{path}.protocol", protocol, f"must be one of {', '.join(_PROTOCOLS)}")


def _capacity(document: Document, key: str, path: str) -> None:
    for name, value in mapping(document, key, path).items():
        if quantity_nano(value, child(child(path, key), name)) < 0:
            raise InvalidObject(child(child(path, key), name), value, "must be greater than or equal to 0")
