"""Rules of objects by kind; those of pods, jobs and devices are in other files.

Source: pkg/apis/{core,apps,policy,storage,scheduling,coordination,autoscaling}/validation/validation.go, v1.36
Differs: what nothing here follows is stored unchecked; a claim may be in a volume of any source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES
from scheduler_core.objects.fields import (
    Document,
    boolean,
    duration_ns,
    integer,
    mapping,
    mappings,
    optional_integer,
    optional_string,
    string,
    string_map,
    strings,
)
from scheduler_core.objects.labels import (
    label_errors,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.quantity import Quantity, quantity_from
from scheduler_core.releases import DEFAULT, Release
from scheduler_core.schema.fields_check import check_fields
from scheduler_core.schema.tables import table_beside, types_by_kind
from scheduler_core.sim.admission import HIGHEST_USER_PRIORITY, SYSTEM_PREFIX
from scheduler_core.sim.kubelet import DURATION, ENDS_AS, NEVER, START_DELAY
from scheduler_core.sim.load import LOAD, LoadError, load_from
from scheduler_core.validation import devices, jobs, pods
from scheduler_core.validation.problems import NOT_POSITIVE, FieldErrors

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
    *("CronJob", "DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicaSet", "ReplicationController"),
    "StatefulSet",
)
"""Kinds whose annotations may say how long pods last and what they use."""


def is_own(manifest: Document) -> bool:
    """Whether it is of one of Kubernetes' own kinds, in a version that has it; one without a version is by its kind."""
    version = manifest.get("apiVersion")
    return version is None or (version, manifest.get("kind")) in types_by_kind()


def validate(manifest: Document, release: Release = DEFAULT) -> None:
    """Check one object, defaulted or not; of kinds that are not Kubernetes' own the metadata alone.

    Raises
    ------
    InvalidObject
        With everything that is wrong (`errors`).
    """
    problems = FieldErrors(release)
    _metadata(problems, manifest)
    kind = string(manifest, "kind", "")
    if is_own(manifest):
        if kind in _SIMULATED:
            simulation_annotations(problems, mapping(manifest, "metadata", ""), "metadata")
        if rule := _RULES.get(kind):
            rule(problems, manifest)
    problems.refuse()


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
    _metadata(problems, manifest)
    problems.refuse()


def _metadata(problems: FieldErrors, manifest: Document) -> None:
    kind = string(manifest, "kind", "") if is_own(manifest) else ""
    meta = mapping(manifest, "metadata", "")
    name = string(meta, "name", "metadata")
    if not name:
        problems.required("metadata.name", "name or generateName is required")
    elif kind in _PATH_NAMED:
        for part, detail in ((".", "may not be '.'"), ("..", "may not be '..'")):
            if name == part:
                problems.invalid("metadata.name", name, detail)
        for part in "/%":
            if part in name:
                problems.invalid("metadata.name", name, f"may not contain '{part}'")
    else:
        problems.named(label_errors if kind in _LABEL_NAMED else subdomain_errors, name, "metadata.name")
    if namespace := string(meta, "namespace", "metadata"):
        problems.named(label_errors, namespace, "metadata.namespace")
    if meta.get("labels"):
        problems.labels(meta, "labels", "metadata")
    if meta.get("annotations"):
        given = string_map(meta, "annotations", "metadata")
        for key in given:
            problems.named(_any_case, key, "metadata.annotations")
        if (
            annotation_bytes({key: text for key, text in given.items() if key != LAST_APPLIED})
            > ANNOTATION_BYTES
        ):
            problems.too_long("metadata.annotations", ANNOTATION_BYTES)


def _any_case(name: str) -> tuple[str, ...]:
    return qualified_name_errors(name.lower())


def annotation_bytes(annotations: Mapping[str, str]) -> int:
    """How much room annotations take."""
    return sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())


def simulation_annotations(problems: FieldErrors, meta: Document, path: str) -> None:
    """Check the annotations that say how long pods last and what they use: they are this simulation's own."""
    given = mapping(meta, "annotations", path)
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
            problems.invalid(
                f"{path}.annotations[{name}]", text, f"is not a duration like 30s, 5m or 1h30m{also}"
            )
    if given.get(ENDS_AS, _ENDS[0]) not in _ENDS:
        problems.unsupported(f"{path}.annotations[{ENDS_AS}]", given[ENDS_AS], _ENDS)
    if LOAD in given:
        try:
            load_from(str(given[LOAD]))
        except LoadError as error:
            problems.invalid(f"{path}.annotations[{LOAD}]", given[LOAD], str(error))


# ---- nodes, budgets, classes


def _node(problems: FieldErrors, manifest: Document) -> None:
    seen: set[tuple[str, str]] = set()
    # Upstream's paths, which leave `spec` out for taints and write resources with dots.
    for where, taint in mappings(mapping(manifest, "spec", ""), "taints", "spec"):
        path = where.replace("spec", "metadata", 1)
        key, value = string(taint, "key", where), string(taint, "value", where)
        effect = string(taint, "effect", where)
        problems.named(qualified_name_errors, key, f"{path}.key")
        if wrong := label_value_errors(value):
            problems.invalid(f"{path}.value", value, ";".join(wrong))
        problems.one_of(taint, "effect", path, pods.EFFECTS, required=True)
        if (key, effect) in seen:
            shown = {key: taint[key] for key in ("key", "value", "effect", "timeAdded") if taint.get(key)}
            problems.duplicate(path, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))
    status = mapping(manifest, "status", "")
    for key in ("capacity", "allocatable"):
        for name, value in mapping(status, key, "status").items():
            path = f"status.{key}.{name}"
            amount = problems.amount(value, path)
            if pods.is_whole(str(name)) and amount.milli_value() % 1000:
                problems.invalid(path, str(amount), "must be an integer")


def _budget(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        problems.invalid("spec", dict(spec), "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        problems.int_or_percent(spec, key, "spec")
    problems.selector(spec, "selector", "spec")
    problems.one_of(spec, "unhealthyPodEvictionPolicy", "spec", ("AlwaysAllow", "IfHealthyBudget"))
    status = mapping(manifest, "status", "")
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        problems.at_least(status, key, "status")


def _priority_class(problems: FieldErrors, manifest: Document) -> None:
    name = string(mapping(manifest, "metadata", ""), "name", "metadata")
    value = integer(manifest, "value", "")
    if name.startswith(SYSTEM_PREFIX):
        if wrong := _no_system_class(name, value, boolean(manifest, "globalDefault", "")):
            words = "priority class names with 'system-' prefix are reserved for system use only. error: "
            problems.forbidden("metadata.name", words + wrong)
    elif value > HIGHEST_USER_PRIORITY:
        words = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        problems.forbidden("value", words)
    problems.one_of(manifest, "preemptionPolicy", "", pods.POLICIES)


def _no_system_class(name: str, value: int, global_default: bool) -> str:
    """Why it is none of the classes every cluster has. Source: helpers.go IsKnownSystemPriorityClass."""
    if name not in SYSTEM_PRIORITY_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_PRIORITY_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_PRIORITY_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if global_default else ""


def _storage_class(problems: FieldErrors, manifest: Document) -> None:
    provisioner = string(manifest, "provisioner", "")
    if provisioner:
        problems.named(_any_case, provisioner, "provisioner")
    else:
        problems.required("provisioner")
    parameters = string_map(manifest, "parameters", "")
    if len(parameters) > 512:
        problems.too_long("parameters", 512)
    elif annotation_bytes(parameters) > ANNOTATION_BYTES:
        problems.too_long("parameters", ANNOTATION_BYTES)
    problems.one_of(manifest, "reclaimPolicy", "", ("Delete", "Retain"))
    problems.one_of(manifest, "volumeBindingMode", "", ("Immediate", "WaitForFirstConsumer"))
    for where, term in mappings(manifest, "allowedTopologies", ""):
        _topology(problems, term, where)


def _topology(problems: FieldErrors, term: Document, path: str) -> None:
    keys: set[str] = set()
    for where, item in mappings(term, "matchLabelExpressions", path):
        key, values = string(item, "key", where), strings(item, "values", where)
        if not values:
            problems.required(f"{where}.values")
        seen: set[str] = set()
        for index, value in enumerate(values):
            if value in seen:
                problems.duplicate(f"{where}.values[{index}]", value)
            seen.add(value)
        problems.named(qualified_name_errors, key, f"{where}.key")
        if key in keys:
            problems.duplicate(f"{where}.key", key)
        keys.add(key)


# ---- volumes


def _volume(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _modes(problems, spec, "spec", "")
    capacity = mapping(spec, "capacity", "spec")
    if not capacity:
        problems.required("spec.capacity")
    if "storage" not in capacity or len(capacity) > 1:
        problems.unsupported("spec.capacity", dict(capacity) or None, ("storage",))
    for name, value in capacity.items():
        amount = problems.amount(value, f"spec.capacity[{name}]")
        if amount.is_zero():
            problems.invalid(f"spec.capacity[{name}]", str(amount), NOT_POSITIVE)
    problems.one_of(spec, "persistentVolumeReclaimPolicy", "spec", ("Delete", "Recycle", "Retain"))
    affinity = mapping(spec, "nodeAffinity", "spec")
    if affinity.get("required") is not None:
        problems.node_selector(
            mapping(affinity, "required", "spec.nodeAffinity"), "spec.nodeAffinity.required"
        )
    elif spec.get("nodeAffinity") is not None:
        problems.required("spec.nodeAffinity.required", "must specify required node constraints")
    if spec.get("local") is not None and spec.get("nodeAffinity") is None:
        problems.required("spec.nodeAffinity", "Local volume requires node affinity")
    _of_class(problems, spec, "spec")


def _modes(problems: FieldErrors, spec: Document, path: str, required: str) -> None:
    modes = strings(spec, "accessModes", path)
    if not modes:
        problems.required(f"{path}.accessModes", required)
    for mode in modes:
        if mode not in _MODES:
            problems.unsupported(f"{path}.accessModes", mode, _MODES)
    if _MODES[3] in modes and set(modes) & set(_MODES[:3]):
        words = "may not use ReadWriteOncePod with other access modes"
        problems.forbidden(f"{path}.accessModes", words)


def _of_class(problems: FieldErrors, spec: Document, path: str) -> None:
    if name := string(spec, "storageClassName", path):
        problems.named(subdomain_errors, name, f"{path}.storageClassName")
    problems.one_of(spec, "volumeMode", path, ("Block", "Filesystem"))
    if name := string(spec, "volumeAttributesClassName", path):
        problems.named(subdomain_errors, name, f"{path}.volumeAttributesClassName")


def _claim(problems: FieldErrors, manifest: Document) -> None:
    claim_spec(problems, mapping(manifest, "spec", ""), "spec")


def claim_spec(problems: FieldErrors, spec: Document, path: str) -> None:
    """Check the spec of a PersistentVolumeClaim."""
    _modes(problems, spec, path, "at least 1 access mode is required")
    problems.selector(spec, "selector", path)
    requests = mapping(mapping(spec, "resources", path), "requests", f"{path}.resources")
    place = f"{path}.resources[storage]"
    if "storage" not in requests:
        problems.required(place)
    elif (amount := problems.amount(requests["storage"], place)).is_zero():
        problems.invalid(place, str(amount), NOT_POSITIVE)
    _of_class(problems, spec, path)
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is None:
            continue
        source, where = mapping(spec, key, path), f"{path}.{key}"
        for field in ("name", "kind"):
            if not string(source, field, where):
                problems.required(f"{where}.{field}")
        kind = string(source, "kind", where)
        if not string(source, "apiGroup", where) and kind != "PersistentVolumeClaim":
            words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            problems.invalid(where, kind, words)


# ---- workloads


def _replicas(problems: FieldErrors, spec: Document) -> None:
    problems.at_least(spec, "replicas", "spec")


def _deployment(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _replicas(problems, spec)
    _lasting(problems, spec, "deployment", "ReplicaSet")
    strategy = mapping(spec, "strategy", "spec")
    type_ = problems_of_strategy(problems, strategy, "spec.strategy", ("Recreate", "RollingUpdate"))
    if type_ == "Recreate" and strategy.get("rollingUpdate") is not None:
        words = "may not be specified when strategy `type` is 'Recreate'"
        problems.forbidden("spec.strategy.rollingUpdate", words)
    elif type_ == "RollingUpdate":
        rolling, path = mapping(strategy, "rollingUpdate", "spec.strategy"), "spec.strategy.rollingUpdate"
        gone = problems.int_or_percent(rolling, "maxUnavailable", path)
        surge = problems.int_or_percent(rolling, "maxSurge", path, bounded=False)
        if gone is False and surge is False:
            value = rolling["maxUnavailable"]
            problems.invalid(f"{path}.maxUnavailable", value, "may not be 0 when `maxSurge` is 0")
    ready_s = problems.at_least(spec, "minReadySeconds", "spec") or 0
    problems.at_least(spec, "revisionHistoryLimit", "spec")
    deadline_s = problems.at_least(spec, "progressDeadlineSeconds", "spec")
    if (600 if deadline_s is None else deadline_s) <= ready_s:
        words = "must be greater than minReadySeconds"
        problems.invalid("spec.progressDeadlineSeconds", 600 if deadline_s is None else deadline_s, words)


def problems_of_strategy(
    problems: FieldErrors, strategy: Document, path: str, supported: tuple[str, ...]
) -> str:
    """Check the type of a strategy; returns it, defaulted."""
    type_ = string(strategy, "type", path) or "RollingUpdate"
    if type_ not in supported:
        problems.unsupported(path, dict(strategy), supported)
    return type_


def _lasting(problems: FieldErrors, spec: Document, whose: str, kind: str, *, needed: bool = True) -> None:
    labels = string_map(mapping(mapping(spec, "template", "spec"), "metadata", "spec.template"), "labels",
                        "spec.template.metadata")  # fmt: skip
    problems.template_selector(spec, labels, "spec", whose, needed=needed)
    pods.lasting_template(problems, spec, "spec", kind)
    simulation_annotations(problems, mapping(mapping(spec, "template", "spec"), "metadata", "spec.template"),
                "spec.template.metadata")  # fmt: skip


def _replica_set(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _replicas(problems, spec)
    problems.at_least(spec, "minReadySeconds", "spec")
    _lasting(problems, spec, "deployment", "ReplicaSet")


def _replication_controller(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    problems.at_least(spec, "minReadySeconds", "spec")
    _replicas(problems, spec)
    # Its selector is a map, and its template's labels where it has none.
    selector = mapping(spec, "selector", "spec")
    document = {**spec, "selector": {"matchLabels": selector} if selector else None}
    _lasting(problems, document, "replicationcontroller", "ReplicationController", needed=False)


def _stateful_set(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    policy = string(spec, "podManagementPolicy", "spec")
    if policy not in ("", "OrderedReady", "Parallel"):
        problems.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = mapping(spec, "updateStrategy", "spec")
    type_ = string(strategy, "type", "spec.updateStrategy") or "RollingUpdate"
    path = "spec.updateStrategy.rollingUpdate"
    rolling = mapping(strategy, "rollingUpdate", "spec.updateStrategy")
    if type_ not in ("RollingUpdate", "OnDelete"):
        problems.invalid("spec.updateStrategy", dict(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif type_ == "OnDelete" and strategy.get("rollingUpdate") is not None:
        problems.invalid(path, dict(rolling), "only allowed for updateStrategy 'RollingUpdate'")
    elif type_ == "RollingUpdate":
        problems.at_least(rolling, "partition", path)
        if problems.int_or_percent(rolling, "maxUnavailable", path) is False:
            problems.invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], "cannot be 0")
    retention = mapping(spec, "persistentVolumeClaimRetentionPolicy", "spec")
    for key in ("whenDeleted", "whenScaled"):
        problems.one_of(retention, key, "spec.persistentVolumeClaimRetentionPolicy", ("Retain", "Delete"))
    for where, claim in mappings(spec, "volumeClaimTemplates", "spec"):
        claim_spec(problems, mapping(claim, "spec", where), f"{where}.spec")
    _replicas(problems, spec)
    problems.at_least(spec, "minReadySeconds", "spec")
    problems.at_least(mapping(spec, "ordinals", "spec"), "start", "spec.ordinals")
    if name := string(spec, "serviceName", "spec"):
        problems.named(label_errors, name, "spec.serviceName")
    _lasting(problems, spec, "statefulset", "StatefulSet")


def _daemon_set(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _lasting(problems, spec, "daemonset", "DaemonSet")
    problems.at_least(spec, "minReadySeconds", "spec")
    strategy, path = mapping(spec, "updateStrategy", "spec"), "spec.updateStrategy.rollingUpdate"
    type_ = problems_of_strategy(problems, strategy, "spec.updateStrategy", ("RollingUpdate", "OnDelete"))
    if type_ == "RollingUpdate":
        rolling = {"maxUnavailable": 1, "maxSurge": 0,
                   **mapping(strategy, "rollingUpdate", "spec.updateStrategy")}  # fmt: skip
        gone = problems.int_or_percent(rolling, "maxUnavailable", path)
        surge = problems.int_or_percent(rolling, "maxSurge", path)
        if gone and surge:
            words = "may not be set when maxUnavailable is non-zero"
            problems.invalid(f"{path}.maxSurge", rolling["maxSurge"], words)
        elif not gone and not surge:
            problems.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    problems.at_least(spec, "revisionHistoryLimit", "spec")


def _job(problems: FieldErrors, manifest: Document) -> None:
    jobs.job_spec(problems, mapping(manifest, "spec", ""), "spec")
    _job_annotations(problems, mapping(manifest, "spec", ""), "spec")


def _cron_job(problems: FieldErrors, manifest: Document) -> None:
    spec = jobs.cron_job(problems, manifest)
    template = mapping(mapping(manifest, "spec", ""), "jobTemplate", "spec")
    simulation_annotations(
        problems, mapping(template, "metadata", "spec.jobTemplate"), "spec.jobTemplate.metadata"
    )
    _job_annotations(problems, spec, "spec.jobTemplate.spec")


def _job_annotations(problems: FieldErrors, spec: Document, path: str) -> None:
    meta = mapping(mapping(spec, "template", path), "metadata", f"{path}.template")
    simulation_annotations(problems, meta, f"{path}.template.metadata")


# ---- services, leases, autoscalers


def _service(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    ports = mappings(spec, "ports", "spec")
    names: set[str] = set()
    for path, port in ports:
        name = string(port, "name", path)
        if not name and len(ports) > 1:
            problems.required(f"{path}.name")
        elif name and problems.named(label_errors, name, f"{path}.name") and name in names:
            problems.duplicate(f"{path}.name", name)
        names.add(name)
        problems.port(optional_integer(port, "port", path) or 0, f"{path}.port")
        problems.one_of(port, "protocol", path, pods.PROTOCOLS)
    if spec.get("selector"):
        problems.labels(spec, "selector", "spec")
    problems.one_of(spec, "sessionAffinity", "spec", ("ClientIP", "None"))
    problems.one_of(spec, "type", "spec", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))


def _lease(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    problems.at_least(spec, "leaseDurationSeconds", "spec", 1, NOT_POSITIVE)
    problems.at_least(spec, "leaseTransitions", "spec")
    strategy = optional_string(spec, "strategy", "spec")
    if strategy is not None and "/" in strategy:
        problems.named(qualified_name_errors, strategy, "spec.strategy")
    elif strategy is not None and strategy != "OldestEmulationVersion":
        problems.unsupported("spec.strategy", strategy, ("OldestEmulationVersion",))
    if string(spec, "preferredHolder", "spec") and not strategy:
        words = "may only be specified if `strategy` is defined"
        problems.forbidden("spec.preferredHolder", words)


_METRICS: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")


def _autoscaler(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    least = problems.at_least(spec, "minReplicas", "spec", 1, "must be greater than or equal to 1")
    most = integer(spec, "maxReplicas", "spec")
    if most < 1:
        problems.invalid("spec.maxReplicas", most, NOT_POSITIVE)
    if least is not None and most < least:
        words = "must be greater than or equal to `minReplicas`"
        problems.invalid("spec.maxReplicas", most, words)
    reference = mapping(spec, "scaleTargetRef", "spec")
    for field in ("kind", "name"):
        if not string(reference, field, "spec.scaleTargetRef"):
            problems.required(f"spec.scaleTargetRef.{field}")
    for path, metric in mappings(spec, "metrics", "spec"):
        _metric(problems, metric, path)
    behavior = mapping(spec, "behavior", "spec")
    for direction in ("scaleUp", "scaleDown"):
        _rules(problems, mapping(behavior, direction, "spec.behavior"), f"spec.behavior.{direction}")


def _metric(problems: FieldErrors, metric: Document, path: str) -> None:
    type_ = problems.one_of(metric, "type", path, _METRICS, required=True)
    if type_ not in _METRICS:
        return
    key = type_[:1].lower() + type_[1:]
    source, place = mapping(metric, key, path), f"{path}.{key}"
    if not source:
        problems.required(place, "must populate information for the given metric source")
        return
    if key not in ("resource", "containerResource"):
        return
    if not string(source, "name", place):
        problems.required(f"{place}.name", "must specify a resource name")
    if key == "containerResource" and not string(source, "container", place):
        problems.required(f"{place}.container", "must specify a container")
    target, where = mapping(source, "target", place), f"{place}.target"
    percent, amount = optional_integer(target, "averageUtilization", where), target.get("averageValue")
    if percent is None and amount is None:
        words = "must set either a target raw value or a target utilization"
        problems.required(f"{where}.averageUtilization", words)
    elif percent is not None and amount is not None:
        words = "may not set both a target raw value and a target utilization"
        problems.forbidden(f"{where}.averageValue", words)
    if percent is not None and percent < 1:
        problems.invalid(f"{where}.averageUtilization", percent, NOT_POSITIVE)
    if amount is not None and problems.amount(amount, f"{where}.averageValue").is_zero():
        problems.invalid(f"{where}.averageValue", amount, "must be positive")


def _rules(problems: FieldErrors, rules: Document, path: str) -> None:
    window = problems.at_least(
        rules, "stabilizationWindowSeconds", path, 0, "must be greater than or equal to zero"
    )
    if window is not None and window > 3600:
        problems.invalid(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    problems.one_of(rules, "selectPolicy", path, ("Disabled", "Max", "Min"))
    for place, policy in mappings(rules, "policies", path):
        problems.one_of(policy, "type", place, ("Percent", "Pods"), required=True)
        value, period = integer(policy, "value", place), integer(policy, "periodSeconds", place)
        if value < 1:
            problems.invalid(f"{place}.value", value, "must be greater than zero")
        if period < 1:
            problems.invalid(f"{place}.periodSeconds", period, "must be greater than zero")
        elif period > 1800:
            problems.invalid(f"{place}.periodSeconds", period, "must be less than or equal to 1800")


# ---- quotas and limit ranges

_APART: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def _scope_resources() -> Mapping[str, Sequence[str]]:
    """The scopes there are, and which of the standard resources each may go with."""
    found: Mapping[str, Sequence[str]] = table_beside(__file__, "rules.yaml")["scopes"]
    return found


def _quota(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    hard = pods.amounts(problems, spec, "hard", "spec", "quota")
    scopes = list(strings(spec, "scopes", "spec"))
    _scopes(problems, scopes, scopes, hard, "spec.scopes")
    selector = mapping(spec, "scopeSelector", "spec")
    place = "spec.scopeSelector.matchExpressions"
    selected = []
    for where, item in mappings(selector, "matchExpressions", "spec.scopeSelector"):
        name, operator = string(item, "scopeName", where), string(item, "operator", where)
        selected.append(name)
        if (
            name not in ("PriorityClass", "VolumeAttributesClass")
            and name in _scope_resources()
            and operator != "Exists"
        ):
            words = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            problems.invalid(f"{place}.operator", operator, words)
        values = strings(item, "values", where)
        if operator in ("In", "NotIn") and not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            problems.required(f"{place}.values", words)
        elif operator in ("Exists", "DoesNotExist") and values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            problems.invalid(f"{place}.values", list(values), words)
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            problems.invalid(f"{place}.operator", operator, "not a valid selector operator")
    _scopes(problems, selected, selected, hard, f"{place}.scopeName")


def _scopes(problems: FieldErrors, names: list[str], shown: Any, hard: Mapping[str, Any], place: str) -> None:
    standard = [name for name in hard if not pods.resource_name_errors(name, "quota") and "/" not in name]
    for name in dict.fromkeys(names):
        if name not in _scope_resources():
            problems.invalid(place, shown, "unsupported scope")
        elif any(resource not in _scope_resources()[name] for resource in standard):
            problems.invalid(place, shown, "unsupported scope applied to resource")
    if any(set(pair) <= set(names) for pair in _APART):
        problems.invalid(place, shown, "conflicting scopes")


def _limit_range(problems: FieldErrors, manifest: Document) -> None:
    types = set()
    for place, item in mappings(mapping(manifest, "spec", ""), "limits", "spec"):
        type_ = string(item, "type", place)
        wrong = list(qualified_name_errors(type_))
        if not wrong and "/" not in type_ and type_ not in ("Pod", "Container", "PersistentVolumeClaim"):
            wrong = ["must be a standard limit type or fully qualified"]
        for detail in wrong:
            problems.invalid(f"{place}.type", type_, detail)
        if type_ in types:
            problems.duplicate(f"{place}.type", type_)
        types.add(type_)
        names = "container" if type_ in ("Pod", "Container") else "any"
        said: dict[str, dict[str, Quantity]] = {}
        for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            said[key] = pods.amounts(problems, item, key, place, names)
            if type_ == "Pod" and key.startswith("default") and said[key]:
                problems.forbidden(f"{place}.{key}", "may not be specified when `type` is 'Pod'")
        if type_ == "PersistentVolumeClaim" and "storage" not in {*said["min"], *said["max"]}:
            words = "either minimum or maximum storage value is required, but neither was provided"
            problems.required(f"{place}.limits", words)
        _order(problems, said, place)


def _order(problems: FieldErrors, said: Mapping[str, Mapping[str, Quantity]], place: str) -> None:
    for low, high, words, blamed in table_beside(__file__, "rules.yaml")["limits"]:
        for name, amount in said[low].items():
            other = said[high].get(name)
            if other is not None and amount.cmp(other) > 0:
                at_fault = said["defaultRequest"][name] if blamed == "defaultRequest" else amount
                problems.invalid(f"{place}.{blamed}[{name}]", str(at_fault), words.format(amount, other))
    one = quantity_from(1)
    for name, ratio in said["maxLimitRequestRatio"].items():
        where = f"{place}.maxLimitRequestRatio[{name}]"
        if ratio.cmp(one) < 0:
            problems.invalid(where, str(ratio), f"ratio {ratio} is less than 1")
        least, most = said["min"].get(name), said["max"].get(name)
        if least is not None and most is not None and least.sign() > 0:
            bound = most.as_approximate_float() / least.as_approximate_float()
            if ratio.as_approximate_float() > bound:
                problems.invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {bound:f}")
    for name, amount in said["default"].items():
        request = said["defaultRequest"].get(name)
        if request is not None and amount != request and not pods.may_overcommit(name):
            words = f"default value {amount} must equal to defaultRequest value {request} in {name}"
            problems.invalid(f"{place}.defaultRequest[{name}]", str(request), words)


_RULES: Final[Mapping[str, Callable[[FieldErrors, Document], None]]] = {
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
