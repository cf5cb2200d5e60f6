"""What the last run of a share says of it, in a few words that are true: for badges, pictures and frames."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from django.utils import timezone

from playground.clusters.choices import OPEN, WorkState
from playground.scenarios.choices import ScenarioState
from playground.scenarios.selectors import newest_upgrade
from playground.scenarios.services.upgrades import upgrade_result

if TYPE_CHECKING:
    from playground.scenarios.row_types import Scenario, Verification

OLD_AFTER: Final = timedelta(days=30)
_OK, _BAD, _WARN, _WAIT, _DIM = "#14704a", "#b3261e", "#865300", "#0b6472", "#5a6573"
_LETTER, _HIGH = 6.7, 22


@dataclass(frozen=True, slots=True)
class Standing:
    """How a share stands.

    Attributes
    ----------
    words
        Short, for a badge: ``reproduced on 1.36``.
    sentence
        With numbers, for a picture.
    sign
        Beside the words, since colour is never alone.
    """

    words: str
    sentence: str
    colour: str
    sign: str
    css: str


GONE: Final = Standing(
    "not available", "The share was deleted, has expired, or is not open to you.", _DIM, "–", "dim"
)


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
        return Standing("cannot be run", "It cannot be run", _BAD, "✕", "bad")
    if last is None:
        if proof is not None and proof.state == WorkState.FAILED:
            return Standing("not checked", "Recorded; its proof failed", _DIM, "–", "dim")
        return Standing(f"running {on}", "Recorded, being proved", _WAIT, "…", "wait")
    if not last.is_proof:
        place = (
            f"Differs at cycle {last.differs_at:,}" if last.differs_at else "Not the decisions it tells of"
        )
        return Standing(f"not reproduced {on}", place, _BAD, "✕", "bad")
    if not last.n_recorded:
        return Standing("nothing decided", "Nothing was decided in it", _DIM, "–", "dim")
    age = (now or timezone.now()) - (last.finished or last.created)
    if age > OLD_AFTER:
        return Standing(
            f"last run {age.days} days ago", f"Recorded; last run {age.days} days ago", _DIM, "–", "dim"
        )
    told = f"Reproduced, {last.n_same:,} of {last.n_recorded:,}"
    return Standing(f"reproduced {on}", told, _OK, "✓", "ok")


def standing_on(share: Scenario, release: str) -> Standing:
    """What the newest preview on another release says; a view never runs one. One query."""
    upgrade = newest_upgrade(share, release)
    if upgrade is None:
        return Standing(f"not checked on {release}", f"Not checked on {release}", _DIM, "–", "dim")
    if upgrade.state in OPEN:
        return Standing(f"running on {release}", f"Being run on {release}", _WAIT, "…", "wait")
    if upgrade.state != WorkState.DONE:
        return Standing(f"not checked on {release}", f"Its run on {release} did not end", _DIM, "–", "dim")
    found = upgrade_result(upgrade) or {}
    if found["before"]["name"] != release_of(share):
        return Standing(f"not checked on {release}", f"Not checked on {release}", _DIM, "–", "dim")
    n_different = sum(found["counts"].values())
    if not n_different:
        return Standing(f"reproduced on {release}", f"Decides the same on {release}", _OK, "✓", "ok")
    noun = "pod ends" if n_different == 1 else "pods end"
    return Standing(
        f"{n_different:,} {noun} otherwise on {release}",
        f"{n_different:,} {noun} otherwise on {release}",
        _WARN,
        "!",
        "warn",
    )


def draw_badge(standing: Standing, about: str = "scheduling") -> str:
    """The badge as SVG; its words are its title."""
    said = f"{standing.sign} {standing.words}"
    left, right = round(len(about) * _LETTER) + 14, round(len(said) * _LETTER) + 16
    wide = left + right
    title = escape(f"{about}: {standing.words}. {standing.sentence}")
    label = escape(f"{about}: {standing.words}", {'"': "&quot;"})
    text = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle" y="15"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{_HIGH}" role="img" aria-label="{label}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{wide}" height="{_HIGH}" rx="4"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="{_HIGH}" fill="#e8ebf0"/>'
        f'<rect x="{left}" width="{right}" height="{_HIGH}" fill="{standing.colour}"/></g>'
        f'<text {text} x="{left / 2}" fill="#14171c" textLength="{left - 14}">{escape(about)}</text>'
        f'<text {text} x="{left + right / 2}" fill="#fff" textLength="{right - 16}">{escape(said)}</text></svg>'
    )
