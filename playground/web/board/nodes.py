"""What a board shows is in its address: links carry it, Back goes through it, and ticks ask for the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final
from urllib.parse import urlencode

from playground.clusters.board.nodes import NodeUse, PodUse, devices_on_nodes, node_uses, pods_on
from playground.clusters.choices import QuestionKind
from playground.clusters.memo import Memo
from playground.clusters.questions import is_stale, latest_question
from playground.clusters.row_types import Cluster
from playground.engine.columns import ZONE_LABELS
from playground.web.look import NO_MARKS, Marks, view_look
from playground.web.looks import PriorityScale, View
from playground.web.requests import positive_int
from scheduler_core.fork import PLACE_LABELS
from scheduler_core.whatif.causes import names_digest

_FIELDS: Final = ("view", "group", "q", "open", "pick", "sort", "node", "pod")


@dataclass(frozen=True)
class BoardAddress:
    """The query of a board.

    Attributes
    ----------
    view
        ``table``; empty = the map.
    group
        Label nodes are grouped by, ``none`` for one group; empty = pools and instance types.
    q
        Words nodes are looked for by.
    open
        The cell of a large map that is opened.
    pick
        The pending pod, ``namespace/name``, of which every node says whether it fits.
    sort
        Column nodes are sorted by, ``-`` before it for the largest first; empty = by name.
    page
        Of the table.
    node, pod
        What is selected; a pod as ``namespace/name``. At most one of the two.
    """

    view: str = ""
    group: str = ""
    q: str = ""
    open: str = ""
    pick: str = ""
    sort: str = ""
    page: int = 1
    node: str = ""
    pod: str = ""

    @classmethod
    def read(cls, query: Mapping[str, Any]) -> BoardAddress:
        """Read a query; ``selected`` is a node or a pod."""
        found = {name: str(query.get(name) or "").strip() for name in _FIELDS}
        address = cls(**found, page=positive_int(query.get("page", "")) or 1)
        picked = found["node"] or found["pod"] or str(query.get("selected") or "")
        return address.selecting(picked)

    @property
    def selected(self) -> str:
        """The name of a node, or ``namespace/name`` of a pod; empty for nothing."""
        return self.node or self.pod

    def selecting(self, picked: str) -> BoardAddress:
        """The same board with something else selected: a slash is no part of a node's name."""
        is_pod = "/" in picked
        return replace(self, node="" if is_pod else picked, pod=picked if is_pod else "")

    def facts(self) -> dict[str, str]:
        """What differs from a plain board, as text by name."""
        said = {name: str(value) for name, value in asdict(self).items() if value}
        return {name: value for name, value in said.items() if (name, value) != ("page", "1")}

    def href(self, **changes: Any) -> str:
        """The query of this board with changes: ``?view=table``; ``?`` for a plain one."""
        return f"?{urlencode(replace(self, **changes).facts())}"

    @property
    def opens(self) -> str:
        """The query of this board up to the name of the node that is opened."""
        query = self.href(node="", pod="")
        return f"{query}&" if query != "?" else query


NOT_GROUPED: Final = "none"
MOST_BY_POD: Final = 200
"""Nodes up to which bars are stacked by priority class."""
_FIRST: Final = PLACE_LABELS
_SAMPLE: Final = 500


def group_labels(uses: Sequence[NodeUse]) -> tuple[str, ...]:
    """Labels worth grouping by, as several nodes share a value: type, pool and zone first.

    Of a large cluster it looks at nodes from all over the list.
    """
    values: dict[str, set[str]] = {}
    sample = uses[:: max(1, len(uses) // _SAMPLE)]
    for use in sample:
        for key, value in use.labels.items():
            values.setdefault(key, set()).add(value)
    few = max(1, len(sample) // 2)
    shared = [key for key, found in values.items() if len(found) <= few or key in ZONE_LABELS]
    return tuple(sorted(shared, key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)))


def matching(uses: Sequence[NodeUse], words: str) -> Sequence[NodeUse]:
    """Nodes all words are found in: their names, labels (``zone=eu-central-1a``), taints and states."""
    wanted = [word for word in words.lower().split() if word]
    if not wanted:
        return uses
    texts = ((use, _text(use)) for use in uses)
    return [use for use, text in texts if all(word in text for word in wanted)]


def _text(use: NodeUse) -> str:
    labels = " ".join(f"{key}={value}" for key, value in use.labels.items())
    taints = " ".join(f"{taint.get('key', '')}={taint.get('value') or ''}" for taint in use.taints)
    return f"{use.name} {labels} {taints} {use.state.replace(' ', '-')}".lower()


def sorted_by(uses: Sequence[NodeUse], sort: str) -> Sequence[NodeUse]:
    """Nodes by a resource's share, their state, or (as they come) their name; ``-`` before it turns it round."""
    column = sort.removeprefix("-")
    turned = sort.startswith("-")
    if column in ("", "name"):
        return uses[::-1] if turned else uses
    if column == "state":
        return sorted(uses, key=lambda use: use.state, reverse=turned)
    return sorted(uses, key=lambda use: _share(use, column), reverse=turned)


def _share(use: NodeUse, resource: str) -> float:
    """What nodes without the resource have is less than nothing."""
    used, has = use.amounts(resource)
    return used / has if has else -1.0


TABLE_PAGE = 20
NODE_COLUMNS = (
    ("name", "Node", False),
    ("cpu", "CPU", True),
    ("memory", "Memory, Gi", True),
    ("pods", "Pods", True),
    ("state", "State", False),
)
"""Of the table: key, words, and whether its numbers are first sorted with the largest on top."""
_LOOKS: Memo[View] = Memo(16)


def view_nodes(
    cluster: Cluster,
    scale: PriorityScale,
    address: BoardAddress,
    *,
    reserved: Mapping[str, str] | None = None,
) -> View:
    """Find the nodes; as a map, or as pages of a table.

    Returns
    -------
    dict
        For `board/nodes.html`. `n_nodes` are all, `n_found` those the words in the address mean, with `n_pods` on them.
        Of a map the `look` (`view_look`), of a table its `members` on a `page` of `n_pages`, and what nodes say of a
        `picked` pod.
    """
    uses = node_uses(cluster)
    found = sorted_by(matching(uses, address.q), address.sort)
    labels = group_labels(uses)
    is_table = address.view == "table"
    n_pages = max(1, ceil(len(found) / TABLE_PAGE)) if is_table else 1
    page = min(address.page, n_pages)
    picked = _picked(cluster, address.pick, uses)
    return {
        "n_nodes": len(uses),
        "n_found": len(found),
        "n_pods": sum(use.n_pods for use in found),
        "group_by": address.group if address.group in (*labels, NOT_GROUPED) else "",
        "labels": labels,
        "view": "table" if is_table else "look",
        "members": found[(page - 1) * TABLE_PAGE : page * TABLE_PAGE] if is_table else (),
        "page": page,
        "n_pages": n_pages,
        "picked": picked,
        "look": _look(cluster, scale, address, labels, found, reserved, picked)
        if found and not is_table
        else None,
    }


def _look(
    cluster: Cluster,
    scale: PriorityScale,
    address: BoardAddress,
    labels: Sequence[str],
    found: Sequence[NodeUse],
    reserved: Mapping[str, str] | None,
    picked: View | None,
) -> View:
    """The map, drawn once a version: a tick about the clock or a run finds it here."""
    group_by = address.group if address.group in (*labels, NOT_GROUPED) else ""
    key = (
        cluster.public_id,
        cluster.generation,
        cluster.version,
        group_by,
        address.q,
        address.sort,
        address.open,
    )

    def draw() -> View:
        is_large = len(found) > MOST_BY_POD
        names = None if len(found) == cluster_size else [use.name for use in found]
        pods = {} if is_large else pods_on(cluster, names, reserved=reserved)
        return view_look(
            _with_all(cluster, found, pods),
            pods,
            scale,
            group_by=group_by,
            opened=address.open,
            marks=picked["marks"] if picked and picked["marks"] else NO_MARKS,
            by_name=bool(address.sort),
        )

    cluster_size = len(node_uses(cluster))
    return _LOOKS.get((*key, picked and picked["key"]), draw)


def _with_all(
    cluster: Cluster, uses: Sequence[NodeUse], pods: Mapping[str, Sequence[PodUse]]
) -> list[NodeUse]:
    """The nodes with what reserved pods hold of them, and with their devices.

    The scheduler counts a pod that waits at Permit as if it ran there; the API server knows nothing of it yet.
    """
    devices = devices_on_nodes(cluster)
    found = []
    for use in uses:
        held = [pod for pod in pods.get(use.name, ()) if pod.reserved]
        for pod in held:
            use = use._replace(
                used_cpu_milli=use.used_cpu_milli + pod.cpu_milli,
                used_memory_bytes=use.used_memory_bytes + pod.memory_bytes,
                n_pods=use.n_pods + 1,
            )
        for pool in devices.get(use.name, ()):
            name = pool.driver.partition(".")[0]
            has, used = use.extended.get(name, 0), use.used_extended.get(name, 0)
            use = use._replace(
                extended={**use.extended, name: has + len(pool.taken)},
                used_extended={**use.used_extended, name: used + sum(pool.taken)},
            )
        found.append(use)
    return found


def _picked(cluster: Cluster, pick: str, uses: Sequence[NodeUse]) -> View | None:
    """What nodes say of a pending pod: their `marks`, None before they were asked; None where none is picked."""
    namespace, _, name = pick.partition("/")
    if not name:
        return None
    params = {"namespace": namespace, "name": name, "node": ""}
    question = latest_question(cluster, QuestionKind.WHY_NOT, params)
    answer = question.answer if question is not None else None
    is_cancelled = question is not None and question.state == "cancelled"
    names = sorted(use.name for use in uses)
    marks = None
    if answer is not None and answer["names"] == names_digest(names):
        fits = dict(zip(names, zip(answer["letters"], answer["why"], strict=True), strict=True))
        marks = Marks(fits=fits, reasons=answer["reasons"])
    return {
        "key": question.public_id if question is not None else "",
        "namespace": namespace,
        "name": name,
        "question": question,
        "marks": marks,
        "counts": {letter: answer["letters"].count(letter) for letter in "fpn"} if answer and marks else {},
        "never": bool(answer and answer["never"]),
        "asks": question is None or is_cancelled or is_stale(cluster, question),
        "arrives": not is_cancelled,
    }
