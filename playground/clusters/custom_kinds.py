"""The kinds of one cluster: Kubernetes' own, and those its CustomResourceDefinitions make."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from playground.clusters.kinds import Kind, KindTable, built_in, version_order
from playground.clusters.models import Cluster, Manifest
from playground.engine.schema import early_in

DEFINITION: Final = "CustomResourceDefinition"
_APPLY_RANK: Final = 6
_KEPT_TABLES: Final = 64
_TABLES: Final[OrderedDict[tuple[str, int, str], KindTable]] = OrderedDict()


def table_of(cluster: Cluster) -> KindTable:
    """The kinds of a cluster. One query the first time after a definition changed, none where there never was one."""
    if not cluster.kinds_seq:
        return built_in_of(cluster.kubernetes_release)
    # Not the number of the row: one that was never committed is given again.
    key = (cluster.public_id, cluster.kinds_seq, cluster.kubernetes_release)
    table = _TABLES.get(key)
    if table is None:
        rows = Manifest.objects.filter(cluster=cluster, kind=DEFINITION).order_by("name")
        before = built_in_of(cluster.kubernetes_release)
        table = with_definitions(before, rows.values_list("manifest", flat=True))
        _TABLES[key] = table
        while len(_TABLES) > _KEPT_TABLES:
            _TABLES.popitem(last=False)
    else:
        _TABLES.move_to_end(key)
    return table


@cache
def built_in_of(release: str) -> KindTable:
    """Kubernetes' own kinds, as a release serves them."""
    return built_in(early_in(release))


def with_definitions(table: KindTable, definitions: Iterable[Mapping[str, Any]]) -> KindTable:
    """A table that has the kinds of some CustomResourceDefinitions, too; one it knows already gives way."""
    more = [kind for definition in definitions for kind in kinds_of(definition)]
    if not more:
        return table
    named = {kind.row_kind for kind in more}
    before = [kind for kind in table.served if kind.custom is None or kind.row_kind not in named]
    taken = {(kind.api_version, kind.plural) for kind in before}
    return KindTable([*before, *(kind for kind in more if (kind.api_version, kind.plural) not in taken)])


def kinds_of(definition: Mapping[str, Any]) -> list[Kind]:
    """The kind a CustomResourceDefinition makes, in each version it serves, the preferred one first."""
    spec = definition["spec"]
    names = spec["names"]
    served = sorted(
        (each for each in spec["versions"] if each.get("served")),
        key=lambda each: version_order(each["name"]),
    )
    if not served:
        return []
    main = next((each for each in served if each.get("storage")), served[0])
    stored = f"{spec['group']}/{main['name']}"
    return [
        Kind(
            f"{spec['group']}/{version['name']}",
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            tuple(names.get("shortNames") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            categories=tuple(names.get("categories") or ()),
            apply_rank=_APPLY_RANK,
            stored_version="" if version is main else stored,
            singular_name=names.get("singular") or "",
            list_name=names.get("listKind") or "",
            row_kind=f"{names['kind']}.{spec['group']}",
            custom=version,
            has_generation=True,
        )
        for version in served
    ]
