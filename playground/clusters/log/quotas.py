"""What one person may make: so many clusters, shares and stored bytes. Embedded mode has one person and no quotas.

A token of one cluster makes none of these: they would lie outside of that cluster.

Whose a cluster is to count: its creator's, also if a team has it, so that teams are no way around it.

Bytes are a maintained figure. `measure` looks at the tables now and then (hourly, what changed); in between a cluster
grows by what people write, counted as it is written, and by its newer log entries at the size entries had when it was
measured. So asking takes one sum over a person's cluster rows, whatever is in them. An engine at work is never stopped
in the middle by a quota: the next thing a person asks for is refused.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import BinaryField, Count, F, Func, IntegerField, JSONField, Q, Sum, TextField
from django.db.models.functions import Coalesce
from django.utils import timezone

from playground.accounts.models import User
from playground.accounts.tokens import beyond, only_cluster
from playground.clusters.errors import Forbidden, QuotaExceeded
from playground.clusters.models import Cluster, LogEntry

ROW_BYTES: Final = 150
"""A row besides its documents: keys, counters and their indexes."""
MEASURE_AGAIN: Final = timedelta(days=1)
"""What did not change is still measured so often: old traces are dropped without a change of it."""
_DOCUMENTS: Final = (BinaryField, JSONField, TextField)


class StoredBytes(Func):
    """How much room a column's value takes. PostgreSQL knows without reading it."""

    output_field = IntegerField()
    template = "LENGTH(CAST(%(expressions)s AS BLOB))"

    def as_postgresql(self, compiler: Any, connection: Any, **how: Any) -> Any:
        return self.as_sql(compiler, connection, template="pg_column_size(%(expressions)s)", **how)


def lock_person(person: Any) -> None:
    """Until the transaction ends, what else would count for the person waits: two at the limit are not both let in."""
    if person is not None and not settings.EMBEDDED:
        User.objects.select_for_update().filter(pk=person.pk).first()


def check_token(person: Any) -> None:
    """Refuse to make a cluster, a share or a comparison with a token of one cluster.

    Raises
    ------
    Forbidden
    """
    if only := only_cluster(person):
        raise Forbidden(beyond(only), kind="Cluster", name=only)


def check_clusters(person: Any) -> None:
    """Refuse one cluster more than a person may have. In a transaction that `lock_person` began.

    Raises
    ------
    QuotaExceeded, Forbidden
    """
    check_token(person)
    if person is None or settings.EMBEDDED:
        return
    check_number(person, clusters_of_creator(person), "clusters")


def check_number(person: Any, number: int, what: str) -> None:
    """Refuse one more of what a person has so many of already.

    Raises
    ------
    QuotaExceeded
    """
    setting = f"PLAYGROUND_MAX_{what.upper()}"
    if number >= (limit := getattr(settings, setting)):
        raise QuotaExceeded(
            f"{person.get_username()} has {number:,} {what}, and one person may have {limit:,} ({setting});"
            " delete one first"
        )


def check_bytes(person: Any, more: int = 0) -> None:
    """Refuse what would store more bytes than a person may have.

    Raises
    ------
    QuotaExceeded, Forbidden
    """
    check_token(person)
    if person is None or settings.EMBEDDED:
        return
    limit = settings.PLAYGROUND_MAX_STORED_BYTES
    stored = bytes_of(person)
    if stored + more > limit:
        raise QuotaExceeded(
            f"{person.get_username()} stores {_mb(stored)} in clusters, shares and comparisons, and one person may"
            f" store {_mb(limit)} (PLAYGROUND_MAX_STORED_MB); delete something first"
        )


def bytes_of(person: Any) -> int:
    """How much a person stores: clusters they made, shares, comparisons. Two queries."""
    grown = F("stored_bytes") + (F("next_seq") - F("measured_seq")) * F("entry_bytes")
    total = Cluster.objects.filter(creator=person).aggregate(total=Coalesce(Sum(grown), 0))["total"]
    shared = User.objects.filter(pk=person.pk).values_list("shared_bytes", flat=True).first()
    return int(total) + (shared or 0)


def clusters_of_creator(person: Any) -> int:
    """How many clusters count for a person. One query."""
    return Cluster.objects.filter(creator=person).count()


def measure(cluster: Cluster) -> int:
    """Look how much the rows of a cluster take, and keep it; the bytes."""
    total, n_entries = 0, 0
    for relation in Cluster._meta.related_objects:
        model = relation.related_model
        columns = [field for field in model._meta.concrete_fields if _is_document(field)]
        sums = {field.name: Sum(StoredBytes(F(field.name))) for field in columns}
        rows = model._default_manager.filter(**{relation.field.name: cluster}).order_by()
        found = rows.aggregate(n_rows=Count("pk"), **sums)
        n_rows = found.pop("n_rows")
        total += n_rows * ROW_BYTES + sum(value or 0 for value in found.values())
        if model is LogEntry:
            n_entries = n_rows
    seq = Cluster.objects.filter(pk=cluster.pk).values_list("next_seq", flat=True).first()
    if seq is None:
        return total
    changed = {"stored_bytes": total, "measured_seq": seq, "measured_at": timezone.now()}
    if n_entries:
        changed["entry_bytes"] = max(1, total // n_entries)
    Cluster.objects.filter(pk=cluster.pk).update(**changed)
    return total


def measure_changed(*, limit: int = 500) -> int:
    """Measure clusters that count for a person and may have another size now, longest ago first; how many."""
    if settings.EMBEDDED:
        return 0
    before = timezone.now() - MEASURE_AGAIN
    moved = Q(measured_at__isnull=True) | Q(measured_at__lt=before) | ~Q(measured_seq=F("next_seq"))
    rows = Cluster.objects.filter(moved, creator__isnull=False).order_by(
        F("measured_at").asc(nulls_first=True)
    )
    chosen = list(rows[:limit])
    for cluster in chosen:
        measure(cluster)
    return len(chosen)


def _is_document(field: Any) -> bool:
    return isinstance(field, _DOCUMENTS)


def _mb(number: int) -> str:
    return f"{number / 2**20:,.1f} MB".replace(".0 MB", " MB")
