"""One action on many pods or nodes: all of them or none, one change.

As `kubectl delete`, `cordon`, `uncordon`, `drain`, `taint` and `label` with many names do it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from playground.clusters import kinds, wake
from playground.clusters.errors import InvalidInput, TooManyRequests, found
from playground.clusters.kinds import Kind
from playground.clusters.log.changes import one_change
from playground.clusters.log.rows import rows_named
from playground.clusters.log.writer import writing
from playground.clusters.models import Cluster, Pod
from playground.clusters.objects import deletion
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import evict_pod
from playground.engine.admission import amount_problem

MAX_NODES: Final = 10_000
_NUMBER: Final = re.compile(r"\{n(?::0(\d))?\}")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def expand_pool(
    *,
    name: str,
    count: int,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    extended: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str | Mapping[str, str]] = (),
    zones: Sequence[str] = (),
    region: str = "",
    first: int = 1,
) -> list[dict[str, Any]]:
    """The Node manifests of a pool.

    Parameters
    ----------
    name
        Name pattern: ``{n}`` is the number, ``{n:02}`` padded, ``{zone}`` the zone; without ``{n}`` the
        number is appended (``gpu`` -> ``gpu-1``).
    count
        Nodes in all, 1 to 10,000; dealt to the zones in turn.
    cpu, memory
        Quantities of one node.
    pods
        Pods a node takes.
    extended
        Extended resources, e.g. ``{"nvidia.com/gpu": 4}``.
    labels
        Of each node; hostname, zone and region labels are added.
    taints
        ``key=value:Effect`` or ``key:Effect``, or mappings.
    zones
        Zone names; empty = no zone label.
    region
        Region label; empty = none.
    first
        First number.

    Raises
    ------
    InvalidInput
        Naming the field.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_NODES:
        raise InvalidInput(f"a pool has 1 to {MAX_NODES:,} nodes", field="count", value=str(count))
    pattern = name.strip()
    if not pattern:
        raise InvalidInput("a pool needs a name", field="name", value=name)
    if not _NUMBER.search(pattern):
        pattern += "-{n}"
    amounts: dict[str, str] = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods)}
    amounts |= {resource: str(amount) for resource, amount in (extended or {}).items()}
    for resource, amount in amounts.items():
        field = resource if resource in ("cpu", "memory", "pods") else "extended"
        if said := amount_problem(amount):
            raise InvalidInput(f"{resource}: {said}", field=field, value=amount)
    parsed = [parse_taint(taint) for taint in taints]
    nodes = []
    for position in range(count):
        zone = zones[position % len(zones)] if zones else ""
        node_name = _NUMBER.sub(partial(_padded, first + position), pattern)
        node_name = node_name.replace("{zone}", zone)
        nodes.append(_node(node_name, zone, region, labels or {}, parsed, amounts))
    return nodes


def _padded(number: int, match: re.Match[str]) -> str:
    return str(number).zfill(int(match.group(1) or 0))


def parse_taint(taint: str | Mapping[str, str]) -> dict[str, str]:
    """A taint from ``key=value:Effect``.

    Raises
    ------
    InvalidInput
    """
    if not isinstance(taint, str):
        return dict(taint)
    head, colon, effect = taint.strip().rpartition(":")
    key, _, value = head.partition("=")
    if not colon or not key or effect not in _EFFECTS:
        raise InvalidInput(
            f'"{taint}" is not a taint: write key=value:Effect or key:Effect,'
            f" Effect one of {', '.join(_EFFECTS)}",
            field="taints",
            value=taint,
        )
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _node(
    name: str,
    zone: str,
    region: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    amounts: Mapping[str, str],
) -> dict[str, Any]:
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone:
        all_labels["topology.kubernetes.io/zone"] = zone
    if region:
        all_labels["topology.kubernetes.io/region"] = region
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels | dict(labels)},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


Edit = Callable[[Mapping[str, Any]], dict[str, Any]]
"""The manifest as it is to be, of the one that is."""

MOST: Final = 1000
"""Objects that one action is about."""
MOST_EVICTIONS: Final = 500
POD_ACTIONS: Final = ("delete",)
NODE_ACTIONS: Final = ("cordon", "uncordon", "drain", "taint", "label", "delete")
NEEDS_VALUE: Final = ("taint", "label")
_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of it.

    Attributes
    ----------
    words
        What was done, as a command; an undo says the same.
    n_changed
        Objects that were changed, evicted or deleted; the others were so already.
    held
        ``namespace/name`` of pods that a drain leaves, and why.
    """

    words: str
    n_changed: int
    held: tuple[tuple[str, str], ...] = ()


def act_on_pods(*, cluster: Cluster, action: str, pods: Sequence[str]) -> Acted:
    """Delete pods; each with its own grace period, as one by one.

    Parameters
    ----------
    pods
        ``namespace/name``, 1 to 1,000.

    Raises
    ------
    InvalidInput
        No such action, or too many pods, or none.
    NotFound
        One of them is not there; nothing is done then.
    """
    _check(action, POD_ACTIONS, pods, "pods")
    chosen = list(dict.fromkeys(pods))
    for pod in chosen:
        if not all(pod.partition("/")):
            raise InvalidInput(f'"{pod}" is no pod: write namespace/name', field="pods", value=pod)
    words = _in_words(action, "Pod", chosen)
    with one_change(words):
        return Acted(words, _delete(cluster, "Pod", [tuple(pod.split("/", 1)) for pod in chosen], "pods"))


def act_on_nodes(*, cluster: Cluster, action: str, nodes: Sequence[str], value: str = "") -> Acted:
    """Cordon, uncordon, drain, taint, label or delete nodes.

    Parameters
    ----------
    nodes
        Names, 1 to 1,000.
    value
        A taint as ``key=value:Effect``, a label as ``key=value``; with ``-`` at its end it is taken off
        (``key:Effect-``, ``key-``).

    Raises
    ------
    InvalidInput
        No such action, a value that is none, too many nodes, or none; a drain of more than 500 pods.
    NotFound
        One of them is not there; nothing is done then.
    """
    _check(action, NODE_ACTIONS, nodes, "nodes")
    names = list(dict.fromkeys(nodes))
    words = _in_words(action, "Node", names, value.strip() if action in NEEDS_VALUE else "")
    with one_change(words):
        if action == "delete":
            return Acted(words, _delete(cluster, "Node", [("", name) for name in names], "nodes"))
        if action == "drain":
            changed = _change(cluster, names, _cordoned)
            evicted, held = _evict(cluster, names)
            return Acted(words, changed + evicted, held)
        changes: dict[str, Callable[[], Edit]] = {
            "cordon": lambda: _cordoned,
            "uncordon": lambda: _uncordoned,
            "taint": lambda: _tainting(value),
            "label": lambda: _labelling(value),
        }
        return Acted(words, _change(cluster, names, changes[action]()))


def _check(action: str, actions: Sequence[str], names: Sequence[str], field: str) -> None:
    if action not in actions:
        raise InvalidInput(
            f"what is done with {field} is one of {', '.join(actions)}", field="action", value=action
        )
    if not 1 <= len(names) <= MOST:
        raise InvalidInput(f"choose 1 to {MOST:,} {field}", field=field, value=str(len(names)))


def _in_words(action: str, kind: str, names: Sequence[str], value: str = "") -> str:
    what = f"{kind} {names[0]}" if len(names) == 1 else f"{len(names):,} {kind}s"
    return f"{action} {what} {value}".strip()


def _rows(cluster: Cluster, kind: Kind, places: Sequence[tuple[str, ...]], field: str) -> list[Any]:
    """The rows in the order of their places: (namespace, name).

    Raises
    ------
    NotFound
    """
    rows = rows_named(cluster, kind, [name for _, name in places])
    return [
        found(rows.get((namespace, name)), f'{field} "{name}"', **kind.named(namespace, name))
        for namespace, name in places
    ]


def _delete(cluster: Cluster, of: str, places: Sequence[tuple[str, ...]], field: str) -> int:
    kind = kinds.named(of)
    with writing(cluster) as writer:
        rows = _rows(cluster, kind, places, field)
        for row in rows:
            deletion.delete_in(writer, kind, row.manifest, None)
        wake.cluster_on_commit(writer.cluster)
    return len(rows)


def _change(cluster: Cluster, names: Sequence[str], change: Edit) -> int:
    rows = _rows(cluster, kinds.named("Node"), [("", name) for name in names], "nodes")
    result = apply_documents(cluster=cluster, objects=[change(row.manifest) for row in rows])
    return len(result.configured)


def _evict(cluster: Cluster, names: Sequence[str]) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Evict what budgets let go and no DaemonSet holds, as `kubectl drain --ignore-daemonsets`."""
    pods = Pod.objects.placed().filter(cluster=cluster, node_name__in=names, terminating=False)
    leaving = pods.exclude(owner_kind="DaemonSet")
    chosen = list(
        leaving.order_by("namespace", "name").values_list("namespace", "name")[: MOST_EVICTIONS + 1]
    )
    if len(chosen) > MOST_EVICTIONS:
        raise InvalidInput(
            f"these nodes hold more than {MOST_EVICTIONS} pods: drain fewer at once",
            field="nodes",
            value=str(len(names)),
        )
    held = []
    for namespace, name in chosen:
        try:
            evict_pod(cluster=cluster, namespace=namespace, name=name)
        except TooManyRequests as refused:
            held.append((f"{namespace}/{name}", str(refused)))
    return len(chosen) - len(held), tuple(held)


def _cordoned(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return dict(manifest) | {"spec": dict(manifest.get("spec") or {}) | {"unschedulable": True}}


def _uncordoned(manifest: Mapping[str, Any]) -> dict[str, Any]:
    spec = {key: item for key, item in (manifest.get("spec") or {}).items() if key != "unschedulable"}
    return dict(manifest) | {"spec": spec}


def _tainting(value: str) -> Edit:
    text = value.strip()
    if text.endswith("-"):
        head, _, effect = text[:-1].partition(":")
        key = head.partition("=")[0]
        if not _KEY.fullmatch(key):
            raise InvalidInput("to take a taint off write key:Effect- or key-", field="value", value=value)
        return lambda manifest: _with_taints(
            manifest,
            lambda taint: taint.get("key") == key and effect in ("", taint.get("effect")),
            None,
        )
    try:
        new = parse_taint(text)
    except InvalidInput as error:
        raise InvalidInput(str(error), field="value", value=value) from None
    alike = (new["key"], new["effect"])
    return lambda manifest: _with_taints(
        manifest, lambda taint: (taint.get("key"), taint.get("effect")) == alike, new
    )


def _with_taints(
    manifest: Mapping[str, Any], goes: Callable[[Mapping[str, Any]], bool], new: dict[str, str] | None
) -> dict[str, Any]:
    spec = dict(manifest.get("spec") or {})
    taints = [taint for taint in spec.pop("taints", None) or () if not goes(taint)]
    taints += [new] if new else []
    return dict(manifest) | {"spec": spec | ({"taints": taints} if taints else {})}


def _labelling(value: str) -> Edit:
    text = value.strip()
    key, equals, word = text.partition("=")
    removed = not equals and text.endswith("-")
    key = key[:-1] if removed else key
    if not _KEY.fullmatch(key) or not (equals or removed):
        raise InvalidInput("a label is key=value, and key- takes it off", field="value", value=value)

    def change(manifest: Mapping[str, Any]) -> dict[str, Any]:
        meta = dict(manifest["metadata"])
        labels = {name: item for name, item in (meta.get("labels") or {}).items() if name != key}
        meta["labels"] = labels if removed else labels | {key: word}
        return dict(manifest) | {"metadata": meta}

    return change
