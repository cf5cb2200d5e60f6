"""Server-side tables: objects of a kind with the columns kubectl prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playground.clusters.kinds import Kind
from playground.clusters.versions import as_stored
from playground.kube_api.cells import AGE, Column, Manifest
from playground.kube_api.columns import columns_of


def table(
    kind: Kind,
    manifests: Iterable[Manifest],
    now_ns: int,
    *,
    api_version: str = "meta.k8s.io/v1",
    include: str = "Metadata",
    metadata: Mapping[str, Any] | None = None,
    with_columns: bool = True,
) -> dict[str, Any]:
    """Objects of one kind as a `Table`.

    Parameters
    ----------
    now_ns
        The cluster's time.
    include
        What of each object comes along: ``None``, ``Metadata`` or ``Object``.
    with_columns
        False for all but the first event of a watch.
    """
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": dict(metadata or {}),
        "columnDefinitions": [column.definition() for column in columns] if with_columns else None,
        "rows": [
            {
                "cells": [column.cell(as_stored(kind, dict(manifest)), now_ns) for column in columns],
                **_object(manifest, include),
            }
            for manifest in manifests
        ],
    }


def scale_table(scale: Manifest, now_ns: int, *, api_version: str, include: str) -> dict[str, Any]:
    """A Scale as a `Table`: what is wanted and what there is."""
    columns = (
        Column("Name", lambda found, _: found["metadata"]["name"]),
        Column("Desired", lambda found, _: found["spec"]["replicas"], "integer"),
        Column("Available", lambda found, _: found["status"]["replicas"], "integer"),
        AGE,
    )
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [{"cells": [column.cell(scale, now_ns) for column in columns], **_object(scale, include)}],
    }


def _object(manifest: Manifest, include: str) -> dict[str, Any]:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": manifest}
    return {"object": partial(manifest)}


def partial(manifest: Manifest) -> dict[str, Any]:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": manifest["metadata"],
    }
