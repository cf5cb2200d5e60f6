"""Everything a person may be looking for, by a few words: pages, actions, nodes, pods, workloads, cycles, clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.urls import reverse

from playground.clusters.errors import NotFound
from playground.clusters.selectors.board_nodes import node_uses
from playground.clusters.selectors.cycles import get_cycle
from playground.clusters.selectors.pod_lists import owners_named, pods_named
from playground.web.node_groups import matching

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

MOST: Final = 6
"""Of each kind."""

# (words, what it is about, name of its path): of a cluster.
PAGES: Final = (
    ("Board", "nodes, queue (active, backoff, permit) and cycles", "web:board"),
    ("Cycles", "every decision", "web:cycles"),
    ("Pods", "all of them, by state, name and size", "web:pods"),
    ("Plan", "drain, lose a zone, consolidate", "web:plan"),
    ("Best joint placement", "the optimum for all pending pods", "scenarios:cluster-optimum"),
    ("Formal model", "decisions checked against the rules", "scenarios:cluster-model"),
    ("Submit a pod", "by form or YAML", "web:pod-new"),
    ("Import", "manifests into this cluster", "web:import"),
    ("Add a node pool", "more nodes, with GPUs too", "web:pools"),
    ("Configuration", "plugins, weights, profiles, extenders, policy, manual approval", "web:config"),
    ("Classes and budgets", "priority classes and disruption budgets", "web:classes"),
    ("Release", "which kube-scheduler it follows", "web:release"),
    ("Objects", "of every kind", "web:objects"),
    ("Nodes", "cordon, drain, taint, label or delete many", "web:nodes"),
    ("Changes", "undo the last one", "web:changes"),
    ("Another scheduler", "its decisions beside ours", "web:judge"),
    ("Bring your own scheduler", "kubeconfig, schedulers seen", "web:schedulers"),
    ("Luck", "what other seeds decide", "web:luck"),
    ("Replay", "cycle by cycle", "scenarios:replay"),
    ("Share", "a link that reproduces it", "scenarios:share"),
    ("Cluster", "rename, clone, reset, delete", "web:settings"),
)
SITE_PAGES: Final = (
    ("All clusters", "home", "web:home"),
    ("New cluster from a dump", "paste or upload YAML", "web:new-import"),
    ("New cluster from node pools", "count, size, zones", "web:new-pools"),
    ("New blank cluster", "no nodes yet", "web:new-blank"),
    ("Lessons", "teaching scenarios", "scenarios:gallery"),
    ("Shared scenarios", "yours", "scenarios:mine"),
    ("Compare", "two runs side by side", "scenarios:compare-ask"),
    ("Known differences", "to kube-scheduler", "web:about"),
)
# (words, what happens, name of the path that is posted to, fields)
ACTIONS: Final = (
    ("Step one cycle", "the first pod of activeQ", "web:run", {"until": "cycle"}),
    ("Run until idle", "cycle after cycle, over timers", "web:run", {"until": "idle"}),
    ("Auto: let the clock run", "1x", "web:clock", {"mode": "realtime"}),
    ("Pause the clock", "", "web:clock", {"mode": "paused"}),
)


@dataclass(frozen=True)
class Found:
    """One thing that was found.

    Attributes
    ----------
    icon, title, detail
        As it is drawn.
    href
        Where it leads; of an action, where it is posted to.
    fields
        What is posted; empty for a link.
    """

    icon: str
    title: str
    detail: str
    href: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundGroup:
    """Things of one kind."""

    title: str
    items: tuple[Found, ...]

    @property
    def words(self) -> str:
        """How many, as it is read out."""
        kind = "actions" if self.title == "Do" else self.title.lower()
        return f"{len(self.items)} {kind.removesuffix('s') if len(self.items) == 1 else kind}"


def find_in_cluster(cluster: Cluster, words: str) -> list[FoundGroup]:
    """What the words mean in a cluster; without words its pages and what can be done. Four queries."""
    one = [cluster.public_id]
    actions = [
        Found("play", title, detail, reverse(path, args=one), fields)
        for title, detail, path, fields in ACTIONS
    ]
    pages = [Found("file", title, detail, reverse(path, args=one)) for title, detail, path in PAGES]
    site = [Found("file", title, detail, reverse(path)) for title, detail, path in SITE_PAGES]
    if not words:
        return _groups((("Do", actions), ("Pages", pages)))
    return _groups(
        (
            ("Do", [action for action in actions if _has(action, words)]),
            ("Nodes", _nodes(cluster, words)),
            ("Pods", _pods(cluster, words)),
            ("Workloads", _workloads(cluster, words)),
            ("Cycles", _cycles(cluster, words)),
            ("Pages", [page for page in (*pages, *site) if _has(page, words)]),
        )
    )


def find_in_site(clusters: Iterable[Cluster], words: str) -> list[FoundGroup]:
    """Pages of the site, and those of the clusters one may see whose names have the words."""
    site = [Found("file", title, detail, reverse(path)) for title, detail, path in SITE_PAGES]
    found = [
        Found("pool", item.name, "cluster", reverse("web:board", args=[item.public_id])) for item in clusters
    ]
    return _groups(
        (("Clusters", found), ("Pages", [page for page in site if not words or _has(page, words)]))
    )


def _groups(parts: Iterable[tuple[str, Sequence[Found]]]) -> list[FoundGroup]:
    most = {"Pages": len(PAGES)}
    return [FoundGroup(title, tuple(items[: most.get(title, MOST)])) for title, items in parts if items]


def _has(item: Found, words: str) -> bool:
    text = f"{item.title} {item.detail}".lower()
    return all(word in text for word in words.lower().split())


def _nodes(cluster: Cluster, words: str) -> list[Found]:
    """Those whose names have the words first, then those whose labels have them."""
    board = reverse("web:board", args=[cluster.public_id])
    found = matching(node_uses(cluster), words)
    named = [use for use in found if all(word in use.name for word in words.lower().split())]
    others = [use for use in found if use not in named] if len(named) < MOST else []
    return [
        Found(
            "grid",
            use.name,
            f"{use.n_pods} pod{'' if use.n_pods == 1 else 's'}",
            f"{board}?{urlencode({'node': use.name})}",
        )
        for use in (*named[:MOST], *others[:MOST])
    ]


def _pods(cluster: Cluster, words: str) -> list[Found]:
    return [
        Found("dot", name, namespace, reverse("web:pod", args=[cluster.public_id, namespace, name]))
        for namespace, name in pods_named(cluster, words, limit=MOST)
    ]


def _workloads(cluster: Cluster, words: str) -> list[Found]:
    pods = reverse("web:pods", args=[cluster.public_id])
    return [
        Found(
            "pool",
            name,
            f"{kind} in {namespace}",
            f"{pods}?{urlencode({'owner': name, 'namespace': namespace})}",
        )
        for kind, namespace, name in owners_named(cluster, words, limit=MOST)
    ]


def _cycles(cluster: Cluster, words: str) -> list[Found]:
    """``12``, ``#12`` and ``cycle 12`` are the same one."""
    number = words.lower().removeprefix("cycle").strip().removeprefix("#").replace(",", "")
    if not number.isdecimal() or len(number) > 12:
        return []
    try:
        row = get_cycle(cluster, int(number))
    except NotFound:
        return []
    return [
        Found(
            "step",
            f"Cycle {row.number:,}",
            f"{row.pod_name} {row.outcome}",
            reverse("web:cycle", args=[cluster.public_id, row.number]),
        )
    ]
