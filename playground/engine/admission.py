"""From posted objects to those an API server would keep: default, admit, validate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import KeptPriority, PriorityClasses, prepare, priority_class_from
from scheduler_core.objects.fields import mapping, mappings
from scheduler_core.objects.labels import subdomain_errors
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.objects.reading import Posted
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.admission import with_default_tolerations
from scheduler_core.sim.kubelet import RESIZED
from scheduler_core.validation import jobs
from scheduler_core.validation.admission import admitted
from scheduler_core.validation.kinds import (
    ANNOTATION_BYTES,
    LAST_APPLIED,
    annotation_bytes,
    validate_metadata,
)
from scheduler_core.validation.problems import Checked, FieldErrors


def priority_classes(manifests: Iterable[Mapping[str, Any]]) -> PriorityClasses:
    """What pods may name, from PriorityClass manifests."""
    return PriorityClasses([priority_class_from(manifest) for manifest in manifests])


def as_read_today(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A stored object with the defaults of today, as an API server reads what an earlier version stored.

    What admission decided when it was created stays.
    """
    kept = manifest.get("kind") in ("Pod", "PodGroup")
    classes = KeptPriority(manifest.get("spec") or {}) if kept else PriorityClasses()
    return with_workload_defaults(prepare(manifest, classes))


def check_metadata(posted: Posted) -> None:
    """Check name, namespace, labels and annotations alone, of an object the simulation does not read.

    Raises
    ------
    InvalidManifest
    """
    try:
        validate_metadata(posted.manifest)
    except InvalidObject as error:
        raise posted.invalid(error.in_kubernetes_form()) from None


def admit(
    posted: Posted,
    classes: PriorityClasses,
    *,
    others: Iterable[Mapping[str, Any]] = (),
    old: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The object after v1 defaulting and priority admission, checked.

    Parameters
    ----------
    posted
        What was written. `metadata.uid` must be set already if it is to be another than the derived one.
    classes
        The PriorityClasses of the cluster, for pods and PodGroups to name.
    others
        Their manifests, for a PriorityClass to stand among.
    old
        The object it replaces, of a PriorityClass, a pod or a PodGroup, whose priority is settled when it is created.

    Raises
    ------
    InvalidManifest
        With the place in the text, if it came as text.
    """
    try:
        before = None if old is None else as_read_today(old)
        result = admitted(posted.manifest, classes, others=others, old=before)
        manifest = with_workload_defaults(result)
    except InvalidObject as error:
        raise posted.invalid(error) from None
    if posted.kind == "Pod":
        manifest["spec"] = with_default_tolerations(manifest["spec"])
        status = manifest.get("status") or {}
        manifest["status"] = {**status, "phase": status.get("phase") or "Pending"}
    return manifest


def taken_only_here(manifest: Mapping[str, Any]) -> list[str]:
    """Sentences about a valid object that an API server would refuse, or whose fields nothing follows here."""
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    said = []
    if (size := annotation_bytes(annotations)) > ANNOTATION_BYTES:
        said.append(
            f"metadata.annotations: an API server refuses this object: its annotations have {size} bytes, more than"
            f" {ANNOTATION_BYTES}, because kubectl apply keeps the manifest in {LAST_APPLIED};"
            " use kubectl apply --server-side"
        )
    return [*said, *jobs.not_simulated(manifest)]


_TABLES: Final = table_beside(__package__, "tables.yaml")
_SPECS: Final[Mapping[str, Mapping[str, Any]]] = _TABLES["specs"]
_ROLLING: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = _TABLES["rolling"]


def with_workload_defaults(manifest: dict[str, Any]) -> dict[str, Any]:
    """The object with its kind's defaults; a spec that is no mapping is left for validation to refuse."""
    kind, spec = manifest.get("kind"), manifest.get("spec")
    if not isinstance(kind, str) or kind not in _SPECS or not isinstance(spec, Mapping):
        return manifest
    filled = {**_SPECS[kind], **{key: value for key, value in spec.items() if value is not None}}
    if kind in _ROLLING:
        key, amounts = _ROLLING[kind]
        filled[key] = _rolling(filled[key], amounts)
    if kind == "Job" and filled.get("completions") is None and filled.get("parallelism") is None:
        filled |= {"completions": 1, "parallelism": 1}
    elif kind == "Job":
        filled.setdefault("parallelism", 1)
    return {**manifest, "spec": filled}


def _rolling(strategy: Any, amounts: Mapping[str, Any]) -> Any:
    if not isinstance(strategy, Mapping) or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return strategy
    written = strategy.get("rollingUpdate") or {}
    if not isinstance(written, Mapping):
        return strategy
    return {**strategy, "type": "RollingUpdate", "rollingUpdate": {**amounts, **written}}


# ---- The words of the engine, for those who keep only columns of what it did


def amount_problem(text: str) -> str:
    """What Kubernetes says of a text that is no amount of 0 or more; empty where it is one.

    >>> amount_problem("-5"), amount_problem("16Gi")
    ('Invalid value: "-5": must be greater than or equal to 0', '')
    """
    place = Checked({}, FieldErrors())
    try:
        place.amount("", text)
        place.problems.refuse()
    except InvalidObject as error:
        return error.words
    return ""


def name_problem(text: str) -> str:
    """What Kubernetes says of a text that cannot be the name of most objects; empty where it can."""
    return next(iter(subdomain_errors(text)), "")


# ---- the resize subresource of a pod


def resized(posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The pod with other resources; amounts are not read here.

    Raises
    ------
    InvalidManifest
    """
    try:
        containers = _resized(old, new)
    except InvalidObject as error:
        raise posted.invalid(error) from None
    spec = dict(old["spec"]) | {"containers": containers}
    meta = dict(old["metadata"])
    if spec != old["spec"]:
        meta["generation"] = int(meta.get("generation") or 1) + 1
    return dict(old) | {"metadata": meta, "spec": spec}


def check_quality(posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse what would make another class of pod of it.

    Raises
    ------
    InvalidManifest
    """
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        words = "Pod QOS Class may not change as a result of resizing"
        raise posted.problem(words, path="spec", value=qos_class(new["spec"]))


def _resized(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked = {item.get("name"): item for _, item in mappings(mapping(new, "spec", ""), "containers", "spec")}
    containers = []
    for index, item in enumerate(old["spec"].get("containers") or ()):
        place = f"spec.containers[{index}]"
        wanted = asked.get(item.get("name"))
        if wanted is None:
            words = "Forbidden: containers may not be added or removed by a resize"
            raise InvalidObject("spec.containers", None, words)
        had, gets = item.get("resources") or {}, dict(mapping(wanted, "resources", place))
        for key in ("requests", "limits"):
            path = f"{place}.resources"
            before, after = had.get(key) or {}, mapping(gets, key, path)
            for name in sorted({*before, *after}):
                if name not in RESIZED and before.get(name) != after.get(name):
                    words = "Forbidden: only cpu and memory resources are mutable"
                    raise InvalidObject(f"{path}.{key}", None, words)
                if name in RESIZED and name in before and name not in after:
                    raise InvalidObject(f"{path}.{key}", None, f"Forbidden: resource {key} cannot be removed")
        changed = {key: value for key, value in item.items() if key != "resources"}
        if gets:
            changed["resources"] = gets
        if "resizePolicy" in wanted:
            changed["resizePolicy"] = wanted["resizePolicy"]
        containers.append(changed)
    return containers


def qos_class(spec: Mapping[str, Any]) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`. Source: pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS, v1.34."""
    guaranteed, anything = True, False
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        requests, limits = (
            {
                name: quantity_from(amount)
                for name, amount in (resources.get(key) or {}).items()
                if name in RESIZED
            }
            for key in ("requests", "limits")
        )
        anything |= any(not amount.is_zero() for amount in (*requests.values(), *limits.values()))
        for name in RESIZED:
            limit = limits.get(name)
            if limit is None or limit.is_zero() or requests.get(name, limit).cmp(limit) != 0:
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
