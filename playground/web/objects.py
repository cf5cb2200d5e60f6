"""All that a cluster holds, as its pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404

from playground.clusters.kinds import KEPT, MAKES, READ, Kind
from playground.clusters.selectors.kinds_held import counts_by_kind, objects_of_kind

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

SHOWN: Final = 100
LABELS: Final = 4
_WORDS: Final = {
    READ: ("eye", "the scheduler reads", "Shapes placement", "A change here can move a pod."),
    MAKES: (
        "pool",
        "makes or admits pods",
        "Makes or admits pods",
        "Decides which pods there are, not where.",
    ),
    KEPT: ("file", "only kept", "Only kept", "Comes back as it came, over the API too."),
}


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind: how many there are, what they do, and what of them counts."""

    kind: Kind
    count: int
    effect: str
    icon: str
    words: str
    counts: str


@dataclass(frozen=True, slots=True)
class Facet:
    """Kinds of one effect."""

    key: str
    icon: str
    title: str
    words: str
    n_kinds: int
    n_objects: int


@dataclass(frozen=True, slots=True)
class KindsView:
    """The page of all kinds.

    Attributes
    ----------
    facets
        All kinds, then those of each effect.
    built_in, custom
        Rows of the chosen effect.
    n_hidden
        Kinds without an object that are left out.
    """

    n_objects: int
    n_kinds: int
    n_shaping: int
    effect: str
    facets: Sequence[Facet]
    built_in: Sequence[KindRow]
    custom: Sequence[KindRow]
    n_hidden: int
    with_none: bool


def view_kinds(cluster: Cluster, *, effect: str, with_none: bool) -> KindsView:
    """Every kind, those with objects only unless asked otherwise."""
    if effect and effect not in _WORDS:
        raise Http404(f'There is no effect "{effect}".')
    rows = [_row(kind, count) for kind, count in counts_by_kind(cluster)]
    there = [row for row in rows if row.count]
    shown = [row for row in (rows if with_none else there) if effect in ("", row.effect)]
    facets = [Facet("", "grid", "All", "", len(there), sum(row.count for row in there))]
    for key, (icon, _, title, words) in _WORDS.items():
        some = [row for row in there if row.effect == key]
        facets.append(Facet(key, icon, title, words, len(some), sum(row.count for row in some)))
    return KindsView(
        n_objects=facets[0].n_objects,
        n_kinds=len(there),
        n_shaping=facets[1].n_objects,
        effect=effect,
        facets=facets,
        built_in=[row for row in shown if row.kind.custom is None],
        custom=[row for row in shown if row.kind.custom is not None],
        n_hidden=len([row for row in rows if effect in ("", row.effect)]) - len(shown),
        with_none=with_none,
    )


def _row(kind: Kind, count: int) -> KindRow:
    icon, words, _, _ = _WORDS[kind.role]
    return KindRow(kind, count, kind.role, icon, words, kind.effect)


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object; `namespace` is ``-`` for kinds that live in none."""

    namespace: str
    name: str
    made: str
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class ObjectsView:
    """The page of one kind."""

    row: KindRow
    objects: Sequence[ListedObject]
    named: str
    next_after: str


def view_objects(cluster: Cluster, kind: Kind, *, named: str, after: str) -> ObjectsView:
    """Objects of a kind, a page of them.

    Parameters
    ----------
    after
        ``namespace/name`` of the last one of the page before.
    """
    namespace, _, name = after.rpartition("/")
    place = (namespace, name) if name else None
    found = list(objects_of_kind(cluster, kind, named=named[:253], after=place, limit=SHOWN + 1))
    objects = [_object(item["metadata"]) for item in found[:SHOWN]]
    last = objects[-1] if len(found) > SHOWN else None
    count = next(number for each, number in counts_by_kind(cluster) if each.row_kind == kind.row_kind)
    return ObjectsView(
        row=_row(kind, count),
        objects=objects,
        named=named,
        next_after=f"{'' if last.namespace == '-' else last.namespace}/{last.name}" if last else "",
    )


def _object(meta: dict[str, Any]) -> ListedObject:
    labels = [f"{key}={value}" for key, value in sorted((meta.get("labels") or {}).items())]
    return ListedObject(
        meta.get("namespace") or "-", meta["name"], str(meta.get("creationTimestamp") or ""), labels[:LABELS]
    )
