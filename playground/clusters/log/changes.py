"""What a person did, so that it can be undone: one row a change, written in the transaction that does it.

A change is what one request writes to the log, or several requests within `one_change`. What other schedulers decide is
none, as little as what ours does; nor is how a cluster begins (`opening`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.models import OuterRef, Subquery

from playground.clusters.models import (
    Change,
    Cluster,
    EarlierCycle,
    ExtenderCall,
    LogEntry,
    MockExtender,
    QueueMove,
    Run,
)
from scheduler_core.schema.tables import table_beside

MOST_CHARACTERS: Final = 200

_author: ContextVar[str] = ContextVar("author", default="")


def author() -> str:
    """The User-Agent of the request; empty for pages, and for what the site does itself."""
    return _author.get()


@contextmanager
def written_by(user_agent: str) -> Iterator[None]:
    """What is written within is this program's."""
    token = _author.set("".join(filter(str.isprintable, user_agent))[:MOST_CHARACTERS])
    try:
        yield
    finally:
        _author.reset(token)


KEPT: Final = 100
"""Changes of a cluster that can be undone, the newest."""
TRIM_EVERY: Final = 10
MOST_WORDS: Final = 300
_TABLES: Final = table_beside(__package__, "changes.yaml")
ENGINE_COLUMNS: Final[Sequence[str]] = _TABLES["engine"]
PERSONS_COLUMNS: Final[Sequence[str]] = _TABLES["persons"]


@dataclass(slots=True)
class _Together:
    words: str
    more: dict[str, Any]
    rows: dict[int, Change] = field(default_factory=dict)


_together: ContextVar[_Together | None] = ContextVar("together", default=None)
_is_opening: ContextVar[bool] = ContextVar("is_opening", default=False)


@contextmanager
def one_change(words: str = "", more: dict[str, Any] | None = None) -> Iterator[None]:
    """What is written within is one change, all of it or nothing; within another one it is part of that.

    Parameters
    ----------
    words
        What is done, as a command; empty: as the first part of it says.
    more
        What a caller wants to have back when the change is undone (`Undone.more`).
    """
    if _together.get() is not None:
        yield
        return
    token = _together.set(_Together(words, more or {}))
    try:
        with transaction.atomic():
            yield
    finally:
        _together.reset(token)


@contextmanager
def opening() -> Iterator[None]:
    """What is written within is how a cluster begins, and cannot be undone."""
    token = _is_opening.set(True)
    try:
        yield
    finally:
        _is_opening.reset(token)


def standing(cluster: Cluster, at_ns: int, *, rules: bool = False) -> dict[str, Any]:
    """The cluster before a change: its row, and its mock extenders where they count calls or are about to change."""
    kept = {name: getattr(cluster, name) for name in (*ENGINE_COLUMNS, *PERSONS_COLUMNS)}
    mocks = {"mocks": _mocks_of(cluster)} if rules or (cluster.config or {}).get("extenders") else {}
    newest = {} if _is_opening.get() else {"newest": _newest_rows(cluster)}
    return {"seq": cluster.next_seq, "at_ns": at_ns, **kept, **mocks, **newest}


def note(
    cluster: Cluster, before: dict[str, Any], told: Sequence[tuple[str, str]], words: str | None
) -> None:
    """Keep a change, if it is one. In the transaction that does it, with the cluster locked.

    Parameters
    ----------
    before
        `standing` at its beginning.
    told
        Verb and object of each entry that is a person's, in order.
    words
        What was done, where the entries do not say it well; None is no change.
    """
    if _is_opening.get() or words is None or not (told or words):
        return
    changed = {name: before[name] for name in PERSONS_COLUMNS if getattr(cluster, name) != before[name]}
    if "mocks" in before:
        changed["mocks"] = before["mocks"]
    together = _together.get()
    if together is not None and cluster.pk in together.rows:
        change = together.rows[cluster.pk]
        if changed.keys() - change.before.keys():
            change.before = changed | change.before
            change.save(update_fields=["before"])
        return
    kept = {name: before[name] for name in ENGINE_COLUMNS} | changed | {"at_ns": before["at_ns"]}
    change = Change.objects.create(
        cluster_id=cluster.pk,
        seq=before["seq"],
        words=((together.words if together else "") or words or _in_words(told))[:MOST_WORDS],
        program=author(),
        before=kept | before["newest"] | {"more": together.more if together else {}},
    )
    if together is not None:
        together.rows[cluster.pk] = change
    if change.pk % TRIM_EVERY == 0:
        _trim(cluster)


def _mocks_of(cluster: Cluster) -> list[dict[str, Any]]:
    """The cluster's mock extenders as they are."""
    rows = MockExtender.objects.filter(cluster=cluster).order_by("pk")
    return [dict(row) for row in rows.values("public_id", "name", "rules", "calls")]


def _newest_rows(cluster: Cluster) -> dict[str, int]:
    """Ids of the newest rows that carry no number of the log."""
    models: dict[str, Any] = {"run": Run, "move": QueueMove, "call": ExtenderCall}
    newest = {
        name: Subquery(model._default_manager.filter(cluster=OuterRef("pk")).order_by("-id").values("id")[:1])
        for name, model in models.items()
    }
    found = Cluster.objects.filter(pk=cluster.pk).annotate(**newest).values(*newest).get()
    return {name: found[name] or 0 for name in models}


def _trim(cluster: Cluster) -> None:
    oldest = Change.objects.filter(cluster=cluster).order_by("-id")[KEPT - 1 : KEPT].first()
    if oldest is not None:
        Change.objects.filter(cluster=cluster, id__lt=oldest.pk).delete()
        EarlierCycle.objects.filter(cluster=cluster, replaced_seq__lt=oldest.seq).delete()


# ---- words


def _in_words(told: Sequence[tuple[str, str]]) -> str:
    verb, what = told[0]
    if len(told) == 1:
        return f"{verb} {what}".strip()
    verbs = {verb for verb, _ in told}
    kinds = {what.partition(" ")[0] for _, what in told}
    if len(verbs) == len(kinds) == 1:
        return f"{verb} {len(told):,} {_plural(next(iter(kinds)))}"
    return f"{verb} {what} and {len(told) - 1:,} more"


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "ch")) else f"{kind}s"


def told_of(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Verb and object of a new entry, by the fields of its row, as a command; None of one that is not a person's."""
    payload, object_kind = entry["payload"], entry["object_kind"]
    if entry["source"] == LogEntry.Source.ENGINE or payload.get("by") or object_kind == "Lease":
        return None
    place = "/".join(filter(None, (entry["object_namespace"], entry["object_name"])))
    what = f"{object_kind.partition('.')[0]} {place}"
    match entry["kind"]:
        case LogEntry.Kind.WRITE:
            return ("create" if entry["created"] else "change", what)
        case LogEntry.Kind.DELETE:
            return ("delete", what)
        case LogEntry.Kind.PERMIT:
            return (payload["decision"], f"Pod {payload['namespace']}/{payload['name']}")
        case LogEntry.Kind.CONFIG:
            release = payload.get("release")
            return ("follow", f"Kubernetes {release['name']}") if release else ("change", "the configuration")
        case LogEntry.Kind.EXPIRY:
            return ("change", "how long assumed pods are believed")
        case LogEntry.Kind.CLOCK:
            return ("pause", "the clock") if payload["mode"] == "paused" else ("let", "the clock run")
    return None
