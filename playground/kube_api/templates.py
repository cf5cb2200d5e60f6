"""Pod templates that come back as they were read: with every default, which was not written.

Templates are kept as written, and answered with the API's defaults. `kubectl edit`, `replace` and `rollout undo` send
the whole of what they read; it is the same template, so that no pod is replaced for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from playground.clusters import kinds, selectors
from playground.clusters.kinds import Kind
from playground.kube_api.read_defaults import with_read_defaults

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

_HASH: Final = "pod-template-hash"


def as_once_written(
    cluster: Cluster, kind: Kind, live: Mapping[str, Any], manifest: dict[str, Any]
) -> dict[str, Any]:
    """An object that takes the place of `live`, its template spelt as the live one's, or an earlier one's, was."""
    template = _template(manifest)
    if template is None or _template(live) in (None, template):
        return manifest
    wanted = _read(template)
    for known in (_template(live), *_earlier(cluster, kind, live)):
        if known is not None and _read(known) == wanted:
            return manifest | {"spec": manifest["spec"] | {"template": known}}
    return manifest


def _template(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    return template if isinstance(template, dict) and isinstance(template.get("spec"), dict) else None


def _earlier(cluster: Cluster, kind: Kind, live: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The templates of a Deployment's ReplicaSets."""
    of_set = kinds.by_kind("ReplicaSet")
    if kind.row_kind != "Deployment" or of_set is None:
        return
    rows = selectors.list_objects(cluster, of_set, namespace=live["metadata"].get("namespace"))
    for manifest in rows.order_by("-resource_version").values_list("manifest", flat=True):
        owners = manifest["metadata"].get("ownerReferences") or ()
        template = _template(manifest)
        if template is not None and any(each.get("uid") == live["metadata"].get("uid") for each in owners):
            meta = template.get("metadata") or {}
            labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != _HASH}
            yield template | {"metadata": meta | {"labels": labels}}


def _read(template: dict[str, Any]) -> dict[str, Any]:
    """A template as clients are answered it."""
    read = with_read_defaults("Deployment", {"metadata": {}, "spec": {"template": template}})["spec"][
        "template"
    ]
    meta = {key: value for key, value in (read.get("metadata") or {}).items() if value}
    return {**read, "metadata": meta}
