"""What a person's shares and comparisons take, kept on their account for `clusters.services.quotas`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import F, Sum
from django.db.models.functions import Coalesce, Length

from playground.accounts.models import User
from playground.clusters.errors import QuotaExceeded
from playground.clusters.log import quotas
from playground.scenarios.models import Comparison, Scenario, Verdict


def check_share(person: Any, n_bytes: int) -> None:
    """Refuse one share more than a person may have. In the transaction that makes it.

    Raises
    ------
    QuotaExceeded
    """
    if person is None or settings.EMBEDDED:
        return
    quotas.lock_person(person)
    limit, number = settings.PLAYGROUND_MAX_SHARES, shares_of(person)
    if number >= limit:
        raise QuotaExceeded(
            f"{person.get_username()} has {number:,} shares, and one person may have {limit:,}"
            " (PLAYGROUND_MAX_SHARES); delete one first"
        )
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
