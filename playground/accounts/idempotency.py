"""Requests that are sent again: an `Idempotency-Key` is answered once, and the same afterwards, for a day.

Keys are a person's own. What a person may have kept is bounded: the oldest answers go first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from playground.accounts.models import KeptAnswer

KEPT: Final = timedelta(hours=24)
ABANDONED: Final = timedelta(minutes=5)
"""A request that has had no answer for so long has none: who asks again begins anew."""
MOST: Final = 1_000
"""Answers kept for one person."""
MAX_BODY_BYTES: Final = 256 * 1024
"""A longer answer is not kept: a repeated request is answered with where to look instead."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An earlier request with this key, and its answer.

    Attributes
    ----------
    claim
        The row to keep the answer in; None where there was such a request.
    same
        Whether it asked the same.
    answer
        (status, headers, body); None while it is being answered.
    """

    claim: KeptAnswer | None = None
    same: bool = True
    answer: tuple[int, Mapping[str, str], bytes] | None = None


def digest_of(*parts: bytes) -> str:
    """SHA-256 of a request, hex."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()


def begin(*, person: Any, key: str, digest: str, now: datetime | None = None) -> Repeat:
    """Claim a key for a request, or find what became of the one that had it."""
    wall = now or timezone.now()
    whose = "" if person is None else str(person.pk)
    mine = KeptAnswer.objects.filter(whose=whose)
    mine.filter(created__lte=wall - KEPT).delete()
    mine.filter(key=key, status=0, created__lte=wall - ABANDONED).delete()
    try:
        with transaction.atomic():
            claim = KeptAnswer.objects.create(
                person=person, whose=whose, key=key, digest=digest, created=wall
            )
    except IntegrityError:
        found = mine.filter(key=key).first()
        if found is None:  # it was given back this moment
            return Repeat()
        answer = (found.status, found.headers, bytes(found.body)) if found.status else None
        return Repeat(None, found.digest == digest, answer)
    oldest = mine.order_by("-created", "-pk").values_list("pk", flat=True)[MOST : MOST + 1].first()
    if oldest is not None:
        mine.filter(pk__lte=oldest).delete()
    return Repeat(claim)


def keep(claim: KeptAnswer, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Keep an answer; one that says that we failed is not kept, and the request may be tried again."""
    if status >= 500 or status == 429:
        KeptAnswer.objects.filter(pk=claim.pk).delete()
        return
    KeptAnswer.objects.filter(pk=claim.pk).update(status=status, headers=dict(headers), body=body)


def forget_old(*, now: datetime | None = None) -> int:
    """Drop what is over; how many."""
    return KeptAnswer.objects.filter(created__lte=(now or timezone.now()) - KEPT).delete()[0]
