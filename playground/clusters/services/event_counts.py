"""Events that say again what one of the last hour said: one object with a count, as `kubectl get events` shows it.

Those of pods stay apart, as each tells of an attempt or a start of its own.

Source: staging/src/k8s.io/client-go/tools/record/events_cache.go (eventLogger.eventObserve), v1.34
Differs: similar ones with other messages are not combined, and none is held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from playground.clusters.models import Cluster, Event
from playground.engine.columns import is_forgotten

_LOOKED_AT: Final = 200
"""So many of the newest events of the objects of a batch."""

_Sameness = tuple[str, ...]


class EventCounts:
    """What was said already, to be counted.

    Parameters
    ----------
    manifests
        The events of a batch.
    """

    def __init__(self, cluster: Cluster, manifests: Iterable[Mapping[str, Any]]) -> None:
        self._said: dict[_Sameness, Mapping[str, Any]] = {}
        about = [item.get("involvedObject") or {} for item in manifests if _is_counted(item)]
        if not about:
            return
        rows = Event.objects.filter(
            cluster=cluster,
            involved_namespace__in=sorted({str(item.get("namespace") or "") for item in about}),
            involved_name__in=sorted({str(item.get("name") or "") for item in about}),
        ).exclude(involved_kind="Pod")
        newest = rows.order_by("-resource_version").values_list("manifest", flat=True)[:_LOOKED_AT]
        for manifest in reversed(list(newest)):
            self._said[_sameness(manifest)] = manifest

    def counted(self, manifest: dict[str, Any], at_ns: int) -> dict[str, Any]:
        """The event, or the earlier one of the same words with one more in its count."""
        if not _is_counted(manifest):
            return manifest
        same = _sameness(manifest)
        earlier = self._said.get(same)
        if earlier is not None and not is_forgotten(earlier, at_ns):
            manifest = {
                **manifest,
                "metadata": dict(earlier["metadata"]),
                "firstTimestamp": earlier.get("firstTimestamp"),
                "count": int(earlier.get("count") or 1) + 1,
            }
        self._said[same] = manifest
        return manifest


def _is_counted(manifest: Mapping[str, Any]) -> bool:
    return (manifest.get("involvedObject") or {}).get("kind") != "Pod"


def _sameness(manifest: Mapping[str, Any]) -> _Sameness:
    about, source = manifest.get("involvedObject") or {}, manifest.get("source") or {}
    parts = [about.get(key) for key in ("kind", "namespace", "name", "uid")]
    parts += [manifest.get(key) for key in ("type", "reason", "message")]
    return tuple(str(part or "") for part in (*parts, source.get("component")))
