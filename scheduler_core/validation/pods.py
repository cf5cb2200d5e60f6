"""What an API server refuses of pods and of the templates they are made from.

A template is checked as it is written: what is missing has its default.

Source: pkg/apis/core/validation/validation.go ValidatePodSpec, pkg/apis/core/helper/helpers.go, v1.36
Differs: an image may be missing; environment, probes, lifecycle hooks, security contexts and the sources of volumes
are stored unchecked, as nothing here follows them. Restart policies of containers are those of 1.35 and later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import Final

from scheduler_core.objects.defaults import aggregate_text, pod_level_resources
from scheduler_core.objects.fields import Document, child, mapping, mappings
from scheduler_core.objects.labels import (
    is_extended_resource_name,
    label_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from
from scheduler_core.objects.resources import (
    CPU,
    MEMORY,
    aggregate,
    is_supported_pod_level_resource,
    quantity_at,
)
from scheduler_core.validation.problems import NOT_INTEGER, NOT_POSITIVE, Checked

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
_NAMES: Final = {
    **dict.fromkeys(("serviceAccountName", "nodeName"), subdomain_errors),
    **dict.fromkeys(("hostname", "subdomain"), label_errors),
    **dict.fromkeys(("priorityClassName", "runtimeClassName"), subdomain_errors),
}
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


def amounts(holder: Checked, key: str, kind: str = "") -> dict[str, Quantity]:
    """Check names and amounts of a ResourceList (in order of names); returns the amounts.

    Parameters
    ----------
    kind : str
        The place of `resource_name_errors`; empty for any name.
    """
    found: dict[str, Quantity] = {}
    written = holder.at(key).document
    for name in sorted(written, key=str):
        where = f"{key}[{name}]"
        if kind:
            holder.named(where, partial(resource_name_errors, place=kind), name)
        found[name] = amount = holder.amount(where, written[name], child(holder.where(key), str(name)))
        if is_whole(str(name)) and amount.milli_value() % 1000:
            holder.invalid(where, str(amount), NOT_INTEGER)
    return found


# ---- the pod


def pod(manifest: Checked) -> None:
    """Check the spec of a pod that is created, and its phase."""
    spec = manifest.at("spec")
    pod_spec(spec, is_pod=True)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        spec.forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")
    manifest.at("status").one_of("phase", PHASES)


def template(holder: Checked) -> tuple[dict[str, str], Checked]:
    """Check a workload's pod template; returns its labels and its spec."""
    written = holder.at("template")
    if not written.document:
        holder.required("template")
    # Upstream's path, which leaves `metadata` out.
    labels = Checked(written.at("metadata").document, written.problems, written.path).labels("labels")
    spec = written.at("spec")
    pod_spec(spec, is_pod=False)
    return labels, spec


def lasting_template(holder: Checked, kind: str) -> None:
    """Check the template of a workload whose pods are there to stay."""
    _, spec = template(holder)
    policy = spec.text("restartPolicy") or "Always"
    if policy != "Always":
        spec.unsupported("restartPolicy", policy, ("Always",))
    if spec.has("activeDeadlineSeconds"):
        spec.forbidden("activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def pod_spec(spec: Checked, *, is_pod: bool) -> None:
    """Check the spec of a pod or of a template."""
    volumes: dict[str, None] = {}
    for volume in spec.each("volumes"):
        volume.name_of_one(volumes)
    claims = _claims(spec)
    _containers(spec, claims)
    if spec.at("resources").document:
        _pod_level(spec)
    if spec.get("hostNetwork"):
        _host_network(spec, is_pod=is_pod)
    spec.one_of("restartPolicy", RESTARTS)
    spec.one_of("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))
    if spec.get("nodeSelector"):
        spec.labels("nodeSelector")
    if spec.get("affinity"):
        _affinity(spec.at("affinity"))
    _gates(spec)
    _spread(spec)
    for key, rule in _NAMES.items():
        spec.name(key, rule)
    deadline_s = spec.number("activeDeadlineSeconds")
    if deadline_s is not None and not 0 < deadline_s < 2**31:
        words = f"must be between 1 and {2**31 - 1}, inclusive"
        spec.invalid("activeDeadlineSeconds", deadline_s, words)
    for toleration in spec.each("tolerations"):
        _toleration(toleration)
    spec.one_of("preemptionPolicy", POLICIES)
    if spec.get("overhead"):
        _limits_of(Checked({"limits": spec.get("overhead")}, spec.problems, spec.where("overhead")))
    spec.at("schedulingGroup").name("podGroupName", subdomain_errors)
    # Upstream leaves these two to the bounds of their types and to what makes the pod.
    spec.least("terminationGracePeriodSeconds")
    spec.whole("priority")


def _claims(spec: Checked) -> dict[str, None]:
    names: dict[str, None] = {}
    for claim in spec.each("resourceClaims"):
        claim.name_of_one(names)
        keys = ("resourceClaimName", "resourceClaimTemplateName")
        of = {key: name for key in keys if (name := claim.said(key)) is not None}
        if len(of) != 1:
            words = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                if of
                else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
            claim.invalid("", dict(claim.document), words)
        for key, name in of.items():
            claim.named(key, subdomain_errors, name)
    return names


# ---- containers


def _containers(spec: Checked, claims: Collection[str]) -> None:
    containers = spec.each("containers")
    if not containers:
        spec.required("containers")
    names: dict[str, None] = {}
    ports: set[str] = set()
    for container in containers:
        _container(container, names, claims)
        container.one_of("restartPolicy", _CONTAINER_RESTARTS)
    for container in containers:
        _host_ports(container, ports)
    for container in spec.each("initContainers"):
        _container(container, names, claims)
        policy = container.one_of("restartPolicy", _CONTAINER_RESTARTS)
        _host_ports(container, set())
        for key in _OF_SIDECARS:
            if policy != "Always" and container.has(key):
                words = "may not be set for init containers without restartPolicy=Always"
                container.forbidden(key, words)


def _container(container: Checked, names: dict[str, None], claims: Collection[str]) -> None:
    container.name_of_one(names)
    container.one_of("terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    if container.get("ports"):
        _ports(container)
    container.one_of("imagePullPolicy", ("Always", "IfNotPresent", "Never"))
    resources = container.at("resources")
    if resources.document:
        _requirements(resources, claims)


def _ports(container: Checked) -> None:
    names: set[str] = set()
    for port in container.each("ports"):
        name = port.text("name")
        if name and port.named("name", _port_name_errors, name):
            port.once(names, "name", name)
        number = port.whole("containerPort")
        if number:
            port.port("containerPort", number)
        else:
            port.required("containerPort")
        if host_port := port.whole("hostPort"):
            port.port("hostPort", host_port)
        port.one_of("protocol", PROTOCOLS)


def _port_name_errors(name: str) -> tuple[str, ...]:
    """Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go IsValidPortName."""
    rules = {
        "must be no more than 15 characters": len(name) <= 15,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": set(name) <= _PORT_NAME,
        "must contain at least one letter (a-z)": any("a" <= character <= "z" for character in name),
        "must not contain consecutive hyphens": "--" not in name,
        "must not begin or end with a hyphen": "-" not in (name[0], name[-1]),
    }
    return tuple(words for words, holds in rules.items() if not holds)


def _host_ports(container: Checked, taken: set[str]) -> None:
    for port in container.each("ports"):
        if not port.get("hostPort"):
            continue
        shown = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port.get('hostPort')}"
        port.once(taken, "hostPort", shown)


def _host_network(spec: Checked, *, is_pod: bool) -> None:
    for container in spec.each("containers"):
        for port in container.each("ports"):
            of_host, of_container = port.whole("hostPort"), port.whole("containerPort")
            if (is_pod or of_host) and of_host != of_container:
                words = "must match `containerPort` when `hostNetwork` is true"
                port.invalid("hostPort", of_host, words)


def _requirements(resources: Checked, claims: Collection[str], *, kind: str = "container") -> None:
    limits = _limits_of(resources, kind=kind)
    requests = amounts(resources, "requests", kind)
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                resources.required("limits", "Limit must be set for non overcommitable resources")
        elif amount != limit and not may_overcommit(name):
            resources.invalid("requests", str(amount), f"must be equal to {name} limit of {limit}")
        elif amount.cmp(limit) > 0:
            resources.invalid(
                "requests", str(amount), f"must be less than or equal to {name} limit of {limit}"
            )
    _huge_pages(resources, "requests", requests)
    known = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in known) and not known & {CPU, MEMORY}:
        resources.forbidden("", "HugePages require cpu or memory")
    _claimed(resources, claims)


def _limits_of(resources: Checked, *, kind: str = "container") -> dict[str, Quantity]:
    limits = amounts(resources, "limits", kind)
    _huge_pages(resources, "limits", limits)
    return limits


def _huge_pages(resources: Checked, key: str, found: Mapping[str, Quantity]) -> None:
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
            resources.invalid(f"{key}[{name}]", str(amount), words)


def _claimed(resources: Checked, claims: Collection[str]) -> None:
    seen: set[str] = set()
    for item in resources.each("claims"):
        name, request = item.text("name"), item.text("request")
        if not name:
            item.required("")
            continue
        key = f"{name}/{request}" if request else name
        item.name("request", label_errors)
        if name in seen or key in seen or (not request and f"{name}/" in seen):
            item.duplicate("", name if name in seen else key)
        seen |= {key, f"{name}/"}
        if name not in claims:
            listed = f": {', '.join(sorted(claims)[:_MOST_LISTED])}" if claims else " which is empty"
            item.not_found("", name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _pod_level(written: Checked) -> None:
    """Check what the pod asks for as a whole. Source: validatePodResources, validatePodResourceConsistency."""
    keys = [key for key in ("containers", "initContainers") if written.get(key)]
    spec = {**written.document, **{key: _with_requests(written.document, key) for key in keys}}
    asked = pod_level_resources(spec) or {}
    resources = Checked(asked, written.problems, written.where("resources"))
    if resources.has("claims"):
        resources.forbidden("claims", "claims may not be set for Resources at pod-level")
    wrong = len(written.problems)
    for key in ("limits", "requests"):
        for name in sorted(resources.at(key).document):
            where = f"{key}[{name}]"
            is_named = resources.named(where, partial(resource_name_errors, place="any"), name)
            if is_named and not is_supported_pod_level_resource(name):
                resources.unsupported(where, name, (CPU, _HUGE_PAGES, MEMORY))
    if len(written.problems) > wrong:
        return
    amounts_alone: Document = {key: asked[key] for key in ("limits", "requests") if key in asked}
    _requirements(Checked(amounts_alone, written.problems, resources.path), (), kind="")
    for key, together in (
        ("requests", aggregate(spec, "requests")),
        ("limits", {k: v for k, v in aggregate(spec, "limits").items() if k.startswith(_HUGE_PAGES)}),
    ):
        whole = resources.at(key).document
        for name in sorted(together.keys() & whole.keys()):
            shown = aggregate_text(spec, key, name, together[name])
            amount = quantity_at(whole[name], resources.where(f"{key}[{name}]"))
            if quantity_at(shown, resources.path).cmp(amount) > 0:
                words = f"must be greater than or equal to aggregate container {key} of {shown}"
                resources.invalid(f"{key}[{name}]", str(amount), words)
    limits = resources.at("limits").document
    for index, container in enumerate(Checked(spec, written.problems, written.path).each("containers")):
        own = container.at("resources", "limits")
        for name in sorted(own.document.keys() & limits.keys()):
            amount = quantity_at(own.document[name], own.where(f"[{name}]"))
            most = quantity_at(limits[name], resources.where(f"limits[{name}]"))
            if amount.cmp(most) > 0:
                words = f"must be less than or equal to pod limits of {most}"
                resources.invalid(f"containers[{index}][{name}].limits", str(amount), words)


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


def _affinity(affinity: Checked) -> None:
    node = affinity.at("nodeAffinity")
    if node.has(_REQUIRED):
        node.at(_REQUIRED).node_selector()
    for item in node.each(_PREFERRED):
        _weight(item)
        item.at("preference").node_selector_term(any_value=True)
    for key in ("podAffinity", "podAntiAffinity"):
        terms = affinity.at(key)
        for item in terms.each(_REQUIRED):
            _affinity_term(item)
        for item in terms.each(_PREFERRED):
            _weight(item)
            _affinity_term(item.at("podAffinityTerm"))


def _weight(item: Checked) -> None:
    weight = item.whole("weight")
    if not 1 <= weight <= 100:
        item.invalid("weight", weight, "must be in the range 1-100")


def _affinity_term(term: Checked) -> None:
    for key in ("labelSelector", "namespaceSelector"):
        term.selector(key)
    for name in term.texts("namespaces"):
        term.named("namespace", label_errors, name)
    _label_keys(term)
    key = term.text("topologyKey")
    if not key:
        term.required("topologyKey", "can not be empty")
    term.named("topologyKey", qualified_name_errors, key)


def _label_keys(holder: Checked) -> None:
    """Check matchLabelKeys and mismatchLabelKeys of a term or constraint."""
    matched, others = holder.texts("matchLabelKeys"), holder.texts("mismatchLabelKeys")
    if not matched and not others:
        return
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", others)):
        if keys and not holder.has("labelSelector"):
            holder.forbidden(field, "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            holder.named(f"{field}[{index}]", qualified_name_errors, key)
    selector = holder.at("labelSelector")
    places = {key: index for index, key in enumerate(matched)}
    # The API server has added an expression of its own for each key by now.
    known = set(selector.at("matchLabels").document)
    for item in selector.each("matchExpressions"):
        key = item.text("key")
        if key in places and key in known:
            holder.invalid(f"[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
        known.add(key)
    apart = set(others)
    for index, key in enumerate(matched):
        if key in apart:
            words = "exists in both matchLabelKeys and mismatchLabelKeys"
            holder.invalid(f"matchLabelKeys[{index}]", key, words)


def _gates(spec: Checked) -> None:
    seen: set[str] = set()
    for gate in spec.each("schedulingGates"):
        name = gate.text("name")
        gate.named("", qualified_name_errors, name)
        gate.once(seen, "", name)


def _spread(spec: Checked) -> None:
    constraints = spec.each("topologySpreadConstraints")
    left = Counter(_kind_of_spread(item) for item in constraints)
    for item in constraints:
        skew = item.whole("maxSkew")
        if skew <= 0:
            item.invalid("maxSkew", skew, NOT_POSITIVE)
        item.needs("topologyKey", detail="can not be empty")
        action = item.text("whenUnsatisfiable")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            item.unsupported("whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        kind = _kind_of_spread(item)
        left[kind] -= 1
        if left[kind]:
            item.duplicate("{topologyKey, whenUnsatisfiable}", kind)
        domains = item.least("minDomains", least=1, words=NOT_POSITIVE)
        if domains is not None and action != "DoNotSchedule":
            words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            item.invalid("minDomains", domains, words)
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            item.one_of(key, ("Honor", "Ignore"))
        _label_keys(item)
        item.selector("labelSelector")


def _kind_of_spread(constraint: Checked) -> str:
    return f"{{{constraint.get('topologyKey') or ''}, {constraint.get('whenUnsatisfiable') or ''}}}"


def _toleration(toleration: Checked) -> None:
    operator = toleration.text("operator")
    if not toleration.name("key", qualified_name_errors) and operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        toleration.invalid("operator", operator, words)
    value, effect = toleration.text("value"), toleration.text("effect")
    if toleration.number("tolerationSeconds") is not None and effect != "NoExecute":
        toleration.invalid("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        toleration.label_value("value", blamed="operator")
    elif operator == "Exists":
        if value:
            toleration.invalid("operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        # The gate TaintTolerationComparisonOperators is off: upstream lists what it would allow all the same.
        supported = ("Equal", "Exists", "Lt", "Gt") if operator in ("Gt", "Lt") else ("Equal", "Exists")
        toleration.unsupported("operator", operator, supported)
    if effect and effect not in EFFECTS:
        toleration.unsupported("effect", effect, EFFECTS)
