"""One table of kinds. Apply, the selectors, export and the Kubernetes API are all driven by it.

What Kubernetes says of its kinds comes from `scheduler_core/schema/kinds.json`, what a kind does to placement from
`scheduler_core/objects/kinds.py`; what is special about rows, and about kinds that are only kept, from `kinds.yaml`.
CustomResourceDefinitions add kinds to a cluster's own table (`custom_kinds.py`). Objects are converted between the
version their rows have and the one a client asked for.

Source of the conversions: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/events/v1/conversion.go, v1.34; conversion
"None" of custom resources changes the apiVersion alone
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.objects.kinds import SHAPING
from scheduler_core.objects.reading import SERVED_EARLY, served_kinds
from scheduler_core.schema.tables import table_beside

KEPT: Final = "kept"
ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """One version of one kind the playground's API server knows.

    Attributes
    ----------
    api_version
        ``v1`` or ``group/version``.
    kind, plural, singular_name
        As in discovery; no singular name = the kind in lower case.
    namespaced
        Whether objects live in a namespace.
    short_names
        What kubectl takes for it.
    model
        Name of the model of its rows in `clusters.models`; ``Manifest`` is the general one. Empty = nothing is kept.
    role
        `READ` or `MAKES` of a kind that shapes placement; `KEPT` of all others.
    effect
        What an object of it does to placement, in words.
    subresources
        Served below the object.
    categories
        For ``kubectl get all``.
    apply_rank
        Order within one apply: namespaces and classes before what refers to them.
    verbs
        What can be done with it.
    type
        Name of its type in the schema; empty for custom resources.
    stored_version
        The apiVersion its rows have, if another.
    row_kind
        How rows, the log and the engine name it: the kind; of custom resources with the group
        (``Service.serving.knative.dev``), as two groups may have kinds of one name.
    custom
        Of a custom resource: the version of the CustomResourceDefinition's spec that says what it is.
    has_generation
        Whether ``metadata.generation`` counts the changes of what is wanted of its objects.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    model: str = "Manifest"
    role: str = KEPT
    effect: str = ""
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    apply_rank: int = 5
    verbs: tuple[str, ...] = ALL_VERBS
    type: str = ""
    stored_version: str = ""
    singular_name: str = ""
    list_name: str = ""
    row_kind: str = ""
    custom: Mapping[str, Any] | None = field(default=None, compare=False)
    has_generation: bool = False

    def __post_init__(self) -> None:
        if not self.row_kind:
            object.__setattr__(self, "row_kind", self.kind)

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.list_name or f"{self.kind}List"

    @property
    def group(self) -> str:
        """API group; empty for the core one."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def key(self) -> tuple[str, str]:
        """``(apiVersion, kind)``."""
        return (self.api_version, self.kind)

    @property
    def resource(self) -> str:
        """``plural`` or ``plural.group``, as Kubernetes' messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def interpreted(self) -> bool:
        """Whether it shapes placement: the simulation reads what is written of it.

        Of other kinds the objects are kept, shown and exported, and stay out of the log that replays.
        """
        return self.role != KEPT

    def named(self, namespace: str, name: str) -> dict[str, str]:
        """How an error names an object of the kind."""
        return {"kind": self.kind, "namespace": namespace, "name": name}

    @property
    def is_stored(self) -> bool:
        """Whether there can be objects of it: a review is asked and answered."""
        return bool(self.model)

    @property
    def is_main(self) -> bool:
        """Whether its rows are in this very version."""
        return not self.stored_version


SPECIAL: Final[Mapping[str, Mapping[str, Any]]] = table_beside(__package__, "kinds.yaml")["kinds"]
"""Where a kind differs from others of its role; the keys are explained there."""
_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


class KindTable:
    """Kinds, and how to find them.

    Parameters
    ----------
    served
        Each version of each kind; the one a client should prefer first.

    Attributes
    ----------
    kinds
        Those with objects, once each: in the version they are stored in.
    served
    """

    def __init__(self, served: Iterable[Kind]) -> None:
        self.served: Final = tuple(served)
        self.kinds: Final = tuple(kind for kind in self.served if kind.is_stored and kind.is_main)
        self._by_key = {kind.key: kind for kind in self.served}
        self._by_row_kind = {kind.row_kind: kind for kind in self.kinds}
        self._by_resource = {(kind.api_version, kind.plural): kind for kind in self.served}

    def by_key(self, api_version: str, kind: str) -> Kind | None:
        """The kind of a manifest's ``apiVersion`` and ``kind``, or None."""
        return self._by_key.get((api_version, kind))

    def by_row_kind(self, row_kind: str) -> Kind | None:
        """The kind that rows, the log and the engine call so, or None."""
        return self._by_row_kind.get(row_kind)

    def named(self, row_kind: str) -> Kind:
        """The kind that rows, the log and the engine call so, and that is known to be there."""
        return self._by_row_kind[row_kind]

    def by_resource(self, api_version: str, plural: str) -> Kind | None:
        """The kind behind ``/apis/{group}/{version}/{plural}``, or None."""
        return self._by_resource.get((api_version, plural))

    def stored(self, kind: Kind) -> Kind:
        """The same kind in the version its rows have."""
        return self.named(kind.row_kind)

    def api_versions(self) -> tuple[str, ...]:
        """Every apiVersion, in table order."""
        return tuple(dict.fromkeys(kind.api_version for kind in self.served))

    def groups(self) -> tuple[str, ...]:
        """Every named group, in table order."""
        return tuple(dict.fromkeys(kind.group for kind in self.served if kind.group))

    def in_version(self, api_version: str) -> Iterable[Kind]:
        """The kinds of one apiVersion, in table order."""
        return (kind for kind in self.served if kind.api_version == api_version)


def version_order(version: str) -> tuple[Any, ...]:
    """v2, v1, v1beta2, v1beta1, v1alpha1, and then names that are no versions, by letters.

    Source: staging/src/k8s.io/apimachinery/pkg/version/helpers.go CompareKubeAwareVersionStrings, v1.34
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stage, minor = match.groups()
    return (0, {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), "")


def built_in(early: Iterable[str] = SERVED_EARLY) -> KindTable:
    """Kubernetes' own kinds: all stable versions, and those of `early` (`SERVED_EARLY`).

    Kinds that shape placement stand in the core's order in discovery and exports, then all others in that of an
    apply.
    """
    wanted = served_kinds(early)
    stored: dict[tuple[str, str], str] = {}
    for said in sorted(wanted, key=lambda said: version_order(said["apiVersion"].rpartition("/")[2])):
        stored.setdefault((said["apiVersion"].rpartition("/")[0], said["kind"]), said["apiVersion"])
    served = [_kind(said, stored) for said in wanted]
    order = {name: number for number, name in enumerate(SHAPING)}
    served.sort(
        key=lambda kind: (
            order.get(kind.kind, len(order)),
            kind.apply_rank,
            kind.group,
            kind.plural,
            not kind.is_main,
        )
    )
    return KindTable(served)


def _kind(said: Mapping[str, Any], preferred: Mapping[tuple[str, str], str]) -> Kind:
    name, api_version = said["kind"], said["apiVersion"]
    shaping = SHAPING.get(name)
    special = SPECIAL.get(name, {})
    stored = special.get("storedAs") or preferred[api_version.rpartition("/")[0], name]
    return Kind(
        api_version,
        name,
        said["plural"],
        said["namespaced"],
        tuple(said.get("shortNames", ())),
        model=special.get("model", "Manifest") if "update" in said["verbs"] else "",
        role=shaping.role if shaping else KEPT,
        effect=shaping.effect if shaping else "",
        subresources=tuple(special.get("subresources", said.get("subresources", ()))),
        categories=tuple(said.get("categories", ())),
        apply_rank=shaping.rank if shaping else special.get("applyRank", 5),
        verbs=tuple(said["verbs"]),
        type=said["type"],
        stored_version="" if stored == api_version else stored,
        has_generation=special.get("counted", False),
    )


BUILT_IN: Final = built_in()
KINDS: Final = BUILT_IN.kinds

by_key: Final = BUILT_IN.by_key
by_kind: Final = BUILT_IN.by_row_kind
named: Final = BUILT_IN.named
by_resource: Final = BUILT_IN.by_resource


# ---- Objects between the versions of their kind

_EVENT_NAMES: Final = {  # core v1 -> events.k8s.io/v1
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_NAMES_BACK: Final = {new: old for old, new in _EVENT_NAMES.items()}
_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"


def as_stored(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object a client wrote in this version, as its row has it."""
    if not kind.stored_version or manifest.get("apiVersion") == kind.stored_version:
        return manifest
    result = {**manifest, "apiVersion": kind.stored_version}
    return _CONVERSIONS[kind.type][0](result) if kind.type in _CONVERSIONS else result


def as_served(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object as stored, in the version of this kind."""
    if manifest.get("apiVersion") == kind.api_version:
        return manifest
    result = {**manifest, "apiVersion": kind.api_version}
    return _CONVERSIONS[kind.type][1](result) if kind.type in _CONVERSIONS else result


def _renamed(manifest: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in manifest.items()}


def _autoscaler_from_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    meta = dict(_mapping(manifest.get("metadata")))
    notes = dict(_mapping(meta.get("annotations")))
    spec, status = dict(_mapping(manifest.get("spec"))), dict(_mapping(manifest.get("status")))
    metrics = _listed(notes.pop(_METRICS, None))
    if (target := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    if metrics:
        spec["metrics"] = metrics
    if isinstance(behavior := _parsed(notes.pop(_BEHAVIOR, None)), dict):
        spec["behavior"] = behavior
    current = _listed(notes.pop(_CURRENT, None))
    if (usage := status.pop("currentCPUUtilizationPercentage", None)) is not None:
        value = {"averageUtilization": usage}
        current.append({"type": "Resource", "resource": {"name": "cpu", "current": value}})
    if current:
        status["currentMetrics"] = current
    if conditions := _listed(notes.pop(_CONDITIONS, None)):
        status["conditions"] = conditions
    return _put_back(manifest, meta, notes, spec, status)


def _autoscaler_to_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    meta = dict(_mapping(manifest.get("metadata")))
    notes = dict(_mapping(meta.get("annotations")))
    spec, status = dict(_mapping(manifest.get("spec"))), dict(_mapping(manifest.get("status")))
    others = []
    for metric in spec.pop("metrics", None) or ():
        target = _cpu(metric, "target")
        if target is None or "targetCPUUtilizationPercentage" in spec:
            others.append(metric)
        else:
            spec["targetCPUUtilizationPercentage"] = target
    others_now = []
    for metric in status.pop("currentMetrics", None) or ():
        usage = _cpu(metric, "current")
        if usage is None or "currentCPUUtilizationPercentage" in status:
            others_now.append(metric)
        else:
            status["currentCPUUtilizationPercentage"] = usage
    kept = {
        _METRICS: others,
        _BEHAVIOR: spec.pop("behavior", None),
        _CURRENT: others_now,
        _CONDITIONS: status.pop("conditions", None),
    }
    notes |= {key: json.dumps(value, separators=(",", ":")) for key, value in kept.items() if value}
    return _put_back(manifest, meta, notes, spec, status)


def _with_plain_selector(manifest: dict[str, Any]) -> dict[str, Any]:
    """A rule without what could choose devices in 1.34 alone."""
    spec = _mapping(manifest.get("spec"))
    chosen = {
        key: value
        for key, value in _mapping(spec.get("deviceSelector")).items()
        if key not in ("deviceClassName", "selectors")
    }
    return {**manifest, "spec": {**spec, "deviceSelector": chosen}} if "deviceSelector" in spec else manifest


def _put_back(
    manifest: Mapping[str, Any],
    meta: dict[str, Any],
    notes: dict[str, Any],
    spec: dict[str, Any],
    status: dict[str, Any],
) -> dict[str, Any]:
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    parts = {"metadata": meta, "spec": spec, "status": status}
    return {**manifest, **{key: value for key, value in parts.items() if value or key in manifest}}


def _cpu(metric: Any, key: str) -> int | None:
    """The average utilization of a metric that is about cpu and nothing else."""
    resource = _mapping(_mapping(metric).get("resource"))
    if resource.get("name") != "cpu":
        return None
    value = _mapping(resource.get(key)).get("averageUtilization")
    return value if isinstance(value, int) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(text: Any) -> list[Any]:
    found = _parsed(text)
    return found if isinstance(found, list) else []


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


_Conversion = Callable[[dict[str, Any]], dict[str, Any]]
_CONVERSIONS: Final[Mapping[str, tuple[_Conversion, _Conversion]]] = {
    "autoscaling.v1.HorizontalPodAutoscaler": (_autoscaler_from_v1, _autoscaler_to_v1),
    "resource.v1beta2.DeviceTaintRule": (lambda manifest: manifest, _with_plain_selector),
    "events.v1.Event": (
        lambda manifest: _renamed(manifest, _EVENT_NAMES_BACK),
        lambda manifest: _renamed(manifest, _EVENT_NAMES),
    ),
}
"""Type -> into the stored version, and back, with the new apiVersion in place. Of others that is all that changes."""
