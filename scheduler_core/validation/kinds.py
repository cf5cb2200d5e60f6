"""Rules of objects by kind; those of pods, jobs and devices are in other files.

Source: pkg/apis/{core,apps,policy,storage,scheduling,coordination,autoscaling}/validation/validation.go, v1.36
Differs: what nothing here follows is stored unchecked; a claim may be in a volume of any source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES
from scheduler_core.objects.duration import duration_ns
from scheduler_core.objects.fields import Document, boolean, string_map
from scheduler_core.objects.labels import label_errors, qualified_name_errors, subdomain_errors
from scheduler_core.objects.quantity import Quantity, quantity_from
from scheduler_core.releases import DEFAULT, Release
from scheduler_core.schema.fields_check import check_fields
from scheduler_core.schema.tables import table_beside, types_by_kind
from scheduler_core.sim.admission import HIGHEST_USER_PRIORITY, SYSTEM_PREFIX
from scheduler_core.sim.controllers.node_lifecycle import CRASHES, crashes_from
from scheduler_core.sim.controllers.programs import PROGRAMS
from scheduler_core.sim.kubelet import DURATION, ENDS_AS, NEVER, START_DELAY
from scheduler_core.sim.load import LOAD, LoadError, load_from
from scheduler_core.validation import devices, jobs, pods
from scheduler_core.validation.problems import NOT_POSITIVE, Checked, FieldErrors

ANNOTATION_BYTES: Final = 256 * 1024
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` keeps the whole manifest: an object has the room it has besides that copy of itself."""
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ENDS: Final = ("Succeeded", "Failed")
# Names of these become host names or label values.
_LABEL_NAMED: Final = ("Namespace", "Service")
# Names of these are a segment of a path and may be anything else.
_PATH_NAMED: Final = ("ClusterRole", "ClusterRoleBinding", "IPAddress", "Role", "RoleBinding")
_SIMULATED: Final = (
    *(
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "Namespace",
        "Node",
        "Pod",
        "ReplicaSet",
        "ReplicationController",
    ),
    "StatefulSet",
)
"""Kinds whose annotations may say how long pods last and what they use."""


def is_own(manifest: Document) -> bool:
    """Whether it is of one of Kubernetes' own kinds, in a version that has it; one without a version is by its kind."""
    version = manifest.get("apiVersion")
    return version is None or (str(version), str(manifest.get("kind"))) in types_by_kind()


def validate(manifest: Document, release: Release = DEFAULT) -> None:
    """Check one object, defaulted or not; of kinds that are not Kubernetes' own the metadata alone.

    Raises
    ------
    InvalidObject
        With everything that is wrong (`errors`).
    """
    whole = Checked(manifest, FieldErrors(release))
    _metadata(whole)
    kind = whole.text("kind")
    if is_own(manifest):
        if kind in _SIMULATED:
            simulation_annotations(whole.at("metadata"))
        if rule := _RULES.get(kind):
            rule(whole)
    whole.problems.refuse()


def check_types(manifest: Document) -> None:
    """Refuse an object a field of which holds a value of another type; kinds that are not known here pass.

    Raises
    ------
    InvalidObject
        For the first of them.
    """
    type_name = types_by_kind().get((manifest.get("apiVersion"), manifest.get("kind")), "")
    for problem in check_fields(manifest, type_name)[1]:
        if not problem.unknown:
            raise InvalidObject(problem.path, problem.value, problem.reason)


def validate_metadata(manifest: Document, release: Release = DEFAULT) -> None:
    """Check the metadata alone of an object that is kept and not read.

    Raises
    ------
    InvalidObject
    """
    problems = FieldErrors(release)
    _metadata(Checked(manifest, problems))
    problems.refuse()


def _metadata(manifest: Checked) -> None:
    kind = manifest.text("kind") if is_own(manifest.document) else ""
    meta = manifest.at("metadata")
    name = meta.text("name")
    if not name:
        meta.required("name", "name or generateName is required")
    elif kind in _PATH_NAMED:
        meta.named("name", _path_errors, name)
    else:
        meta.named("name", label_errors if kind in _LABEL_NAMED else subdomain_errors, name)
    meta.name("namespace", label_errors)
    if meta.get("labels"):
        meta.labels("labels")
    if meta.get("annotations"):
        given = string_map(meta.document, "annotations", meta.path)
        for key in given:
            meta.named("annotations", _any_case, key)
        if annotation_bytes({key: given[key] for key in given if key != LAST_APPLIED}) > ANNOTATION_BYTES:
            meta.too_long("annotations", ANNOTATION_BYTES)


def _any_case(name: str) -> tuple[str, ...]:
    return qualified_name_errors(name.lower())


def _path_errors(name: str) -> tuple[str, ...]:
    found = [f"may not be '{part}'" for part in (".", "..") if name == part]
    return (*found, *(f"may not contain '{part}'" for part in "/%" if part in name))


def annotation_bytes(annotations: Mapping[str, str]) -> int:
    """How much room annotations take."""
    return sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())


def simulation_annotations(meta: Checked) -> None:
    """Check the annotations that say how long pods last and what they use: they are this simulation's own."""
    given = meta.at("annotations").document
    if not given:
        return
    for name in (DURATION, START_DELAY):
        text = given.get(name)
        if text is None or (name == DURATION and text == NEVER):
            continue
        try:
            duration_ns(str(text))
        except ValueError:
            also = f", or {NEVER}" if name == DURATION else ""
            meta.invalid(f"annotations[{name}]", text, f"is not a duration like 30s, 5m or 1h30m{also}")
    if given.get(ENDS_AS, _ENDS[0]) not in _ENDS:
        meta.unsupported(f"annotations[{ENDS_AS}]", given[ENDS_AS], _ENDS)
    if LOAD in given:
        try:
            load_from(str(given[LOAD]))
        except LoadError as error:
            meta.invalid(f"annotations[{LOAD}]", given[LOAD], str(error))
    for name, read in {**PROGRAMS, CRASHES: crashes_from}.items():
        if name in given:
            try:
                read(str(given[name]))
            except (InvalidObject, ValueError) as error:
                meta.invalid(f"annotations[{name}]", given[name], str(error))


# ---- nodes, budgets, classes


def _node(manifest: Checked) -> None:
    seen: set[tuple[str, str]] = set()
    # Upstream's paths, which leave `spec` out for taints and write resources with dots.
    for written in manifest.at("spec").each("taints"):
        taint = Checked(written.document, written.problems, written.path.replace("spec", "metadata", 1))
        key, effect = written.text("key"), written.text("effect")
        taint.named("key", qualified_name_errors, key)
        taint.label_value("value")
        taint.one_of("effect", pods.EFFECTS, required=True)
        shown = {key: value for key in ("key", "value", "effect", "timeAdded") if (value := taint.get(key))}
        words = "taints must be unique by key and effect pair"
        taint.once(seen, "", (key, effect), shown=shown, detail=words)
    status = manifest.at("status")
    for key in ("capacity", "allocatable"):
        for name, value in status.at(key).document.items():
            amount = status.amount(f"{key}.{name}", value)
            if pods.is_whole(str(name)) and amount.milli_value() % 1000:
                status.invalid(f"{key}.{name}", str(amount), "must be an integer")


def _budget(manifest: Checked) -> None:
    spec = manifest.at("spec")
    if spec.has("minAvailable") and spec.has("maxUnavailable"):
        spec.invalid("", dict(spec.document), "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        spec.int_or_percent(key)
    spec.selector("selector")
    spec.one_of("unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))
    manifest.at("status").least("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _priority_class(manifest: Checked) -> None:
    name, value = manifest.at("metadata").text("name"), manifest.whole("value")
    if name.startswith(SYSTEM_PREFIX):
        if wrong := _no_system_class(name, value, boolean(manifest.document, "globalDefault", "")):
            words = "priority class names with 'system-' prefix are reserved for system use only. error: "
            manifest.forbidden("metadata.name", words + wrong)
    elif value > HIGHEST_USER_PRIORITY:
        words = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        manifest.forbidden("value", words)
    manifest.one_of("preemptionPolicy", pods.POLICIES)


def _no_system_class(name: str, value: int, global_default: bool) -> str:
    """Why it is none of the classes every cluster has. Source: helpers.go IsKnownSystemPriorityClass."""
    if name not in SYSTEM_PRIORITY_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_PRIORITY_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_PRIORITY_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if global_default else ""


def _storage_class(manifest: Checked) -> None:
    manifest.name("provisioner", _any_case, required=True)
    parameters = string_map(manifest.document, "parameters", "")
    if len(parameters) > 512:
        manifest.too_long("parameters", 512)
    elif annotation_bytes(parameters) > ANNOTATION_BYTES:
        manifest.too_long("parameters", ANNOTATION_BYTES)
    manifest.one_of("reclaimPolicy", ("Delete", "Retain"))
    manifest.one_of("volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    for term in manifest.each("allowedTopologies"):
        _topology(term)


def _topology(term: Checked) -> None:
    keys: set[str] = set()
    for item in term.each("matchLabelExpressions"):
        key, values = item.text("key"), item.texts("values")
        if not values:
            item.required("values")
        seen: set[str] = set()
        for index, value in enumerate(values):
            item.once(seen, f"values[{index}]", value)
        item.named("key", qualified_name_errors, key)
        item.once(keys, "key", key)


# ---- volumes


def _volume(manifest: Checked) -> None:
    spec = manifest.at("spec")
    _modes(spec, "")
    capacity = spec.at("capacity").document
    if not capacity:
        spec.required("capacity")
    if "storage" not in capacity or len(capacity) > 1:
        spec.unsupported("capacity", dict(capacity) or None, ("storage",))
    for name, value in capacity.items():
        _some_room(spec, f"capacity[{name}]", value)
    spec.one_of("persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain"))
    affinity = spec.at("nodeAffinity")
    if affinity.has("required"):
        affinity.at("required").node_selector()
    elif spec.has("nodeAffinity"):
        affinity.required("required", "must specify required node constraints")
    if spec.has("local") and not spec.has("nodeAffinity"):
        spec.required("nodeAffinity", "Local volume requires node affinity")
    _of_class(spec)


def _some_room(spec: Checked, key: str, value: Any) -> None:
    amount = spec.amount(key, value)
    if amount.is_zero():
        spec.invalid(key, str(amount), NOT_POSITIVE)


def _modes(spec: Checked, required: str) -> None:
    modes = spec.texts("accessModes")
    if not modes:
        spec.required("accessModes", required)
    for mode in modes:
        if mode not in _MODES:
            spec.unsupported("accessModes", mode, _MODES)
    if _MODES[3] in modes and set(modes) & set(_MODES[:3]):
        spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")


def _of_class(spec: Checked) -> None:
    spec.name("storageClassName", subdomain_errors)
    spec.one_of("volumeMode", ("Block", "Filesystem"))
    spec.name("volumeAttributesClassName", subdomain_errors)


def _claim(manifest: Checked) -> None:
    _claim_spec(manifest.at("spec"))


def _claim_spec(spec: Checked) -> None:
    _modes(spec, "at least 1 access mode is required")
    spec.selector("selector")
    requests = spec.at("resources", "requests").document
    if "storage" not in requests:
        spec.required("resources[storage]")
    else:
        _some_room(spec, "resources[storage]", requests["storage"])
    _of_class(spec)
    for key in ("dataSource", "dataSourceRef"):
        if not spec.has(key):
            continue
        source = spec.at(key)
        source.needs("name", "kind")
        kind = source.text("kind")
        if not source.text("apiGroup") and kind != "PersistentVolumeClaim":
            words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            source.invalid("", kind, words)


# ---- workloads


def _deployment(manifest: Checked) -> None:
    spec = manifest.at("spec")
    spec.least("replicas")
    _lasting(spec, "deployment", "ReplicaSet")
    strategy = spec.at("strategy")
    type_ = _strategy_type(strategy, ("Recreate", "RollingUpdate"))
    if type_ == "Recreate" and strategy.has("rollingUpdate"):
        strategy.forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif type_ == "RollingUpdate":
        rolling = strategy.at("rollingUpdate")
        gone = rolling.int_or_percent("maxUnavailable")
        surge = rolling.int_or_percent("maxSurge", bounded=False)
        if gone is False and surge is False:
            value = rolling.get("maxUnavailable")
            rolling.invalid("maxUnavailable", value, "may not be 0 when `maxSurge` is 0")
    ready_s = spec.least("minReadySeconds") or 0
    spec.least("revisionHistoryLimit")
    deadline_s = spec.least("progressDeadlineSeconds")
    deadline_s = 600 if deadline_s is None else deadline_s
    if deadline_s <= ready_s:
        spec.invalid("progressDeadlineSeconds", deadline_s, "must be greater than minReadySeconds")


def _strategy_type(strategy: Checked, supported: tuple[str, ...]) -> str:
    """Check the type of a strategy; returns it, defaulted."""
    type_ = strategy.text("type") or "RollingUpdate"
    if type_ not in supported:
        strategy.unsupported("", dict(strategy.document), supported)
    return type_


def _lasting(spec: Checked, whose: str, kind: str, *, needed: bool = True) -> None:
    meta = spec.at("template", "metadata")
    spec.template_selector(string_map(meta.document, "labels", meta.path), whose, needed=needed)
    pods.lasting_template(spec, kind)
    simulation_annotations(meta)


def _replica_set(manifest: Checked) -> None:
    spec = manifest.at("spec")
    spec.least("replicas", "minReadySeconds")
    _lasting(spec, "deployment", "ReplicaSet")


def _replication_controller(manifest: Checked) -> None:
    spec = manifest.at("spec")
    spec.least("minReadySeconds", "replicas")
    # Its selector is a map, and its template's labels where it has none.
    selector = spec.at("selector").document
    document = {**spec.document, "selector": {"matchLabels": selector} if selector else None}
    whole = Checked(document, spec.problems, spec.path)
    _lasting(whole, "replicationcontroller", "ReplicationController", needed=False)


def _stateful_set(manifest: Checked) -> None:
    spec = manifest.at("spec")
    policy = spec.text("podManagementPolicy")
    if policy not in ("", "OrderedReady", "Parallel"):
        spec.invalid("podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.at("updateStrategy")
    type_ = strategy.text("type") or "RollingUpdate"
    rolling = strategy.at("rollingUpdate")
    if type_ not in ("RollingUpdate", "OnDelete"):
        strategy.invalid("", dict(strategy.document), "must be 'RollingUpdate' or 'OnDelete'")
    elif type_ == "OnDelete" and strategy.has("rollingUpdate"):
        rolling.invalid("", dict(rolling.document), "only allowed for updateStrategy 'RollingUpdate'")
    elif type_ == "RollingUpdate":
        rolling.least("partition")
        if rolling.int_or_percent("maxUnavailable") is False:
            rolling.invalid("maxUnavailable", rolling.get("maxUnavailable"), "cannot be 0")
    retention = spec.at("persistentVolumeClaimRetentionPolicy")
    for key in ("whenDeleted", "whenScaled"):
        retention.one_of(key, ("Retain", "Delete"))
    for claim in spec.each("volumeClaimTemplates"):
        _claim_spec(claim.at("spec"))
    spec.least("replicas", "minReadySeconds")
    spec.at("ordinals").least("start")
    spec.name("serviceName", label_errors)
    _lasting(spec, "statefulset", "StatefulSet")


def _daemon_set(manifest: Checked) -> None:
    spec = manifest.at("spec")
    _lasting(spec, "daemonset", "DaemonSet")
    spec.least("minReadySeconds")
    strategy = spec.at("updateStrategy")
    if _strategy_type(strategy, ("RollingUpdate", "OnDelete")) == "RollingUpdate":
        written = strategy.at("rollingUpdate")
        whole = {"maxUnavailable": 1, "maxSurge": 0, **written.document}
        rolling = Checked(whole, written.problems, written.path)
        gone, surge = rolling.int_or_percent("maxUnavailable"), rolling.int_or_percent("maxSurge")
        if gone and surge:
            rolling.invalid("maxSurge", whole["maxSurge"], "may not be set when maxUnavailable is non-zero")
        elif not gone and not surge:
            rolling.required("maxUnavailable", "cannot be 0 when maxSurge is 0")
    spec.least("revisionHistoryLimit")


def _job(manifest: Checked) -> None:
    spec = manifest.at("spec")
    jobs.job_spec(spec)
    simulation_annotations(spec.at("template", "metadata"))


def _cron_job(manifest: Checked) -> None:
    jobs.cron_job(manifest)
    template = manifest.at("spec", "jobTemplate")
    simulation_annotations(template.at("metadata"))
    simulation_annotations(template.at("spec", "template", "metadata"))


# ---- services, leases, autoscalers


def _service(manifest: Checked) -> None:
    spec = manifest.at("spec")
    ports = spec.each("ports")
    names: set[str] = set()
    for port in ports:
        name = port.text("name")
        if not name and len(ports) > 1:
            port.required("name")
        elif name and port.named("name", label_errors, name):
            port.once(names, "name", name)
        port.port("port", port.whole("port"))
        port.one_of("protocol", pods.PROTOCOLS)
    if spec.get("selector"):
        spec.labels("selector")
    spec.one_of("sessionAffinity", ("ClientIP", "None"))
    spec.one_of("type", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))


def _lease(manifest: Checked) -> None:
    spec = manifest.at("spec")
    spec.least("leaseDurationSeconds", least=1, words=NOT_POSITIVE)
    spec.least("leaseTransitions")
    strategy = spec.said("strategy")
    if strategy is not None and "/" in strategy:
        spec.named("strategy", qualified_name_errors, strategy)
    elif strategy is not None and strategy != "OldestEmulationVersion":
        spec.unsupported("strategy", strategy, ("OldestEmulationVersion",))
    if spec.text("preferredHolder") and not strategy:
        spec.forbidden("preferredHolder", "may only be specified if `strategy` is defined")


_METRICS: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")


def _autoscaler(manifest: Checked) -> None:
    spec = manifest.at("spec")
    least = spec.least("minReplicas", least=1, words="must be greater than or equal to 1")
    most = spec.whole("maxReplicas")
    if most < 1:
        spec.invalid("maxReplicas", most, NOT_POSITIVE)
    if least is not None and most < least:
        spec.invalid("maxReplicas", most, "must be greater than or equal to `minReplicas`")
    spec.at("scaleTargetRef").needs("kind", "name")
    for metric in spec.each("metrics"):
        _metric(metric)
    for direction in ("scaleUp", "scaleDown"):
        _rules(spec.at("behavior", direction))


def _metric(metric: Checked) -> None:
    type_ = metric.one_of("type", _METRICS, required=True)
    if type_ not in _METRICS:
        return
    key = type_[:1].lower() + type_[1:]
    source = metric.at(key)
    if not source.document:
        metric.required(key, "must populate information for the given metric source")
        return
    if key not in ("resource", "containerResource"):
        return
    source.needs("name", detail="must specify a resource name")
    if key == "containerResource":
        source.needs("container", detail="must specify a container")
    target = source.at("target")
    percent, amount = target.number("averageUtilization"), target.get("averageValue")
    if percent is None and amount is None:
        words = "must set either a target raw value or a target utilization"
        target.required("averageUtilization", words)
    elif percent is not None and amount is not None:
        target.forbidden("averageValue", "may not set both a target raw value and a target utilization")
    target.least("averageUtilization", least=1, words=NOT_POSITIVE)
    if amount is not None and target.amount("averageValue", amount).is_zero():
        target.invalid("averageValue", amount, "must be positive")


def _rules(rules: Checked) -> None:
    key = "stabilizationWindowSeconds"
    window = rules.least(key, words="must be greater than or equal to zero")
    if window is not None and window > 3600:
        rules.invalid(key, window, "must be less than or equal to 3600")
    rules.one_of("selectPolicy", ("Disabled", "Max", "Min"))
    for policy in rules.each("policies"):
        policy.one_of("type", ("Percent", "Pods"), required=True)
        value, period = policy.whole("value"), policy.whole("periodSeconds")
        if value < 1:
            policy.invalid("value", value, "must be greater than zero")
        if period < 1:
            policy.invalid("periodSeconds", period, "must be greater than zero")
        elif period > 1800:
            policy.invalid("periodSeconds", period, "must be less than or equal to 1800")


# ---- quotas and limit ranges

_APART: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def _scope_resources() -> Mapping[str, Sequence[str]]:
    """The scopes there are, and which of the standard resources each may go with."""
    found: Mapping[str, Sequence[str]] = table_beside(__package__, "rules.yaml")["scopes"]
    return found


def _quota(manifest: Checked) -> None:
    spec = manifest.at("spec")
    hard = pods.amounts(spec, "hard", "quota")
    scopes = list(spec.texts("scopes"))
    _scopes(spec, "scopes", scopes, hard)
    selector = spec.at("scopeSelector")
    key = "matchExpressions"
    selected = []
    for item in selector.each(key):
        name, operator = item.text("scopeName"), item.text("operator")
        selected.append(name)
        is_plain = name not in ("PriorityClass", "VolumeAttributesClass") and name in _scope_resources()
        if is_plain and operator != "Exists":
            words = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            selector.invalid(f"{key}.operator", operator, words)
        values = item.texts("values")
        if operator in ("In", "NotIn") and not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            selector.required(f"{key}.values", words)
        elif operator in ("Exists", "DoesNotExist") and values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            selector.invalid(f"{key}.values", list(values), words)
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            selector.invalid(f"{key}.operator", operator, "not a valid selector operator")
    _scopes(selector, f"{key}.scopeName", selected, hard)


def _scopes(holder: Checked, key: str, names: list[str], hard: Mapping[str, Any]) -> None:
    standard = [name for name in hard if not pods.resource_name_errors(name, "quota") and "/" not in name]
    for name in dict.fromkeys(names):
        if name not in _scope_resources():
            holder.invalid(key, names, "unsupported scope")
        elif any(resource not in _scope_resources()[name] for resource in standard):
            holder.invalid(key, names, "unsupported scope applied to resource")
    if any(set(pair) <= set(names) for pair in _APART):
        holder.invalid(key, names, "conflicting scopes")


def _limit_range(manifest: Checked) -> None:
    types: set[str] = set()
    for item in manifest.at("spec").each("limits"):
        type_ = item.text("type")
        is_named = item.named("type", qualified_name_errors, type_)
        if is_named and "/" not in type_ and type_ not in ("Pod", "Container", "PersistentVolumeClaim"):
            item.invalid("type", type_, "must be a standard limit type or fully qualified")
        item.once(types, "type", type_)
        names = "container" if type_ in ("Pod", "Container") else "any"
        said: dict[str, dict[str, Quantity]] = {}
        for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            said[key] = pods.amounts(item, key, names)
            if type_ == "Pod" and key.startswith("default") and said[key]:
                item.forbidden(key, "may not be specified when `type` is 'Pod'")
        if type_ == "PersistentVolumeClaim" and "storage" not in {*said["min"], *said["max"]}:
            words = "either minimum or maximum storage value is required, but neither was provided"
            item.required("limits", words)
        _order(item, said)


def _order(item: Checked, said: Mapping[str, Mapping[str, Quantity]]) -> None:
    for low, high, words, blamed in table_beside(__package__, "rules.yaml")["limits"]:
        for name, amount in said[low].items():
            other = said[high].get(name)
            if other is not None and amount.cmp(other) > 0:
                at_fault = said["defaultRequest"][name] if blamed == "defaultRequest" else amount
                item.invalid(f"{blamed}[{name}]", str(at_fault), words.format(amount, other))
    one = quantity_from(1)
    for name, ratio in said["maxLimitRequestRatio"].items():
        where = f"maxLimitRequestRatio[{name}]"
        if ratio.cmp(one) < 0:
            item.invalid(where, str(ratio), f"ratio {ratio} is less than 1")
        least, most = said["min"].get(name), said["max"].get(name)
        if least is not None and most is not None and least.sign() > 0:
            bound = most.as_approximate_float() / least.as_approximate_float()
            if ratio.as_approximate_float() > bound:
                item.invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {bound:f}")
    for name, amount in said["default"].items():
        request = said["defaultRequest"].get(name)
        if request is not None and amount != request and not pods.may_overcommit(name):
            words = f"default value {amount} must equal to defaultRequest value {request} in {name}"
            item.invalid(f"defaultRequest[{name}]", str(request), words)


_RULES: Final[Mapping[str, Callable[[Checked], None]]] = {
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "HorizontalPodAutoscaler": _autoscaler,
    "Job": _job,
    "Lease": _lease,
    "LimitRange": _limit_range,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": pods.pod,
    "PodDisruptionBudget": _budget,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replication_controller,
    "ResourceQuota": _quota,
    "Service": _service,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
    **devices.RULES,
}
