"""What became of a preemption: the victims' ends and the pod's next cycle."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from playground.clusters.models import Cycle, LogEntry

MOST_VICTIMS = 40
NS = 1_000_000_000


@dataclass(frozen=True)
class VictimEnd:
    """One victim; `gone_ns` is None while it still terminates, `until_ns` None when it was never asked to go."""

    pod: str
    asked_ns: int | None
    until_ns: int | None
    gone_ns: int | None


@dataclass(frozen=True)
class Aftermath:
    """What happened after a cycle that evicted pods."""

    victims: tuple[VictimEnd, ...]
    next_cycle: Cycle | None


def aftermath(cycle: Cycle, victims: list[str]) -> Aftermath:
    """Follow the victims (`namespace/name`) and the pod. Two queries."""
    asked: dict[str, int] = {}
    until: dict[str, int] = {}
    gone: dict[str, int] = {}
    for entry in _entries(cycle, victims[:MOST_VICTIMS]):
        pod = f"{entry.object_namespace}/{entry.object_name}"
        if pod in gone:
            continue
        ends = _ends_ns(entry.payload.get("manifest") or {})
        if entry.kind == LogEntry.Kind.DELETE and entry.payload.get("gone", True):
            gone[pod] = entry.at_ns
            asked.setdefault(pod, entry.at_ns)
        elif ends is not None:
            asked.setdefault(pod, entry.at_ns)
            until.setdefault(pod, ends)
    again = Cycle.objects.filter(
        cluster_id=cycle.cluster_id,
        pod_namespace=cycle.pod_namespace,
        pod_name=cycle.pod_name,
        number__gt=cycle.number,
    )
    return Aftermath(
        tuple(VictimEnd(pod, asked.get(pod), until.get(pod), gone.get(pod)) for pod in victims),
        again.order_by("number").defer("trace").first(),
    )


def _entries(cycle: Cycle, victims: list[str]) -> list[LogEntry]:
    wanted = Q(pk__in=[])
    for victim in victims:
        namespace, _, name = victim.partition("/")
        # Each pod is looked up in the index of objects; asked for in order, SQLite would read the whole log instead.
        wanted |= Q(cluster=cycle.cluster_id, object_kind="Pod", object_namespace=namespace, object_name=name)
    found = LogEntry.objects.filter(wanted, at_ns__gte=cycle.at_ns).order_by()
    return sorted(found[: 64 * MOST_VICTIMS], key=lambda entry: entry.seq)


def _ends_ns(manifest: dict[str, Any]) -> int | None:
    written = (manifest.get("metadata") or {}).get("deletionTimestamp")
    if not written:
        return None
    return round(datetime.fromisoformat(str(written).replace("Z", "+00:00")).timestamp()) * NS
