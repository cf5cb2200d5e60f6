"""Ask one plugin about a few nodes: what the examples in plugin docstrings are made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.framework import interface as fw
from scheduler_core.framework.registry import declared
from scheduler_core.framework.status import Code
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.releases import OLDEST, Release

Manifest = Mapping[str, Any]


def _ask(
    kind: type[fw.Plugin], pod: Manifest, nodes: Mapping[str, Manifest], args: Any, release: Release
) -> tuple[Any, Cache, Pod]:
    cache = Cache()
    for name, node in nodes.items():
        meta = {"name": name, "labels": node.get("labels", {})}
        parts = {key: value for key, value in node.items() if key not in ("labels", "pods")}
        cache.set_node(node_from(prepare({"kind": "Node", "metadata": meta, **parts})))
        for index, spec in enumerate(node.get("pods", ())):
            cache.add_pod(_pod(f"{name}-{index}", {**spec, "nodeName": name}))
    handle = fw.Handle(cache, Nominator(), WaitingPods(), Clock(0), release=release)
    plugin = kind(declared(kind, release).default_args() if args is None else args, handle)
    return plugin, cache, _pod("pod", pod)


def _pod(name: str, said: Manifest) -> Pod:
    meta = {"name": name, **said.get("metadata", {})}
    spec = {key: value for key, value in said.items() if key != "metadata"}
    return pod_from(prepare({"kind": "Pod", "metadata": meta, "spec": spec}))


def verdicts(
    kind: type[fw.FilterPlugin[Any]],
    pod: Manifest,
    *,
    args: Any = None,
    release: Release = OLDEST,
    **nodes: Manifest,
) -> dict[str, str]:
    """What a filter plugin says of each node: `passes`, or its words.

    Parameters
    ----------
    kind : class
        The plugin.
    pod : mapping
        `spec` of the pod asked about; its `metadata` stands in it, where the plugin reads that.
    args : object, optional
        An `Args` of the plugin; the default profile's otherwise.
    release : Release
        Whose behaviour is asked for.
    nodes : mapping
        Node manifests by name: `labels`, `spec`, `status`, and `pods`, the pods that run there, each
        as the one asked about.
    """
    plugin, cache, asked = _ask(kind, pod, nodes, args, release)
    snapshot = cache.snapshot()
    state = plugin.pre_filter(asked, snapshot).state if isinstance(plugin, fw.PreFilterPlugin) else None
    result = plugin.filter(state, asked, snapshot.nodes, snapshot.rows)
    words = {}
    for place, row in enumerate(snapshot.rows.tolist()):
        code = Code(int(result.codes[place]))
        detail = 0 if result.details is None else int(result.details[place])
        reasons = plugin.reasons(state, asked, snapshot.nodes, row, code, detail) if code else ("passes",)
        words[snapshot.nodes.name(row)] = ", ".join(reasons)
    return words


def scores(
    kind: type[fw.ScorePlugin[Any]],
    pod: Manifest,
    *,
    args: Any = None,
    release: Release = OLDEST,
    **nodes: Manifest,
) -> dict[str, int]:
    """How a score plugin scores each node, normalized; parameters as `verdicts`."""
    plugin, cache, asked = _ask(kind, pod, nodes, args, release)
    snapshot = cache.snapshot()
    state = None
    if isinstance(plugin, fw.PreScorePlugin):
        state = plugin.pre_score(asked, snapshot, snapshot.rows).state
    raw = plugin.score(state, asked, snapshot.nodes, snapshot.rows)
    if plugin.normalizes:
        raw = plugin.normalize(state, asked, snapshot.nodes, snapshot.rows, raw)
    return {snapshot.nodes.name(row): int(raw[place]) for place, row in enumerate(snapshot.rows.tolist())}
