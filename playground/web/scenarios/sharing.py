"""Small things of sharing that several pages need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict

from django.http import HttpRequest
from django.utils import timezone

from playground.accounts.teams import teams_of
from playground.clusters.choices import WorkState
from playground.clusters.errors import InvalidInput
from playground.scenarios.choices import ScenarioState
from playground.web.requests import positive_int, site_user

if TYPE_CHECKING:
    from playground.scenarios.row_types import Scenario, Verification


def visibilities_for(request: HttpRequest) -> list[tuple[str, str]]:
    """Who may see a share or a comparison: what a form posts, and words for it."""
    words = [("unlisted", "people who have the link"), ("public", "everybody, listed")]
    user = site_user(request)
    if user is None:
        return words
    teams = [(f"team/{team.name}", f"team {team.name} only") for team in teams_of(user)]
    return [*words, *teams, ("private", "only you")]


class SeenBy(TypedDict):
    """Who may see a share, as `shares.share` takes it."""

    visibility: str
    team: str


def seen_by(request: HttpRequest, *, otherwise: str = "unlisted") -> SeenBy:
    """What the form says."""
    visibility, _, team = request.POST.get("visibility", otherwise).partition("/")
    return {"visibility": visibility, "team": team}


def said_by(request: HttpRequest) -> dict[str, Any]:
    """The author's note and moment in the form, as `shares.share` takes them.

    Raises
    ------
    InvalidInput
    """
    text = request.POST.get("opens_at", "").strip()
    opens_at = positive_int(text) if text else None
    if text and opens_at is None:
        raise InvalidInput("the cycle it opens at is a number from 1 on", field="opens_at", value=text[:20])
    return {"note": request.POST.get("note", ""), "opens_at": opens_at}


def expiry_of(days: str) -> datetime | None:
    """When a share that lives so many days expires; never if nothing is said.

    Raises
    ------
    InvalidInput
    """
    text = days.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 3660:
        raise InvalidInput(
            "a share lives 1 to 3660 days, or until it is deleted", field="days", value=text[:20]
        )
    return timezone.now() + timedelta(days=int(text))


OLD_AFTER: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a share.

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
