"""What a person's shares take, kept on their account for `clusters.log.quotas`, and what expires."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce, Length
from django.utils import timezone

from playground.accounts.models import User
from playground.clusters.log import quotas
from playground.clusters.models import Question, SeedEnd
from playground.scenarios.models import Comparison, Scenario, Verdict, Verification


def check_share(person: Any, n_bytes: int) -> None:
    """Refuse one share more than a person may have. In the transaction that makes it.

    Raises
    ------
    QuotaExceeded
    """
    if person is None or settings.EMBEDDED:
        return
    quotas.lock_person(person)
    quotas.check_number(person, shares_of(person), "shares")
    quotas.check_bytes(person, n_bytes)


def shares_of(person: Any) -> int:
    """How many shares count for a person, shared verdicts among them. Two queries."""
    verdicts = Verdict.objects.filter(owner=person).count()
    return Scenario.objects.filter(owner=person, gallery_name="").count() + verdicts


def quota_of(person: Any) -> dict[str, tuple[int, int]]:
    """What a person has and may have: clusters, shares, stored bytes. Five queries."""
    return {
        "clusters": (quotas.clusters_of_creator(person), settings.PLAYGROUND_MAX_CLUSTERS),
        "shares": (shares_of(person), settings.PLAYGROUND_MAX_SHARES),
        "storedBytes": (quotas.bytes_of(person), settings.PLAYGROUND_MAX_STORED_BYTES),
    }


def count_stored(owner_id: int | None) -> None:
    """Sum up a person's shares and comparisons again, after one came, went or was filled."""
    if owner_id is None:
        return
    shares = Scenario.objects.filter(owner=owner_id, gallery_name="")
    comparisons = Comparison.objects.filter(owner=owner_id)
    total = shares.aggregate(n=Coalesce(Sum(F("n_bytes") + F("recorded_bytes")), 0))["n"]
    total += comparisons.aggregate(n=Coalesce(Sum(Length("result")), 0))["n"]
    verdicts = Verdict.objects.filter(owner=owner_id)
    total += verdicts.aggregate(n=Coalesce(Sum(Length("answer") + Length("state")), 0))["n"]
    User.objects.filter(pk=owner_id).update(shared_bytes=total)


def count_all() -> None:
    """The same for everybody who has or had any: rows also go by expiry, and with a team."""
    owners = set(Scenario.objects.exclude(owner=None).values_list("owner", flat=True).distinct())
    owners |= set(Comparison.objects.exclude(owner=None).values_list("owner", flat=True).distinct())
    owners |= set(User.objects.exclude(shared_bytes=0).values_list("pk", flat=True))
    for owner in sorted(owners):
        count_stored(owner)


KEPT_PROOFS: Final = 20
"""Of each share, the newest."""
MOST_AT_ONCE: Final = 20_000
"""Rows of a kind that are dropped in one go."""
BATCH: Final = 500


def tidy(*, now: datetime | None = None) -> dict[str, int]:
    """Drop what has expired with all that was found out about it, comparisons of shares that are gone, old proofs.

    An expired share is not shown, tidied or not. Every share holds a document of its own, so none of the same
    content is touched. Safe to run at any time and twice.

    Returns
    -------
    dict of str to int
        How many, by name.
    """
    moment = now or timezone.now()
    # First the shares: what compares them goes in the same round.
    shares = _delete(Scenario.objects.filter(expires__lte=moment))
    dropped = {
        "shares": shares,
        "comparisons": _delete(Comparison.objects.filter(expires__lte=moment)) + _comparisons_of_nothing(),
        "verdicts": _delete(Verdict.objects.filter(expires__lte=moment)),
        "proofs": _old_proofs(),
        "seeds": _delete(SeedEnd.objects.exclude(question__state__in=Question.OPEN)),
    }
    count_all()
    return dropped


def _comparisons_of_nothing() -> int:
    """Comparisons of which a share is gone; they are not shown any more."""
    known = set(Scenario.objects.values_list("public_id", flat=True))
    rows = Comparison.objects.order_by("pk").values_list("pk", "a", "b", "more")
    gone = [
        pk
        for pk, a, b, more in rows.iterator(BATCH)
        if any(side["kind"] == "scenario" and side["id"] not in known for side in (a, b, *more))
    ]
    return _delete_keys(Comparison, gone[:MOST_AT_ONCE])


def _old_proofs() -> int:
    """Finished proofs beyond the newest of each share."""
    old = Verification.objects.exclude(state=Verification.State.QUEUED).order_by("scenario_id", "-pk")
    seen: dict[int, int] = {}
    chosen = []
    for pk, scenario_id in old.values_list("pk", "scenario_id").iterator(2000):
        seen[scenario_id] = seen.get(scenario_id, 0) + 1
        if seen[scenario_id] > KEPT_PROOFS:
            chosen.append(pk)
    return _delete_keys(Verification, chosen[:MOST_AT_ONCE])


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows and what hangs on them; how many rows."""
    return _delete_keys(rows.model, list(rows.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE]))


def _delete_keys(model: Any, keys: Sequence[int]) -> int:
    for start in range(0, len(keys), BATCH):
        model.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return len(keys)
