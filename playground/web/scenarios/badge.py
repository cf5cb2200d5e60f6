"""What the last run of a share says of it, in a few words that are true: for frames."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from playground.clusters.choices import WorkState
from playground.scenarios.choices import ScenarioState

if TYPE_CHECKING:
    from playground.scenarios.row_types import Scenario, Verification

OLD_AFTER: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a share stands.

    Attributes
    ----------
    words
        Short: ``reproduced on 1.36``.
    sentence
        With numbers.
    sign
        Beside the words, since colour is never alone.
    """

    words: str
    sentence: str
    sign: str
    css: str


def release_of(share: Scenario) -> str:
    """The release it follows, as ``1.36``."""
    return share.emulates.removeprefix("v")


def standing_of(
    share: Scenario, proof: Verification | None, last: Verification | None, now: datetime | None = None
) -> Standing:
    """What the newest proof says on the release the share follows.

    Parameters
    ----------
    proof
        The newest one; one that waits is under way.
    last
        The newest that is finished.
    now
        For its age; the wall clock otherwise.
    """
    on = f"on {release_of(share)}"
    if share.state == ScenarioState.FAILED:
        return Standing("cannot be run", "It cannot be run", "✕", "bad")
    if last is None:
        if proof is not None and proof.state == WorkState.FAILED:
            return Standing("not checked", "Recorded; its proof failed", "–", "dim")
        return Standing(f"running {on}", "Recorded, being proved", "…", "wait")
    if not last.is_proof:
        place = (
            f"Differs at cycle {last.differs_at:,}" if last.differs_at else "Not the decisions it tells of"
        )
        return Standing(f"not reproduced {on}", place, "✕", "bad")
    if not last.n_recorded:
        return Standing("nothing decided", "Nothing was decided in it", "–", "dim")
    age = (now or timezone.now()) - (last.finished or last.created)
    if age > OLD_AFTER:
        return Standing(
            f"last run {age.days} days ago", f"Recorded; last run {age.days} days ago", "–", "dim"
        )
    told = f"Reproduced, {last.n_same:,} of {last.n_recorded:,}"
    return Standing(f"reproduced {on}", told, "✓", "ok")
