"""In which order the objects of one request are written, and which owners it lacks."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Manifest
from playground.engine.admission import Posted
from playground.engine.owners import generations, uid_of


def in_order(known: Iterable[tuple[Kind, Posted]]) -> list[tuple[Kind, Posted]]:
    """By the kinds' ranks, and an owner after what it owns; else as posted.

    The log is read one entry at a time. A Deployment that came before its ReplicaSets, as in a dump of a real cluster,
    would roll out all its pods once more: beside those that are already on its nodes.
    """
    found = list(known)
    heights = generations(item.manifest for _, item in found)

    def place(pair: tuple[Kind, Posted]) -> tuple[int, int]:
        return pair[0].apply_rank, heights.get(uid_of(pair[1].manifest), 0)

    return sorted(found, key=place)


def owners_not_here(
    known: Iterable[tuple[Kind, Posted]], cluster: Cluster | None
) -> Counter[tuple[str, str]]:
    """Pods by (kind, uid) of the controlling owner they name that is neither in the request nor in the cluster."""
    found = list(known)
    here = {_mapping(item.manifest.get("metadata")).get("uid") for _, item in found}
    named: Counter[tuple[str, str]] = Counter()
    for of, item in found:
        references = _mapping(item.manifest.get("metadata")).get("ownerReferences")
        if of.row_kind != "Pod" or not isinstance(references, list):
            continue
        for reference in map(_mapping, references):
            if reference.get("controller") and reference.get("uid") not in here:
                named[str(reference.get("kind", "")), str(reference.get("uid", ""))] += 1
    if named and cluster is not None:
        kinds = {kind for kind, _ in named}
        rows = Manifest.objects.filter(cluster=cluster, kind__in=kinds)
        for kind, uid in rows.values_list("kind", "uid"):
            named.pop((kind, uid), None)
    return named


def missing_owners(known: Iterable[tuple[Kind, Posted]], cluster: Cluster | None) -> dict[str, int]:
    """Pods by the kind of the owner they name that is not here."""
    counts: Counter[str] = Counter()
    for (kind, _), n in owners_not_here(known, cluster).items():
        counts[kind] += n
    return dict(sorted(counts.items()))


def _mapping(value: Any) -> dict[str, Any]:
    """What was posted may be anything; admission says so later."""
    return value if isinstance(value, dict) else {}
