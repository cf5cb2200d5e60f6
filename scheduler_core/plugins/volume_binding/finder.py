"""Where a pod's claims can be had: volumes for all rows at once.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go FindPodVolumes,
staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go FindMatchingVolume, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_matching import matching_labels
from scheduler_core.cluster.node_table import Bool, NodeColumns, NodeTable, Rows
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.objects import csi_translation, storage
from scheduler_core.objects.fields import Document
from scheduler_core.objects.labels import LabelSelector, requirement_errors, requirement_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import NodeSelector
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.pod_volumes import CLAIM, claim_name, not_owned

# --- Volumes and claims as the scheduler believes them to be before the API server says so.


VOLUME = "PersistentVolume"


class AssumeCache:
    """The cluster's volumes and claims with assumed ones in their place.

    An assumption holds until it is taken back, or until the cluster's object is no longer the one it was made
    of.
    """

    def __init__(self) -> None:
        self._assumed: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        self._by_class: dict[str, list[str]] = {}
        self._read: tuple[Listers, int] | None = None

    def _get(self, listers: Listers, key: tuple[str, str, str]) -> Any | None:
        found = listers.get(*key)
        assumed = self._assumed.get(key)
        if assumed is not None:
            if found is not None and _is_same(found, assumed[0]):
                return assumed[1]
            del self._assumed[key]
        return found

    def volume(self, listers: Listers, name: str) -> storage.PersistentVolume | None:
        return self._get(listers, (VOLUME, "", name))

    def claim(self, listers: Listers, namespace: str, name: str) -> storage.PersistentVolumeClaim | None:
        return self._get(listers, (CLAIM, namespace, name))

    def volumes_of_class(self, listers: Listers, storage_class: str) -> list[storage.PersistentVolume]:
        """All volumes of a storage class by name; the empty class is that of volumes without one."""
        read = self._read
        if read is None or read[0] is not listers or read[1] != listers.version(VOLUME):
            self._read = (listers, listers.version(VOLUME))
            self._by_class = {}
            volumes: list[storage.PersistentVolume] = sorted(listers.all(VOLUME), key=_name)
            for volume in volumes:
                self._by_class.setdefault(volume.storage_class, []).append(volume.name)
        names = self._by_class.get(storage_class, ())
        return [found for name in names if (found := self.volume(listers, name)) is not None]

    def assume(
        self, listers: Listers, item: storage.PersistentVolume | storage.PersistentVolumeClaim
    ) -> None:
        base = listers.get(*key_of(item))
        if base is not None:
            self._assumed[key_of(item)] = (base, item)

    def restore(self, item: storage.PersistentVolume | storage.PersistentVolumeClaim) -> None:
        """Take an assumption back; nothing happens without one."""
        self._assumed.pop(key_of(item), None)


def key_of(item: storage.PersistentVolume | storage.PersistentVolumeClaim) -> tuple[str, str, str]:
    """Kind, namespace and name, as listers keep it."""
    if isinstance(item, storage.PersistentVolume):
        return VOLUME, "", item.name
    return CLAIM, item.namespace, item.name


def _name(volume: storage.PersistentVolume) -> str:
    return volume.name


def _is_same(
    one: storage.PersistentVolume | storage.PersistentVolumeClaim,
    other: storage.PersistentVolume | storage.PersistentVolumeClaim,
) -> bool:
    """The same version of an object; read twice (after a restart) it is two values with one version."""
    if one is other:
        return True
    version = one.meta.resource_version
    return bool(version) and version == other.meta.resource_version and one.meta.uid == other.meta.uid


# --- The claims of a pod, sorted by what is still to be done about them.


class ClaimError(Exception):
    """Claims that upstream cannot sort: an error of the attempt, not a rejection."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """Claims of one pod in the order of its volumes.

    Attributes
    ----------
    bound : tuple of PersistentVolumeClaim
        Fully bound to a volume.
    delayed : tuple of PersistentVolumeClaim
        Waiting for their first consumer: the scheduler binds them, or has a volume provisioned.
    immediate : tuple of PersistentVolumeClaim
        The volume controller should have bound them already.
    """

    bound: tuple[storage.PersistentVolumeClaim, ...] = ()
    delayed: tuple[storage.PersistentVolumeClaim, ...] = ()
    immediate: tuple[storage.PersistentVolumeClaim, ...] = ()


def wrong_claim(pod: Pod, listers: Listers) -> str | None:
    """Why the pod's claims cannot be used at all; None when they can.

    Source: volumebinding/volume_binding.go podHasPVCs, v1.34
    """
    for volume in pod.volumes:
        named = claim_name(pod, volume)
        if named is None:
            continue
        name, is_ephemeral = named
        claim: storage.PersistentVolumeClaim | None = listers.get(CLAIM, pod.namespace, name)
        if claim is None:
            if is_ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return f'persistentvolumeclaim "{name}" not found'
        if claim.phase == storage.LOST:
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            )
        if claim.meta.deletion_ns is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and (problem := not_owned(pod, claim)):
            return problem
    return None


def claims_of(pod: Pod, cache: AssumeCache, listers: Listers) -> PodClaims:
    """Sort the claims of a pod that `wrong_claim` found nothing against.

    Raises
    ------
    ClaimError
        A storage class does not say when it binds.

    Source: volumebinding/binder.go GetPodVolumeClaims, v1.34
    """
    bound, delayed, immediate = [], [], []
    for volume in pod.volumes:
        named = claim_name(pod, volume)
        if named is None:
            continue
        name, is_ephemeral = named
        claim = cache.claim(listers, pod.namespace, name)
        if claim is None:
            raise ClaimError(
                f'error getting PVC "{pod.namespace}/{name}": could not find v1.PersistentVolumeClaim '
                f'"{pod.namespace}/{name}"'
            )
        if is_ephemeral and (problem := not_owned(pod, claim)):
            raise ClaimError(problem)
        if claim.is_fully_bound:
            bound.append(claim)
        elif _is_delayed(claim, listers) and not claim.volume_name:
            delayed.append(claim)
        else:
            # A claim that names its volume is the controller's business too.
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _is_delayed(claim: storage.PersistentVolumeClaim, listers: Listers) -> bool:
    """Source: component-helpers/storage/volume/pv_helpers.go IsDelayBindingMode, v1.34."""
    if not claim.storage_class:
        return False
    storage_class: storage.StorageClass | None = listers.get("StorageClass", "", claim.storage_class)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ClaimError(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"')
    return storage_class.waits_for_first_consumer


class ConflictReason(IntFlag):
    """Why a row cannot serve the pod's claims, in the order upstream tells it."""

    NODE = 1
    BIND = 2
    SPACE = 4
    NO_VOLUME = 8


REASONS = {
    ConflictReason.NODE: "node(s) didn't match PersistentVolume's node affinity",
    ConflictReason.BIND: "node(s) didn't find available persistent volumes to bind",
    ConflictReason.SPACE: "node(s) did not have enough free storage",
    ConflictReason.NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeSearch:
    """What is found for the claims of a pod on some rows.

    Attributes
    ----------
    conflicts : ndarray of shape (n_rows,), int64
        `ConflictReason` flags; 0 where the pod can have its volumes.
    errors : dict of str to ndarray of bool
        Rows where nothing could be found out, by message.
    bindings : list of (claim, volumes, ndarray of shape (n_rows,), int64)
        For each claim to bind: the place in `volumes` of the one to take, -1 for none.
    provisions : list of (claim, ndarray of shape (n_rows,), bool, ndarray of shape (n_rows,), int64)
        For each claim: where a volume is to be provisioned, and the bytes its driver has there, -1 where it does not
        publish them.
    """

    def __init__(self, cache: AssumeCache, listers: Listers, nodes: NodeColumns, rows: Rows) -> None:
        self.cache, self.listers, self.nodes, self.rows = cache, listers, nodes, rows
        self.conflicts: NDArray[np.int64] = np.zeros(len(rows), np.int64)
        self.errors: dict[str, Bool] = {}
        self.bindings: list[
            tuple[storage.PersistentVolumeClaim, Sequence[storage.PersistentVolume], NDArray[np.int64]]
        ] = []
        self.provisions: list[tuple[storage.PersistentVolumeClaim, Bool, NDArray[np.int64]]] = []

    def fail(self, rows: Bool, message: str) -> None:
        """Note an error for some rows; a claim may stand in a pod twice and fail twice."""
        known = self.errors.get(message)
        self.errors[message] = rows if known is None else known | rows

    def _inside(self, selector: NodeSelector | None) -> Bool:
        return matching_node_affinity(selector, self.nodes, self.rows)

    def check_bound(self, claims: Sequence[storage.PersistentVolumeClaim]) -> None:
        """The first claim whose volume is missing, or not for the row, decides.

        Source: volumebinding/binder.go checkBoundClaims, v1.34
        """
        undecided = np.ones(len(self.rows), np.bool_)
        for claim in claims:
            volume = self.cache.volume(self.listers, claim.volume_name)
            if volume is None:
                self.conflicts[undecided] |= ConflictReason.NO_VOLUME
                return
            inside = self._inside(volume.node_affinity)
            plugin = csi_translation.volume_plugin(volume)
            if plugin is not None and plugin.name in csi_translation.MIGRATED_BY_NODE:
                migrated = self._is_migrated(plugin.name)
                if migrated.any():
                    try:
                        selector = csi_translation.translate_node_affinity(volume)
                    except csi_translation.TranslationError as error:
                        failed = undecided & migrated
                        self.fail(failed, f"could not translate pv: {error}")
                        undecided &= ~failed
                    else:
                        inside = np.where(migrated, self._inside(selector), inside)
            outside = undecided & ~inside
            self.conflicts[outside] |= ConflictReason.NODE
            undecided &= ~outside

    def _is_migrated(self, plugin_name: str) -> Bool:
        """Rows whose CSINode says that it hands the plugin's volumes to a CSI driver."""
        csi_nodes: list[storage.CSINode] = self.listers.all("CSINode")
        if isinstance(self.nodes, WhatIf):
            table, base_rows = self.nodes.base, self.nodes.base_rows[self.rows]
        else:
            assert isinstance(self.nodes, NodeTable)
            table, base_rows = self.nodes, self.rows
        migrated = np.zeros(table.capacity, np.bool_)
        migrated[table.rows_of(item.name for item in csi_nodes if plugin_name in item.migrated_plugins)] = (
            True
        )
        return migrated[base_rows]

    def find_delayed(self, claims: Sequence[storage.PersistentVolumeClaim]) -> None:
        open_rows = np.ones(len(self.rows), np.bool_)
        to_provision: list[tuple[storage.PersistentVolumeClaim, Bool]] = []
        to_match: list[storage.PersistentVolumeClaim] = []
        for claim in claims:
            if claim.selected_node is None:
                to_match.append(claim)
                continue
            # The volume is on its way, on one node.
            elsewhere = ~self.nodes.is_named(claim.selected_node, self.rows)
            self.conflicts[open_rows & elsewhere] |= ConflictReason.BIND
            open_rows &= ~elsewhere
            to_provision.append((claim, open_rows))
        chosen: list[tuple[Sequence[storage.PersistentVolume], NDArray[np.int64]]] = []
        for claim in sorted(to_match, key=_size):
            volumes = self.cache.volumes_of_class(self.listers, claim.storage_class)
            picked = self._matching_volume(claim, volumes, chosen)
            chosen.append((volumes, picked))
            self.bindings.append((claim, volumes, np.where(open_rows, picked, -1)))
            to_provision.append((claim, picked < 0))
        self._check_provisions(to_provision, open_rows)

    def _matching_volume(
        self,
        claim: storage.PersistentVolumeClaim,
        volumes: Sequence[storage.PersistentVolume],
        chosen: Sequence[tuple[Sequence[storage.PersistentVolume], NDArray[np.int64]]],
    ) -> NDArray[np.int64]:
        """The place in `volumes` of the one to bind on each row, -1 for none.

        A volume kept for the claim is taken before any other, or else the smallest that will do, the first among
        equals.
        `chosen` are the picks of claims before this one: on no row is a volume picked twice.
        """
        picked = np.full(len(self.rows), -1, np.intp)
        undecided = np.ones(len(self.rows), np.bool_)
        taken = [places for others, places in chosen if _same_class(others, volumes)]
        candidates: list[int] = []
        for place, volume in enumerate(volumes):
            if not _may_serve(claim, volume):
                continue
            if volume.claim_ref is None:
                if _is_candidate(claim, volume):
                    candidates.append(place)
                continue
            free = undecided & ~_is_taken(place, taken, len(self.rows))
            inside = self._inside(volume.node_affinity)
            picked[free & inside] = place
            undecided &= ~free
        if not candidates or not undecided.any():
            return picked
        candidates.sort(key=lambda place: volumes[place].capacity_nano)
        best = self._best_places([volumes[place] for place in candidates], 1 + len(taken))
        places = np.append(np.array(candidates, np.intp), -1)[best]
        for column in places:
            free = undecided & (column >= 0)
            for others in taken:
                free &= column != others
            picked[free] = column[free]
            undecided &= ~free
        return picked

    def _best_places(self, volumes: Sequence[storage.PersistentVolume], n_best: int) -> NDArray[np.int64]:
        """For each row the first `n_best` volumes it can use, shape (n_best, n_rows); len(volumes) for none.

        Local volumes name one host each, so volumes that ask for values of a single label are looked up by value
        instead of being compared with every row.
        """
        by_label: dict[str, dict[str, list[int]]] = {}
        by_selector: dict[NodeSelector | None, list[int]] = {}
        for place, volume in enumerate(volumes):
            label = _single_label(volume.node_affinity)
            if label is None:
                places = by_selector.setdefault(volume.node_affinity, [])
                if len(places) < n_best:
                    places.append(place)
                continue
            key, values = label
            for value in dict.fromkeys(values):
                places = by_label.setdefault(key, {}).setdefault(value, [])
                if len(places) < n_best:
                    places.append(place)
        none = len(volumes)
        layers: list[NDArray[np.int64]] = []
        for key, by_value in by_label.items():
            column = self.nodes.label_column(key)[self.rows]
            interned = self.nodes.vocabulary.label_values[key]
            table = np.full((n_best, len(interned) + 1), none, np.int64)
            for value, places in by_value.items():
                value_id = interned.find(value)
                if value_id >= 0:
                    table[: len(places), value_id] = places
            layers.append(table[:, column])
        for selector, places in by_selector.items():
            mask = self._inside(selector)
            layers.append(np.where(mask, np.array(places, np.int64)[:, None], none))
        if len(layers) == 1:
            return layers[0]
        return np.sort(np.concatenate(layers), axis=0)[:n_best]

    def _check_provisions(
        self, to_provision: Sequence[tuple[storage.PersistentVolumeClaim, Bool]], open_rows: Bool
    ) -> None:
        """The first claim that cannot be provisioned decides.

        Source: volumebinding/binder.go checkVolumeProvisions, v1.34
        """
        undecided = open_rows.copy()
        for claim, wanted in to_provision:
            asked = undecided & wanted
            if not asked.any():
                continue
            storage_class: storage.StorageClass | None = self.listers.get(
                "StorageClass", "", claim.storage_class
            )
            if storage_class is None:
                self.fail(asked, f'failed to find storage class "{claim.storage_class}"')
                undecided &= ~asked
                continue
            if storage_class.provisioner in ("", storage.NO_PROVISIONER):
                rejected = asked
            else:
                rejected = asked & ~self._matching_topologies(storage_class.allowed_topologies)
            self.conflicts[rejected] |= ConflictReason.BIND
            undecided &= ~rejected
            asked &= ~rejected
            if not asked.any():
                continue
            has_room, capacity_bytes = self._room_for(claim, storage_class)
            full = asked & ~has_room
            self.conflicts[full] |= ConflictReason.SPACE
            undecided &= ~full
            self.provisions.append((claim, asked & ~full, capacity_bytes))

    def _matching_topologies(self, terms: Sequence[storage.TopologyTerm]) -> Bool:
        """Rows a storage class allows; an empty term, or one that cannot be read, allows none.

        Source: component-helpers/scheduling/corev1/helpers.go MatchTopologySelectorTerms, v1.34
        """
        if not terms:
            return np.ones(len(self.rows), np.bool_)
        mask = np.zeros(len(self.rows), np.bool_)
        for term in terms:
            if term and not any(requirement_errors(key, "in", values) for key, values in term):
                selector = LabelSelector(tuple(requirement_of(key, "in", values) for key, values in term))
                mask |= matching_labels(selector, self.nodes, self.rows)
        return mask

    def _room_for(
        self, claim: storage.PersistentVolumeClaim, storage_class: storage.StorageClass
    ) -> tuple[Bool, NDArray[np.int64]]:
        """Rows where the class's driver has room, and its capacity there in bytes.

        A driver that does not publish what it has has room everywhere, and a capacity of -1.

        Source: volumebinding/binder.go hasEnoughCapacity, v1.36
        Differs: of several capacities that would do the first is taken; upstream takes any.
        """
        capacity_bytes = np.full(len(self.rows), -1, np.int64)
        driver: storage.CSIDriver | None = self.listers.get("CSIDriver", "", storage_class.provisioner)
        if claim.requested_nano is None or driver is None or not driver.storage_capacity:
            return np.ones(len(self.rows), np.bool_), capacity_bytes
        mask = np.zeros(len(self.rows), np.bool_)
        capacities: list[storage.CSIStorageCapacity] = self.listers.all("CSIStorageCapacity")
        for capacity in capacities:
            if (
                capacity.storage_class == storage_class.name
                and capacity.node_topology is not None
                and capacity.largest_volume_bytes is not None
                and capacity.largest_volume_bytes >= requested_bytes(claim)
            ):
                inside = ~mask & matching_labels(capacity.node_topology, self.nodes, self.rows)
                # Upstream fails where only maximumVolumeSize is given.
                capacity_bytes[inside] = capacity.capacity_bytes or 0
                mask |= inside
        return mask, capacity_bytes


def find_pod_volumes(
    claims: PodClaims, cache: AssumeCache, listers: Listers, nodes: NodeColumns, rows: Rows
) -> VolumeSearch:
    """Check bound claims and look for volumes for the delayed ones."""
    found = VolumeSearch(cache, listers, nodes, rows)
    found.check_bound(claims.bound)
    if claims.delayed:
        found.find_delayed(claims.delayed)
    return found


def matching_node_affinity(selector: NodeSelector | None, nodes: NodeColumns, rows: Rows) -> Bool:
    """Rows a volume can be used on. Only labels are looked at: upstream asks about a node without a name.

    Source: component-helpers/storage/volume/helpers.go CheckNodeAffinity, v1.34
    """
    if selector is None:
        return np.ones(len(rows), np.bool_)
    mask = np.zeros(len(rows), np.bool_)
    for term in selector.terms:
        if not term.errors:
            mask |= matching_labels(term.labels, nodes, rows)
    return mask


def _size(claim: storage.PersistentVolumeClaim) -> int:
    return claim.requested_nano or 0


def _same_class(
    others: Sequence[storage.PersistentVolume], volumes: Sequence[storage.PersistentVolume]
) -> bool:
    return bool(others) and bool(volumes) and others[0].storage_class == volumes[0].storage_class


def _is_taken(place: int, taken: Sequence[NDArray[np.int64]], n_rows: int) -> Bool:
    mask = np.zeros(n_rows, np.bool_)
    for places in taken:
        mask |= places == place
    return mask


def _may_serve(claim: storage.PersistentVolumeClaim, volume: storage.PersistentVolume) -> bool:
    """What every volume must fulfil, one kept for the claim too."""
    return (
        (volume.claim_ref is None or volume.is_bound_to(claim))
        and volume.capacity_nano >= (claim.requested_nano or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.volume_attributes_class == claim.volume_attributes_class
        and volume.meta.deletion_ns is None
    )


def _is_candidate(claim: storage.PersistentVolumeClaim, volume: storage.PersistentVolume) -> bool:
    """What a volume must fulfil that is not reserved for a claim."""
    return (
        volume.phase == storage.AVAILABLE
        and (claim.selector is None or claim.selector.matches(volume.meta.labels))
        and all(mode in volume.access_modes for mode in claim.access_modes)
    )


def _single_label(selector: NodeSelector | None) -> tuple[str, tuple[str, ...]] | None:
    """Key and values of a selector that is one `In` and nothing more."""
    if selector is None or len(selector.terms) != 1 or selector.terms[0].errors:
        return None
    requirements = selector.terms[0].labels.requirements
    if len(requirements) != 1 or requirements[0].operator != "in":
        return None
    return requirements[0].key, requirements[0].values


def requested_bytes(claim: storage.PersistentVolumeClaim) -> int:
    return -(-(claim.requested_nano or 0) // 10**9)


def usable_on(volume: storage.PersistentVolume, node: Node, listers: Listers) -> str | None:
    """Why a volume cannot be used on a node; None when it can."""
    selector = volume.node_affinity
    plugin = csi_translation.volume_plugin(volume)
    csi_node: storage.CSINode | None = listers.get("CSINode", "", node.name)
    migrated = (
        frozenset[str]() if csi_node is None else csi_node.migrated_plugins & csi_translation.MIGRATED_BY_NODE
    )
    if plugin is not None and plugin.name in migrated:
        try:
            selector = csi_translation.translate_node_affinity(volume)
        except csi_translation.TranslationError as error:
            return f"failed to translate pv to csi: could not translate pv: {error}"
    if selector is None or any(term.matches(node.labels, "") for term in selector.terms):
        return None
    return (
        f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
    )


# --- What was reserved for a pod that has its node, and what the API server is to be told of it.


@dataclass(frozen=True, slots=True)
class BindingInfo:
    """A volume kept for a claim; `is_new` when the API server does not know yet."""

    volume: storage.PersistentVolume
    claim_namespace: str
    claim_name: str
    is_new: bool


@dataclass(slots=True)
class Reservation:
    """Volumes of one pod on its node.

    Attributes
    ----------
    bindings : tuple of BindingInfo
    provisions : tuple of PersistentVolumeClaim
        Claims that name the node a volume is to be provisioned for.
    all_bound : bool
        There was nothing to do.
    started_ns : int or None
        When binding began, None before it did.
    written : bool
        The writes were given out.
    """

    node_name: str
    bindings: tuple[BindingInfo, ...] = ()
    provisions: tuple[storage.PersistentVolumeClaim, ...] = ()
    all_bound: bool = False
    started_ns: int | None = None
    written: bool = False

    def writes(self) -> tuple[Document, ...]:
        """Objects to write, volumes first.

        Source: volumebinding/binder.go bindAPIUpdate, v1.34
        Differs: a volume that already is as it should be is not written once more.
        """
        return (
            *(binding.volume.manifest for binding in self.bindings if binding.is_new),
            *(claim.manifest for claim in self.provisions),
        )

    def to_document(self) -> dict[str, Any]:
        """All of it as JSON-able data."""
        bindings = [{**_fields(item), "volume": item.volume.manifest} for item in self.bindings]
        provisions = [claim.manifest for claim in self.provisions]
        return {**_fields(self), "bindings": bindings, "provisions": provisions}


def _fields(item: BindingInfo | Reservation) -> dict[str, Any]:
    return {known.name: getattr(item, known.name) for known in fields(item)}


def reservation_from(document: Mapping[str, Any]) -> Reservation:
    """Read what `Reservation.to_document` wrote."""
    bindings = tuple(
        BindingInfo(**{**item, "volume": storage.persistent_volume_from(item["volume"])})
        for item in document["bindings"]
    )
    provisions = tuple(storage.persistent_volume_claim_from(manifest) for manifest in document["provisions"])
    return Reservation(**{**document, "bindings": bindings, "provisions": provisions})


def bound_to_claim(
    volume: storage.PersistentVolume, claim: storage.PersistentVolumeClaim
) -> tuple[storage.PersistentVolume, bool]:
    """The volume, kept for the claim, and whether that is new.

    Source: component-helpers/storage/volume/pv_helpers.go GetBindVolumeToClaim, v1.34
    """
    manifest = dict(volume.manifest)
    is_new = False
    reference = volume.claim_ref
    was_bound = volume.is_bound_to(claim)
    if not was_bound or reference is None or reference.uid != claim.meta.uid:
        claim_ref = {
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.meta.uid,
            "apiVersion": "v1",
            "resourceVersion": claim.meta.resource_version,
        }
        manifest["spec"] = {
            **manifest["spec"],
            "claimRef": {key: value for key, value in claim_ref.items() if value},
        }
        is_new = True
    annotations = manifest["metadata"].get("annotations") or {}
    if not was_bound and storage.BOUND_BY_CONTROLLER_ANNOTATION not in annotations:
        manifest["metadata"] = {
            **manifest["metadata"],
            "annotations": {**annotations, storage.BOUND_BY_CONTROLLER_ANNOTATION: "yes"},
        }
        is_new = True
    return (storage.persistent_volume_from(manifest), True) if is_new else (volume, False)


def provisioned_on(claim: storage.PersistentVolumeClaim, node_name: str) -> storage.PersistentVolumeClaim:
    """The claim, asking for a volume for a node."""
    manifest = dict(claim.manifest)
    annotations = manifest["metadata"].get("annotations") or {}
    manifest["metadata"] = {
        **manifest["metadata"],
        "annotations": {**annotations, storage.SELECTED_NODE_ANNOTATION: node_name},
    }
    return storage.persistent_volume_claim_from(manifest)
