"""What an API server refuses of pods and of the templates they are made from.

A template is checked as it is written: what is missing has its default.

Source: pkg/apis/core/validation/validation.go ValidatePodSpec, pkg/apis/core/helper/helpers.go, v1.36
Differs: an image may be missing; environment, probes, lifecycle hooks, security contexts and the sources of volumes
are stored unchecked, as nothing here follows them. Restart policies of containers are those of 1.35 and later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from scheduler_core.objects.defaults import aggregate_text, pod_level_resources
from scheduler_core.objects.fields import (
    Document,
    child,
    integer,
    mapping,
    mappings,
    optional_integer,
    optional_string,
    string,
    strings,
)
from scheduler_core.objects.labels import (
    is_extended_resource_name,
    label_errors,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from
from scheduler_core.objects.resources import (
    CPU,
    MEMORY,
    aggregate_limits,
    aggregate_requests,
    is_supported_pod_level_resource,
    quantity_at,
)
from scheduler_core.validation.problems import NOT_INTEGER, NOT_POSITIVE, FieldErrors

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PHASES: Final = ("Failed", "Pending", "Running", "Succeeded", "Unknown")
RESTARTS: Final = ("Always", "OnFailure", "Never")
_CONTAINER_RESTARTS: Final = ("Always", "Never", "OnFailure")
POLICIES: Final = ("PreemptLowerPriority", "Never")
_COUNTED: Final = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_COMPUTE: Final = frozenset((CPU, MEMORY, "ephemeral-storage"))
_STANDARD: Final = (
    _COUNTED
    | {f"{prefix}{name}" for name in _COMPUTE for prefix in ("", "requests.", "limits.")}
    | {"storage", "requests.storage"}
)
_QUOTA: Final = _STANDARD - {"storage"}
_HUGE_PAGES: Final = "hugepages-"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST_LISTED: Final = 100
_WEIGHT: Final = "must be in the range 1-100"
_OF_SIDECARS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_PORT_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


# ---- names of resources


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Whether less may be requested of it than its limit."""
    return _is_native(name) and not name.startswith(_HUGE_PAGES)


def is_whole(name: str) -> bool:
    """Whether there are no fractions of it."""
    return name in _COUNTED or not (_is_native(name) or name.startswith("requests."))


@lru_cache(maxsize=4096)
def resource_name_errors(name: str, place: str) -> tuple[str, ...]:
    """Why a name cannot be that of a resource in some place.

    Parameters
    ----------
    place : str
        `container`, `quota` or `any`.
    """
    found = list(qualified_name_errors(name))
    is_plain = "/" not in name
    is_huge = name.startswith((_HUGE_PAGES, "requests.hugepages-"))
    if not found and is_plain and name not in _STANDARD and not is_huge:
        found.append("must be a standard resource type or fully qualified")
    if place == "container" and is_plain and name not in _COMPUTE and not name.startswith(_HUGE_PAGES):
        found.append("must be a standard resource for containers")
    elif place == "container" and not is_plain and not _is_native(name):
        if not is_extended_resource_name(name):
            found.append("doesn't follow extended resource name standard")
    elif place == "quota" and is_plain and name not in _QUOTA and not is_huge:
        found.append("must be a standard resource for quota")
    return tuple(found)


def amounts(
    problems: FieldErrors, document: Document, key: str, path: str, place: str = ""
) -> dict[str, Quantity]:
    """Check names and amounts of a ResourceList (in order of names); returns the amounts.

    Parameters
    ----------
    place : str
        As of `resource_name_errors`; empty for any name.
    """
    found: dict[str, Quantity] = {}
    written = mapping(document, key, path)
    for name in sorted(written, key=str):
        where = f"{child(path, key)}[{name}]"
        if place:
            for detail in resource_name_errors(str(name), place):
                problems.invalid(where, name, detail)
        written_at = child(child(path, key), str(name))
        found[name] = amount = problems.amount(written[name], where, written_at)
        if is_whole(str(name)) and amount.milli_value() % 1000:
            problems.invalid(where, str(amount), NOT_INTEGER)
    return found


# ---- the pod


def pod(problems: FieldErrors, manifest: Document) -> None:
    """Check the spec of a pod that is created, and its phase."""
    spec = mapping(manifest, "spec", "")
    pod_spec(problems, spec, "spec", is_pod=True)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    problems.one_of(mapping(manifest, "status", ""), "phase", "status", PHASES)


def template(problems: FieldErrors, holder: Document, path: str) -> tuple[dict[str, str], Document]:
    """Check a workload's pod template; returns its labels and its spec."""
    place = f"{path}.template"
    written = mapping(holder, "template", path)
    if not written:
        problems.required(place)
    labels = problems.labels(mapping(written, "metadata", place), "labels", place)
    spec = mapping(written, "spec", place)
    pod_spec(problems, spec, f"{place}.spec", is_pod=False)
    return labels, spec


def lasting_template(problems: FieldErrors, holder: Document, path: str, kind: str) -> dict[str, str]:
    """Check the template of a workload whose pods are there to stay; returns its labels."""
    labels, spec = template(problems, holder, path)
    place = f"{path}.template.spec"
    policy = string(spec, "restartPolicy", place) or "Always"
    if policy != "Always":
        problems.unsupported(f"{place}.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        problems.forbidden(f"{place}.activeDeadlineSeconds", words)
    return labels


def pod_spec(problems: FieldErrors, spec: Document, path: str, *, is_pod: bool) -> None:
    """Check the spec of a pod or of a template."""
    volumes: dict[str, None] = {}
    for where, volume in mappings(spec, "volumes", path):
        problems.name_of_one(volume, where, volumes)
    claims = _claims(problems, spec, path)
    _containers(problems, spec, path, claims)
    if mapping(spec, "resources", path):
        _pod_level(problems, spec, path)
    if spec.get("hostNetwork"):
        _host_network(problems, spec, path, is_pod=is_pod)
    problems.one_of(spec, "restartPolicy", path, RESTARTS)
    problems.one_of(spec, "dnsPolicy", path, ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))
    if spec.get("nodeSelector"):
        problems.labels(spec, "nodeSelector", path)
    if spec.get("affinity"):
        _affinity(problems, mapping(spec, "affinity", path), f"{path}.affinity")
    _gates(problems, spec, path)
    _spread(problems, spec, path)
    for key, rule in (
        *(
            ("serviceAccountName", subdomain_errors),
            ("nodeName", subdomain_errors),
            ("hostname", label_errors),
        ),
        *(("subdomain", label_errors), ("priorityClassName", subdomain_errors)),
        ("runtimeClassName", subdomain_errors),
    ):
        if name := string(spec, key, path):
            problems.named(rule, name, f"{path}.{key}")
    deadline_s = optional_integer(spec, "activeDeadlineSeconds", path)
    if deadline_s is not None and not 0 < deadline_s < 2**31:
        words = f"must be between 1 and {2**31 - 1}, inclusive"
        problems.invalid(f"{path}.activeDeadlineSeconds", deadline_s, words)
    for where, toleration in mappings(spec, "tolerations", path):
        _toleration(problems, toleration, where)
    problems.one_of(spec, "preemptionPolicy", path, POLICIES)
    if spec.get("overhead"):
        _limits_of(problems, {"limits": spec["overhead"]}, f"{path}.overhead")
    group = spec.get("schedulingGroup")
    if group is not None:
        name = string(mapping(spec, "schedulingGroup", path), "podGroupName", f"{path}.schedulingGroup")
        if name:
            problems.named(subdomain_errors, name, f"{path}.schedulingGroup.podGroupName")
    # Upstream leaves these two to the bounds of their types and to what makes the pod.
    problems.at_least(spec, "terminationGracePeriodSeconds", path)
    integer(spec, "priority", path)


def _claims(problems: FieldErrors, spec: Document, path: str) -> dict[str, None]:
    names: dict[str, None] = {}
    for where, claim in mappings(spec, "resourceClaims", path):
        problems.name_of_one(claim, where, names)
        of = {
            key: name
            for key in ("resourceClaimName", "resourceClaimTemplateName")
            if (name := optional_string(claim, key, where)) is not None
        }
        if len(of) > 1:
            words = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            problems.invalid(where, dict(claim), words)
        elif not of:
            words = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            problems.invalid(where, dict(claim), words)
        for key, name in of.items():
            problems.named(subdomain_errors, name, f"{where}.{key}")
    return names


# ---- containers


def _containers(problems: FieldErrors, spec: Document, path: str, claims: Collection[str]) -> None:
    containers = mappings(spec, "containers", path)
    if not containers:
        problems.required(f"{path}.containers")
    names: dict[str, None] = {}
    ports: set[str] = set()
    for where, container in containers:
        _container(problems, container, where, names, claims)
        problems.one_of(container, "restartPolicy", where, _CONTAINER_RESTARTS)
    for where, container in containers:
        _host_ports(problems, container, where, ports)
    for where, container in mappings(spec, "initContainers", path):
        _container(problems, container, where, names, claims)
        policy = problems.one_of(container, "restartPolicy", where, _CONTAINER_RESTARTS)
        _host_ports(problems, container, where, set())
        for key in _OF_SIDECARS:
            if policy != "Always" and container.get(key) is not None:
                words = "may not be set for init containers without restartPolicy=Always"
                problems.forbidden(f"{where}.{key}", words)


def _container(
    problems: FieldErrors, container: Document, path: str, names: dict[str, None], claims: Collection[str]
) -> None:
    problems.name_of_one(container, path, names)
    problems.one_of(container, "terminationMessagePolicy", path, ("File", "FallbackToLogsOnError"))
    if container.get("ports"):
        _ports(problems, container, path)
    problems.one_of(container, "imagePullPolicy", path, ("Always", "IfNotPresent", "Never"))
    if resources := mapping(container, "resources", path):
        _requirements(problems, resources, f"{path}.resources", claims)


def _ports(problems: FieldErrors, container: Document, path: str) -> None:
    names: set[str] = set()
    for where, port in mappings(container, "ports", path):
        name = string(port, "name", where)
        if name and (wrong := _port_name_errors(name)):
            for detail in wrong:
                problems.invalid(f"{where}.name", name, detail)
        elif name and name in names:
            problems.duplicate(f"{where}.name", name)
        names.add(name)
        number = integer(port, "containerPort", where)
        if number:
            problems.port(number, f"{where}.containerPort")
        else:
            problems.required(f"{where}.containerPort")
        if host_port := integer(port, "hostPort", where):
            problems.port(host_port, f"{where}.hostPort")
        problems.one_of(port, "protocol", where, PROTOCOLS)


def _port_name_errors(name: str) -> list[str]:
    """Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go IsValidPortName."""
    found = []
    if len(name) > 15:
        found.append("must be no more than 15 characters")
    if not set(name) <= _PORT_NAME:
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name[0] == "-" or name[-1] == "-":
        found.append("must not begin or end with a hyphen")
    return found


def _host_ports(problems: FieldErrors, container: Document, path: str, taken: set[str]) -> None:
    for where, port in mappings(container, "ports", path):
        if not port.get("hostPort"):
            continue
        shown = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port['hostPort']}"
        if shown in taken:
            problems.duplicate(f"{where}.hostPort", shown)
        taken.add(shown)


def _host_network(problems: FieldErrors, spec: Document, path: str, *, is_pod: bool) -> None:
    for where, container in mappings(spec, "containers", path):
        for place, port in mappings(container, "ports", where):
            of_host, of_container = integer(port, "hostPort", place), integer(port, "containerPort", place)
            if (is_pod or of_host) and of_host != of_container:
                words = "must match `containerPort` when `hostNetwork` is true"
                problems.invalid(f"{place}.hostPort", of_host, words)


def _requirements(
    problems: FieldErrors,
    resources: Document,
    path: str,
    claims: Collection[str],
    *,
    place: str = "container",
) -> None:
    limits = _limits_of(problems, resources, path, place=place)
    requests = amounts(problems, resources, "requests", path, place)
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif amount != limit and not may_overcommit(name):
            problems.invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limit}")
        elif amount.cmp(limit) > 0:
            words = f"must be less than or equal to {name} limit of {limit}"
            problems.invalid(f"{path}.requests", str(amount), words)
    _huge_pages(problems, requests, f"{path}.requests")
    known = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in known) and not known & {CPU, MEMORY}:
        problems.forbidden(path, "HugePages require cpu or memory")
    _claimed(problems, resources, path, claims)


def _limits_of(
    problems: FieldErrors, resources: Document, path: str, *, place: str = "container"
) -> dict[str, Quantity]:
    limits = amounts(problems, resources, "limits", path, place)
    _huge_pages(problems, limits, f"{path}.limits")
    return limits


def _huge_pages(problems: FieldErrors, found: Mapping[str, Quantity], path: str) -> None:
    for name, amount in found.items():
        if not name.startswith(_HUGE_PAGES):
            continue
        try:
            page = quantity_from(name.removeprefix(_HUGE_PAGES))
            is_right = page.sign() > 0 and not page.milli_value() % 1000 and not amount.value() % page.value()
        except QuantityError:
            is_right = False
        if not is_right:
            words = f"{amount} is not positive integer multiple of {name}"
            problems.invalid(f"{path}[{name}]", str(amount), words)


def _claimed(problems: FieldErrors, resources: Document, path: str, claims: Collection[str]) -> None:
    seen: set[str] = set()
    for where, item in mappings(resources, "claims", path):
        name, request = string(item, "name", where), string(item, "request", where)
        if not name:
            problems.required(where)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            problems.named(label_errors, request, f"{where}.request")
        if name in seen or key in seen or (not request and f"{name}/" in seen):
            problems.duplicate(where, name if name in seen else key)
        seen |= {key, f"{name}/"}
        if name not in claims:
            listed = f": {', '.join(sorted(claims)[:_MOST_LISTED])}" if claims else " which is empty"
            problems.not_found(where, name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _pod_level(problems: FieldErrors, spec: Document, path: str) -> None:
    """Check what the pod asks for as a whole. Source: validatePodResources, validatePodResourceConsistency."""
    base = f"{path}.resources"
    spec = {
        **spec,
        **{key: _with_requests(spec, key) for key in ("containers", "initContainers") if spec.get(key)},
    }
    resources = pod_level_resources(spec) or {}
    if resources.get("claims") is not None:
        problems.forbidden(f"{base}.claims", "claims may not be set for Resources at pod-level")
    wrong = len(problems)
    for key in ("limits", "requests"):
        for name in sorted(mapping(resources, key, base)):
            for detail in (found := resource_name_errors(name, "any")):
                problems.invalid(f"{base}.{key}[{name}]", name, detail)
            if not found and not is_supported_pod_level_resource(name):
                problems.unsupported(f"{base}.{key}[{name}]", name, (CPU, _HUGE_PAGES, MEMORY))
    if len(problems) > wrong:
        return
    amounts_alone: Document = {key: resources[key] for key in ("limits", "requests") if key in resources}
    _requirements(problems, amounts_alone, base, (), place="")
    for key, together in (
        ("requests", aggregate_requests(spec)),
        ("limits", {k: v for k, v in aggregate_limits(spec).items() if k.startswith(_HUGE_PAGES)}),
    ):
        whole = mapping(resources, key, base)
        for name in sorted(together.keys() & whole.keys()):
            shown = aggregate_text(spec, key, name, together[name])
            amount = quantity_at(whole[name], f"{base}.{key}[{name}]")
            if quantity_at(shown, base).cmp(amount) > 0:
                words = f"must be greater than or equal to aggregate container {key} of {shown}"
                problems.invalid(f"{base}.{key}[{name}]", str(amount), words)
    limits = mapping(resources, "limits", base)
    for index, (where, container) in enumerate(mappings(spec, "containers", path)):
        own = mapping(mapping(container, "resources", where), "limits", f"{where}.resources")
        for name in sorted(own.keys() & limits.keys()):
            amount = quantity_at(own[name], f"{where}.resources.limits[{name}]")
            most = quantity_at(limits[name], f"{base}.limits[{name}]")
            if amount.cmp(most) > 0:
                words = f"must be less than or equal to pod limits of {most}"
                problems.invalid(f"{base}.containers[{index}][{name}].limits", str(amount), words)


def _with_requests(spec: Document, key: str) -> list[Document]:
    """Containers that request what they are limited to, where they say no more."""
    found: list[Document] = []
    for where, container in mappings(spec, key, "spec"):
        resources = mapping(container, "resources", where)
        limits = mapping(resources, "limits", where)
        requests = {**limits, **mapping(resources, "requests", where)}
        found.append({**container, "resources": {**resources, "requests": requests}})
    return found


# ---- where it may go


def _affinity(problems: FieldErrors, affinity: Document, path: str) -> None:
    node = mapping(affinity, "nodeAffinity", path)
    base = f"{path}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        problems.node_selector(mapping(node, _REQUIRED, base), f"{base}.{_REQUIRED}")
    for where, item in mappings(node, _PREFERRED, base):
        _weight(problems, item, where)
        problems.node_selector_term(mapping(item, "preference", where), f"{where}.preference", any_value=True)
    for key in ("podAffinity", "podAntiAffinity"):
        terms = mapping(affinity, key, path)
        base = f"{path}.{key}"
        for where, item in mappings(terms, _REQUIRED, base):
            _affinity_term(problems, item, where)
        for where, item in mappings(terms, _PREFERRED, base):
            _weight(problems, item, where)
            _affinity_term(problems, mapping(item, "podAffinityTerm", where), f"{where}.podAffinityTerm")


def _weight(problems: FieldErrors, item: Document, path: str) -> None:
    weight = integer(item, "weight", path)
    if not 1 <= weight <= 100:
        problems.invalid(f"{path}.weight", weight, _WEIGHT)


def _affinity_term(problems: FieldErrors, term: Document, path: str) -> None:
    for key in ("labelSelector", "namespaceSelector"):
        problems.selector(term, key, path)
    for name in strings(term, "namespaces", path):
        problems.named(label_errors, name, f"{path}.namespace")
    _label_keys(problems, term, path)
    key = string(term, "topologyKey", path)
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    problems.named(qualified_name_errors, key, f"{path}.topologyKey")


def _label_keys(problems: FieldErrors, document: Document, path: str) -> None:
    """Check matchLabelKeys and mismatchLabelKeys of a term or constraint."""
    matched, others = strings(document, "matchLabelKeys", path), strings(document, "mismatchLabelKeys", path)
    if not matched and not others:
        return
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", others)):
        if keys and document.get("labelSelector") is None:
            problems.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            problems.named(qualified_name_errors, key, f"{path}.{field}[{index}]")
    selector = mapping(document, "labelSelector", path)
    places = {key: index for index, key in enumerate(matched)}
    # The API server has added an expression of its own for each key by now.
    known = set(mapping(selector, "matchLabels", f"{path}.labelSelector"))
    for _, item in mappings(selector, "matchExpressions", f"{path}.labelSelector"):
        key = string(item, "key", path)
        if key in places and key in known:
            problems.invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
        known.add(key)
    apart = set(others)
    for index, key in enumerate(matched):
        if key in apart:
            words = "exists in both matchLabelKeys and mismatchLabelKeys"
            problems.invalid(f"{path}.matchLabelKeys[{index}]", key, words)


def _gates(problems: FieldErrors, spec: Document, path: str) -> None:
    seen: set[str] = set()
    for where, gate in mappings(spec, "schedulingGates", path):
        name = string(gate, "name", where)
        problems.named(qualified_name_errors, name, where)
        if name in seen:
            problems.duplicate(where, name)
        seen.add(name)


def _spread(problems: FieldErrors, spec: Document, path: str) -> None:
    constraints = mappings(spec, "topologySpreadConstraints", path)
    if not constraints:
        return
    left = Counter(_kind_of_spread(item) for _, item in constraints)
    for where, item in constraints:
        skew = integer(item, "maxSkew", where)
        if skew <= 0:
            problems.invalid(f"{where}.maxSkew", skew, NOT_POSITIVE)
        if not string(item, "topologyKey", where):
            problems.required(f"{where}.topologyKey", "can not be empty")
        action = string(item, "whenUnsatisfiable", where)
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            problems.unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        kind = _kind_of_spread(item)
        left[kind] -= 1
        if left[kind]:
            problems.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", kind)
        domains = optional_integer(item, "minDomains", where)
        if domains is not None and domains <= 0:
            problems.invalid(f"{where}.minDomains", domains, NOT_POSITIVE)
        if domains is not None and action != "DoNotSchedule":
            words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            problems.invalid(f"{where}.minDomains", domains, words)
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            problems.one_of(item, key, where, ("Honor", "Ignore"))
        _label_keys(problems, item, where)
        problems.selector(item, "labelSelector", where)


def _kind_of_spread(constraint: Document) -> str:
    return f"{{{constraint.get('topologyKey') or ''}, {constraint.get('whenUnsatisfiable') or ''}}}"


def _toleration(problems: FieldErrors, toleration: Document, path: str) -> None:
    key, operator = string(toleration, "key", path), string(toleration, "operator", path)
    value, effect = string(toleration, "value", path), string(toleration, "effect", path)
    if key:
        problems.named(qualified_name_errors, key, f"{path}.key")
    elif operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.invalid(f"{path}.operator", operator, words)
    if optional_integer(toleration, "tolerationSeconds", path) is not None and effect != "NoExecute":
        words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.invalid(f"{path}.effect", effect, words)
    if operator in ("", "Equal"):
        if wrong := label_value_errors(value):
            problems.invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator == "Exists":
        if value:
            problems.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        # The gate TaintTolerationComparisonOperators is off: upstream lists what it would allow all the same.
        supported = ("Equal", "Exists", "Lt", "Gt") if operator in ("Gt", "Lt") else ("Equal", "Exists")
        problems.unsupported(f"{path}.operator", operator, supported)
    if effect and effect not in EFFECTS:
        problems.unsupported(f"{path}.effect", effect, EFFECTS)
