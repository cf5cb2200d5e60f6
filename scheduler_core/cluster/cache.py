"""What the scheduler believes of the cluster: nodes, pods on them, and pods it has assumed to be there.

Source: pkg/scheduler/backend/cache/cache.go, v1.34
Differs: there is no copying into a snapshot (`cluster.snapshot` says why).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import NodeTable, Usage
from scheduler_core.cluster.pod_table import PodColumns, PodTable
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.vocabulary import Vocabulary
from scheduler_core.errors import require
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.releases import Release


def counts_as(old: Pod, new: Pod) -> bool:
    """Whether a new version of a pod counts everywhere as the old one does; False where it is not plain to see.

    Ports and volumes never are: a node forgets a port with the first of its pods that leaves.
    """
    return (
        new.requests is old.requests
        and new.non_zero == old.non_zero
        and new.priority == old.priority
        and not (new.host_ports or old.host_ports or new.volumes or old.volumes)
        and not (new.has_affinity or old.has_affinity)
        and (new.meta is old.meta or (new.labels == old.labels and new.namespace == old.namespace))
    )


@dataclass(slots=True)
class AssumedPod:
    """A pod the scheduler has placed and no watch event has confirmed yet.

    Attributes
    ----------
    binding_finished : bool
    deadline_ns : int or None
        When it expires; None until binding has finished, and for ever when expiry is off.
    """

    node_name: str
    binding_finished: bool = False
    deadline_ns: int | None = None


class PodsAway(NamedTuple):
    """Pods that were taken off a node for a while, and what was counted of it before.

    Attributes
    ----------
    assumed : dict of str to AssumedPod
        Those of them that were assumed, by uid.
    """

    node_name: str
    pod_ids: list[int]
    usage: Usage
    assumed: dict[str, AssumedPod]


class Cache:
    """Nodes and pods as columns, with assumed pods counted in.

    Parameters
    ----------
    assumed_pod_ttl_ns : int
        How long an assumed pod is believed after binding finished; 0 (upstream's default) for ever.
    """

    def __init__(self, assumed_pod_ttl_ns: int = 0) -> None:
        self.assumed_pod_ttl_ns = assumed_pod_ttl_ns
        self.vocabulary = Vocabulary()
        self.pods = PodTable(self.vocabulary)
        self.nodes = NodeTable(self.vocabulary, self.pods)
        self.listers = Listers()
        self.matching = Matching(self.nodes, self.pods, self.listers)
        self.assumed: dict[str, AssumedPod] = {}
        """Assumed pods by uid."""
        self._tree = NodeTree()
        self._ghosts: dict[str, None] = {}
        self._aside: dict[str, str] = {}
        """Pods that are taken off for a while: uid -> node name."""
        self._generation = 0
        self._snapshot: Snapshot | None = None

    def copy(self) -> Cache:
        """Another cache that holds the same and changes by itself, without pods that are set aside."""
        other = Cache(self.assumed_pod_ttl_ns)
        other.vocabulary = self.vocabulary.copy()
        other.pods = self.pods.copy(other.vocabulary)
        other.nodes = self.nodes.copy(other.pods)
        other.listers = self.listers.copy()
        other.matching = Matching(other.nodes, other.pods, other.listers)
        other.matching.take_over(self.matching)
        other.assumed = {uid: replace(item) for uid, item in self.assumed.items()}
        other._tree.restore(self._tree.places())
        other._ghosts = self._ghosts.copy()
        return other

    # ---- nodes

    def set_node(self, node: Node) -> None:
        """Add or update a node."""
        old_row = self.nodes.row_of.get(node.name)
        ghost = node.name in self._ghosts
        if old_row is not None and not ghost:
            old_zone = self.nodes.node(old_row).zone_key
            if old_zone != node.zone_key:
                self._tree.remove(node.name, old_zone)
                self._tree.add(node.name, node.zone_key)
            elif (snapshot := self._snapshot) is not None:
                # The same nodes in the same order.
                self.nodes.set_node(node)
                self._nodes_changed()
                self._snapshot = replace(snapshot, generation=self._generation)
                return
        else:
            self._ghosts.pop(node.name, None)
            self._tree.add(node.name, node.zone_key)
        self.nodes.set_node(node)
        self._nodes_changed()

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """Nodes of which none is known, not even by a pod: at once, which is faster than one by one."""
        for node in nodes:
            self._tree.add(node.name, node.zone_key)
        self.nodes.add_nodes(nodes)
        self._nodes_changed()

    def remove_node(self, name: str) -> None:
        """Take a node away; pods still on it keep a place until they go (upstream's imaginary node)."""
        row = self.nodes.row_of.get(name)
        if row is None or name in self._ghosts:
            return
        self._tree.remove(name, self.nodes.node(row).zone_key)
        if self.nodes.holds_pods(row):
            self._make_ghost(name)
        else:
            self.nodes.remove_node(name)
        self._nodes_changed()

    def node(self, name: str) -> Node | None:
        """The node object, None for an unknown (or gone) node."""
        row = self.nodes.row_of.get(name)
        return None if row is None or name in self._ghosts else self.nodes.node(row)

    # ---- pods

    def add_pod(self, pod: Pod) -> None:
        """Add a pod to its node (informer's add); confirms an assumed one."""
        uid = pod.uid
        self.assumed.pop(uid, None)
        pod_id = self.pods.id_of.get(uid)
        if pod_id is not None:
            row = int(self.pods.row[pod_id])
            old = self.pods[pod_id]
            # Some counts leave terminating pods out.
            is_counted = not self.matching.has_selections or old.is_terminating == pod.is_terminating
            if is_counted and row == self.nodes.row_of.get(pod.node_name) and counts_as(old, pod):
                # Most updates say only that it is bound, or runs: nothing to take off and put on again.
                self.pods.replace(pod_id, pod)
                self.nodes.pod_came_again(row, pod_id)
                return
            self._take_off(uid)
        self._put_on(pod, pod.node_name)

    def fill(self, pods: Sequence[Pod], assumed: Mapping[str, AssumedPod]) -> None:
        """Put in the pods of another cache, which has them in this order: at once, which is faster than one by one.

        Parameters
        ----------
        pods : sequence of Pod
            None of them is here yet.
        assumed : mapping of str to AssumedPod
            By uid, all of them among the pods; kept as they are and in this order, which is that of the queue's
            lane and of expiry.
        """
        names = [pod.node_name for pod in pods]
        if assumed:
            places = {pod.meta.uid: place for place, pod in enumerate(pods)}
            for uid, held in assumed.items():
                names[places[uid]] = held.node_name
        self.assumed.update(assumed)
        if self.pods.has_free_ids:
            for pod, name in zip(pods, names, strict=True):
                self._put_on(pod, name)
        else:
            self.fill_columns(PodColumns.of(pods), names)

    def fill_columns(self, pods: PodColumns, node_names: Sequence[str]) -> None:
        """`fill` with pods as columns, each on the node of its name; an id that was another pod's goes to none."""
        row_of = self.nodes.row_of
        try:
            rows = np.fromiter(map(row_of.__getitem__, node_names), np.intp, len(node_names))
        except KeyError:
            for name in dict.fromkeys(node_names):
                if name not in row_of:
                    self._make_ghost(name)
            rows = np.fromiter(map(row_of.__getitem__, node_names), np.intp, len(node_names))
        pod_ids = self.pods.add_columns(pods)
        self.pods.row[pod_ids] = rows
        self.nodes.add_columns(rows, pod_ids, pods.non_zero)
        self.matching.pods_added(pod_ids, rows)
        for place in pods.looked_at:
            pod_id, row = int(pod_ids[place]), int(rows[place])
            self.nodes.take_ports(row, self.pods.asks(pod_id))
            self.matching.carry(pod_id, row)

    def update_pod(self, pod: Pod) -> None:
        """A pod on a node changed."""
        self.add_pod(pod)

    def remove_pod(self, uid: str) -> bool:
        """A pod is gone; False when it was not here."""
        self.assumed.pop(uid, None)
        if uid not in self.pods.id_of:
            return False
        self._take_off(uid)
        return True

    def assume(self, pod: Pod, node_name: str) -> None:
        """Count a pod as running on a node before anybody said so."""
        if pod.uid in self.pods.id_of:
            raise KeyError(f"pod {pod.key} is in the cache, so it can't be assumed")
        self._put_on(pod, node_name)
        self.assumed[pod.uid] = AssumedPod(node_name)

    def finish_binding(self, uid: str, now_ns: int) -> None:
        """Binding is done; from now on the assumed pod may expire."""
        assumed = self.assumed.get(uid)
        if assumed is not None:
            assumed.binding_finished = True
            if self.assumed_pod_ttl_ns:
                assumed.deadline_ns = now_ns + self.assumed_pod_ttl_ns

    def set_expiry(self, ttl_ns: int, now_ns: int) -> None:
        """Believe assumed pods for so long; those whose binding has ended, from now on."""
        self.assumed_pod_ttl_ns = ttl_ns
        for assumed in self.assumed.values():
            if assumed.binding_finished:
                assumed.deadline_ns = now_ns + ttl_ns if ttl_ns else None

    def forget(self, uid: str) -> None:
        """Take back an assumption; nothing happens without one."""
        if self.assumed.pop(uid, None) is not None:
            self._take_off(uid)

    def expire(self, now_ns: int) -> list[Pod]:
        """Drop assumed pods whose time is over; returns them."""
        if not self.assumed_pod_ttl_ns:
            return []
        due = [
            uid
            for uid, assumed in self.assumed.items()
            if assumed.deadline_ns is not None and assumed.deadline_ns <= now_ns
        ]
        expired = [self.pods[self.pods.id_of[uid]] for uid in due]
        for uid in due:
            self.forget(uid)
        return expired

    def is_assumed(self, uid: str) -> bool:
        return uid in self.assumed

    def pod(self, uid: str) -> Pod | None:
        """The cached pod."""
        pod_id = self.pods.id_of.get(uid)
        return None if pod_id is None else self.pods[pod_id]

    def node_name_of(self, uid: str) -> str | None:
        """Row of a cached pod."""
        pod_id = self.pods.id_of.get(uid)
        return None if pod_id is None else self.nodes.name(int(self.pods.row[pod_id]))

    # ---- reading

    def node_order(self) -> list[str]:
        """Node names zone by zone, for a checkpoint: adding them in this order gives the same evaluation order."""
        return self._tree.by_zone()

    def node_places(self) -> dict[str, dict[str, None]]:
        """Zones and their nodes in evaluation order, for `restore_node_places`."""
        return self._tree.places()

    def restore_node_places(self, places: dict[str, dict[str, None]]) -> None:
        """Evaluate the nodes, the same ones as then, in the order of then."""
        self._tree.restore(places)
        self._nodes_changed()

    def pod_order(self) -> list[str]:
        """Uids of `pods_in_order`, for a checkpoint."""
        return [*map(self.pods.uids().__getitem__, self._ids_in_order())]

    def pods_in_order(self) -> list[Pod]:
        """Cached pods node by node in order of arrival there: adding them in this order gives the same state."""
        return self.pods.all_of(self._ids_in_order())

    def _ids_in_order(self) -> Iterator[int]:
        names = [*self._tree.by_zone(), *self._ghosts]
        return (pod_id for name in names for pod_id in self.nodes.pods_on(self.nodes.row_of[name]))

    def forgotten_ports(self) -> list[tuple[str, HostPort]]:
        """(node name, port that a pod there holds while it counts as free), for a checkpoint."""
        names = [*self._tree.by_zone(), *self._ghosts]
        return [
            (name, port) for name in names for port in self.nodes.forgotten_ports(self.nodes.row_of[name])
        ]

    def forget_port(self, node_name: str, port: HostPort) -> None:
        """Replay the ports another cache forgot (`forgotten_ports`)."""
        self.nodes.forget_port(self.nodes.row_of[node_name], port)

    def snapshot(self) -> Snapshot:
        """The cluster now; valid until the next change."""
        found = self._snapshot
        if found is None:
            order = np.array([self.nodes.row_of[name] for name in self._tree.names()], np.intp)
            rows = np.sort(order)
            if np.array_equal(rows, order):
                rows = order
            n_nodes = len(rows)
            rank = np.full(self.nodes.capacity, n_nodes, np.intp)
            rank[order] = np.arange(n_nodes)
            found = self._snapshot = Snapshot(
                vocabulary=self.vocabulary,
                nodes=self.nodes,
                pods=self.pods,
                matching=self.matching,
                listers=self.listers,
                order=order,
                rows=rows,
                take=slice(0, n_nodes) if n_nodes == 0 or int(rows[-1]) == n_nodes - 1 else rows,
                rank=rank,
                generation=self._generation,
            )
        return found

    def validate(self) -> None:
        """Check the invariants of the cache: all that is counted along is what counting afresh would give.

        Raises
        ------
        AssertionError
        """
        nodes, pods = self.nodes, self.pods
        row_of = {pod_id: int(pods.row[pod_id]) for pod_id in pods.id_of.values()}
        on_rows = [(pod_id, row) for row in nodes.row_of.values() for pod_id in nodes.pods_on(row)]
        n_resources = min(len(nodes.requested), len(pods.requests))
        known = np.array(sorted(row_of), np.intp)
        rows = np.sort(np.array(list(nodes.row_of.values()), np.intp))
        requested, n_pods = np.zeros_like(nodes.requested), np.zeros_like(nodes.n_pods)
        np.add.at(n_pods, pods.row[known], 1)
        for column, amounts in zip(requested[:n_resources], pods.requests[:n_resources, known], strict=True):
            np.add.at(column, pods.row[known], amounts)
        alive = sorted(name for name, row in nodes.row_of.items() if nodes.alive[row])
        require(
            self,
            every_pod_is_on_its_row_once=dict(on_rows) == row_of and len(on_rows) == len(row_of),
            nodes_count_their_pods=bool((n_pods[rows] == nodes.n_pods[rows]).all()),
            nodes_sum_requests_up=bool((requested[:, rows] == nodes.requested[:, rows]).all()),
            nodes_that_are_there_have_their_turn=alive == sorted(self._tree.by_zone()),
            nodes_that_are_gone_hold_pods=sorted({*nodes.row_of} - {*alive}) == sorted(self._ghosts),
            assumed_pods_are_here=self.assumed.keys() <= pods.id_of.keys(),
        )
        self.matching.validate()

    # ---- trying what would be without some pods

    def set_aside(self, pod: Pod) -> None:
        """Take a pod off its node for a while; `put_back` or `restore_order` ends it."""
        row = int(self.pods.row[self.pods.id_of[pod.uid]])
        self._aside[pod.uid] = self.nodes.name(row)
        self._take_off(pod.uid)

    def put_back(self, pod: Pod) -> None:
        """Put a pod back where `set_aside` took it from, behind the pods that stayed."""
        self._put_on(pod, self._aside.pop(pod.uid))

    def restore_order(self, before: Sequence[Pod]) -> None:
        """Put back whatever is set aside, pods of a node again in the order of `before` (`pods_in_order`)."""
        for pod in before:
            if pod.uid in self._aside:
                self.put_back(pod)
        wanted: dict[str, list[Pod]] = {}
        for pod in before:
            wanted.setdefault(self.node_name_of(pod.uid) or "", []).append(pod)
        for name, pods in wanted.items():
            if self.pods.all_of(self.nodes.pods_on(self.nodes.row_of[name])) != pods:
                for pod in pods:
                    self.set_aside(pod)
                for pod in pods:
                    self.put_back(pod)

    def take_away(self, node_name: str, pods: Sequence[Pod]) -> PodsAway:
        """Take pods off the node they are on, until `bring_back`; nothing may have changed on the node by then."""
        row = self.nodes.row_of[node_name]
        pod_ids = [self.pods.id_of[pod.uid] for pod in pods]
        usage = self.nodes.usage(row)
        is_all = len(pod_ids) == len(usage.pod_ids)
        assumed = {pod.uid: self.assumed.pop(pod.uid) for pod in pods if pod.uid in self.assumed}
        for pod_id in pod_ids:
            self.matching.pod_removed(pod_id, row)
            if not is_all:
                self.nodes.remove_pod(row, pod_id)
            self.pods.leave(pod_id)
        if is_all:
            self.nodes.set_usage(row, None)
        self._forget_ghost(node_name, row)
        return PodsAway(node_name, pod_ids, usage, assumed)

    def bring_back(self, away: PodsAway) -> None:
        """Put the pods back on their node, in their former order of arrival."""
        row = self.nodes.row_of.get(away.node_name)
        if row is None:
            row = self._make_ghost(away.node_name)
        for pod_id in away.pod_ids:
            self.pods.come_back(pod_id, row)
            self.matching.pod_added(pod_id, row)
        self.nodes.set_usage(row, away.usage)
        self.assumed.update(away.assumed)

    # ---- inside

    def _put_on(self, pod: Pod, node_name: str) -> None:
        row = self.nodes.row_of.get(node_name)
        if row is None:
            # Upstream makes an imaginary node for a pod that arrives before its node.
            row = self._make_ghost(node_name)
        pod_id = self.pods.add(pod)
        self.pods.row[pod_id] = row
        self.nodes.add_pod(row, pod_id)
        self.matching.pod_added(pod_id, row)

    def _take_off(self, uid: str) -> None:
        pod_id = self.pods.id_of[uid]
        row = int(self.pods.row[pod_id])
        self.matching.pod_removed(pod_id, row)
        self.nodes.remove_pod(row, pod_id)
        self.pods.remove(pod_id)
        self._forget_ghost(self.nodes.name(row), row)

    def _forget_ghost(self, name: str, row: int) -> None:
        if name in self._ghosts and not self.nodes.holds_pods(row):
            del self._ghosts[name]
            self.nodes.remove_node(name)

    def _make_ghost(self, name: str) -> int:
        self._ghosts[name] = None
        row = self.nodes.set_node(node_from({"kind": "Node", "metadata": {"name": name}}))
        self.nodes.alive[row] = False
        return row

    def _nodes_changed(self) -> None:
        self._generation += 1
        self._snapshot = None


# --- The order nodes are looked at: zones take turns.


class NodeTree:
    """Node names by zone, in order of arrival."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}

    def add(self, name: str, zone: str) -> None:
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str, zone: str) -> None:
        names = self._zones.get(zone)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._zones[zone]

    def places(self) -> dict[str, dict[str, None]]:
        """A copy of what is known, for `restore`."""
        return {zone: dict(names) for zone, names in self._zones.items()}

    def restore(self, places: dict[str, dict[str, None]]) -> None:
        """Be as when `places` was asked."""
        self._zones = {zone: dict(names) for zone, names in places.items()}

    def by_zone(self) -> list[str]:
        """All names, zone by zone."""
        return [name for names in self._zones.values() for name in names]

    def names(self) -> list[str]:
        """All names: the first of every zone, then the second of every zone, and so on."""
        # Asked for anew whenever a node came or went: for each node that a plan takes away.
        turns = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(turns) if name is not None]


# ---- Pod groups: who belongs to which, and how many of them hold a node
# Source: pkg/scheduler/backend/cache/podgroupstate.go, v1.36
# Differs: which members are assumed is asked of the cache; nothing is counted twice.

GroupKey = tuple[str, str]
"""(namespace, name)"""


class PodGroups:
    """Members of pod groups by group, in order of arrival.

    Parameters
    ----------
    cache : Cache
    release : Release
        Pods are members of groups only where it schedules groups.
    """

    def __init__(self, cache: Cache, release: Release) -> None:
        self.are_scheduled = release.gate("GenericWorkload") and release.has("PodsNameTheirGroup")
        """Whether there are groups at all: otherwise the API server drops the field."""
        self.are_gangs = self.are_scheduled and release.gate("GangScheduling")
        self._cache = cache
        self._members: dict[GroupKey, dict[str, Pod]] = {}

    def group_of(self, pod: Pod) -> GroupKey | None:
        """The group a pod names, where groups are scheduled."""
        if not pod.scheduling_group or not self.are_scheduled:
            return None
        return pod.namespace, pod.scheduling_group

    def set(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        key = self.group_of(pod) if pod.scheduling_group else None
        if key is not None:
            self._members.setdefault(key, {})[pod.uid] = pod

    def remove(self, pod: Pod) -> None:
        key = self.group_of(pod)
        members = None if key is None else self._members.get(key)
        if key is None or members is None:
            return
        members.pop(pod.uid, None)
        if not members:
            del self._members[key]

    def members(self, key: GroupKey) -> list[Pod]:
        """All pods of a group that the scheduler knows, in order of arrival."""
        return list(self._members.get(key, {}).values())

    def n_members(self, key: GroupKey) -> int:
        return len(self._members.get(key, ()))

    def assumed(self, key: GroupKey) -> list[Pod]:
        """Members that are assumed on a node, not yet bound to it."""
        return [pod for pod in self.members(key) if not pod.node_name and self._cache.is_assumed(pod.uid)]

    def unscheduled(self, key: GroupKey) -> list[Pod]:
        """Members that are neither assumed nor bound."""
        return [pod for pod in self.members(key) if not pod.node_name and not self._cache.is_assumed(pod.uid)]

    def n_scheduled(self, key: GroupKey) -> int:
        """Members that are assumed or bound."""
        return self.n_members(key) - len(self.unscheduled(key))

    def groups(self) -> list[GroupKey]:
        """Groups that have members, in order of their first one's arrival."""
        return list(self._members)
