"""One table of kinds. Apply, the selectors, export and the Kubernetes API are all driven by it.

What Kubernetes says of its kinds comes from `scheduler_core/schema/kinds.json`, what a kind does to placement from
`scheduler_core/objects/kinds.py`; what is special about rows, and about kinds that are only kept, is written below.
CustomResourceDefinitions add kinds to a cluster's own table (`custom_kinds.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from playground.engine import schema

READ: Final = schema.READ
MAKES: Final = schema.MAKES
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

    @property
    def has_generation(self) -> bool:
        """Whether ``metadata.generation`` counts the changes of what is wanted of its objects."""
        return self.custom is not None or self.kind in _WITH_GENERATION

    @property
    def is_stored(self) -> bool:
        """Whether there can be objects of it: a review is asked and answered."""
        return bool(self.model)

    @property
    def is_main(self) -> bool:
        """Whether its rows are in this very version."""
        return not self.stored_version


@dataclass(frozen=True, slots=True)
class _Special:
    """Where a kind differs from others of its role. A kind that shapes placement has its rank in the core's table."""

    apply_rank: int = 5
    model: str = "Manifest"
    subresources: tuple[str, ...] | None = None


# Kinds that shape placement stand in the core's order in discovery and exports, then these, then all others.
_SPECIAL: Final[Mapping[str, _Special]] = {
    "Namespace": _Special(subresources=("status",)),
    "PriorityClass": _Special(model="PriorityClass"),
    "Node": _Special(model="Node", subresources=("status",)),
    "Service": _Special(subresources=("status",)),
    "PodDisruptionBudget": _Special(model="PodDisruptionBudget"),
    "Pod": _Special(model="Pod", subresources=("binding", "eviction", "resize", "status")),
    "ServiceAccount": _Special(3, subresources=()),
    "ConfigMap": _Special(3),
    "Secret": _Special(3),
    "RuntimeClass": _Special(1),
    "CustomResourceDefinition": _Special(0),
    "Event": _Special(model="Event"),
    "ClusterRole": _Special(3),
    "Role": _Special(3),
    "ClusterRoleBinding": _Special(3),
    "RoleBinding": _Special(3),
    "IngressClass": _Special(3),
}
_STORED_AS: Final = {"HorizontalPodAutoscaler": "autoscaling/v2", "Event": "v1"}
"""Of kinds with several versions: the one rows are in."""
_WITH_GENERATION: Final = frozenset({
    "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "DeviceClass", "EndpointSlice",
    "FlowSchema", "Ingress", "IngressClass", "Job", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "NetworkPolicy", "Pod", "PodDisruptionBudget", "PodTemplate", "PriorityClass",
    "PriorityLevelConfiguration", "ReplicaSet", "ReplicationController", "ResourceSlice", "StatefulSet",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
})  # fmt: skip
"""Upstream it is each kind's own strategy that counts (``PrepareForCreate`` under pkg/registry): these do."""
_SERVED_EARLY: Final = ("scheduling.k8s.io/v1alpha2",)
"""Versions that are not stable and are served all the same, with all their kinds."""
_STABLE: Final = re.compile(r"(.*/)?v[0-9]+")


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

    def by_resource(self, api_version: str, plural: str) -> Kind | None:
        """The kind behind ``/apis/{group}/{version}/{plural}``, or None."""
        return self._by_resource.get((api_version, plural))

    def stored(self, kind: Kind) -> Kind:
        """The same kind in the version its rows have."""
        return self._by_row_kind[kind.row_kind]

    def api_versions(self) -> tuple[str, ...]:
        """Every apiVersion, in table order."""
        return tuple(dict.fromkeys(kind.api_version for kind in self.served))

    def groups(self) -> tuple[str, ...]:
        """Every named group, in table order."""
        return tuple(dict.fromkeys(kind.group for kind in self.served if kind.group))

    def in_version(self, api_version: str) -> Iterable[Kind]:
        """The kinds of one apiVersion, in table order."""
        return (kind for kind in self.served if kind.api_version == api_version)


def _built_in() -> tuple[list[Kind], dict[str, tuple[str, ...]]]:
    served: list[Kind] = []
    known: dict[str, list[str]] = {}
    for said in schema.kinds():
        known.setdefault(said["apiVersion"].rpartition("/")[0], []).append(said["kind"])
        if _STABLE.fullmatch(said["apiVersion"]) or said["apiVersion"] in _SERVED_EARLY:
            served.append(_kind(said))
    order = {name: number for number, name in enumerate(dict.fromkeys((*schema.SHAPING, *_SPECIAL)))}
    served.sort(
        key=lambda kind: (order.get(kind.kind, len(order)), kind.group, kind.plural, not kind.is_main)
    )
    return served, {group: tuple(dict.fromkeys(names)) for group, names in known.items()}


def _kind(said: Mapping[str, Any]) -> Kind:
    name = said["kind"]
    shaping = schema.SHAPING.get(name)
    special = _SPECIAL.get(name, _Special())
    parts = special.subresources if special.subresources is not None else tuple(said.get("subresources", ()))
    stored = _STORED_AS.get(name, said["apiVersion"])
    return Kind(
        said["apiVersion"],
        name,
        said["plural"],
        said["namespaced"],
        tuple(said.get("shortNames", ())),
        model=special.model if "update" in said["verbs"] else "",
        role=shaping.role if shaping else KEPT,
        effect=shaping.effect if shaping else "",
        subresources=parts,
        categories=tuple(said.get("categories", ())),
        apply_rank=shaping.rank if shaping else special.apply_rank,
        verbs=tuple(said["verbs"]),
        type=said["type"],
        stored_version="" if stored == said["apiVersion"] else stored,
    )


_SERVED, UPSTREAM_GROUPS = _built_in()
"""`UPSTREAM_GROUPS`: group -> every kind Kubernetes has in it, in whatever version."""
BUILT_IN: Final = KindTable(_SERVED)
KINDS: Final = BUILT_IN.kinds

by_key: Final = BUILT_IN.by_key
by_kind: Final = BUILT_IN.by_row_kind
by_resource: Final = BUILT_IN.by_resource
