"""From posted objects to those an API server would keep: default, admit, validate."""

from collections.abc import Iterable, Mapping
from typing import Any

from playground.engine.validation import validate, validate_metadata
from playground.engine.workload_defaults import with_workload_defaults
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import (
    KeptPriority,
    PriorityClasses,
    prepare,
    priority_class_from,
)
from scheduler_core.objects.reading import (
    WRONG,
    ManifestProblem,
    Posted,
    from_objects,
    problem_of_type,
    read_posted,
    type_of,
)
from scheduler_core.objects.writing import DocumentWriter, dump_yaml
from scheduler_core.sim.admission import (
    POD_UPDATES,
    SYSTEM_PREFIX,
    check_priority_class,
    check_priority_is_kept,
    system_priority_classes,
    with_default_tolerations,
    with_gated_condition,
)

__all__ = [
    "POD_UPDATES",
    "SYSTEM_PREFIX",
    "WRONG",
    "DocumentWriter",
    "InvalidObject",
    "ManifestProblem",
    "Posted",
    "PriorityClasses",
    "admit",
    "as_read_today",
    "check_metadata",
    "dump_yaml",
    "from_objects",
    "priority_classes",
    "problem_of_type",
    "read_posted",
    "system_priority_classes",
    "type_of",
    "with_gated_condition",
]


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


def check_metadata(posted: Posted, kind: str = "") -> None:
    """Check name, namespace, labels and annotations alone, of an object the simulation does not read.

    Raises
    ------
    ManifestProblem
    """
    try:
        validate_metadata(posted.manifest, kind)
    except InvalidObject as error:
        raise posted.invalid(error) from None


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
    ManifestProblem
        With the place in the text, if it came as text.
    """
    try:
        if posted.kind in ("Pod", "PodGroup") and old is not None:
            classes = KeptPriority(old.get("spec") or {})
        manifest = with_workload_defaults(prepare(posted.manifest, classes))
        if posted.kind == "Pod":
            manifest["spec"] = with_default_tolerations(manifest["spec"])
            status = manifest.get("status")
            manifest["status"] = {"phase": "Pending"} | (dict(status) if isinstance(status, Mapping) else {})
            if not manifest["status"].get("phase"):
                manifest["status"]["phase"] = "Pending"
        validate(manifest)
        if posted.kind == "PodGroup" and old is not None:
            check_priority_is_kept(manifest, as_read_today(old))
        if posted.kind == "PriorityClass":
            check_priority_class(manifest, others, old)
    except InvalidObject as error:
        raise posted.invalid(error) from None
    return manifest
