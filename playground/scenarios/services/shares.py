"""Sharing: a document in, an immutable share out; and taking a share back."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from playground.accounts import audit
from playground.accounts.models import Team
from playground.clusters import jobs, lanes, wake
from playground.clusters.errors import Conflict, Forbidden, InvalidInput, InvalidManifest, TooLarge
from playground.engine.scenarios import (
    MAX_LINK_CHARS,
    FreshRun,
    RunStopped,
    SavedReplay,
    ScenarioError,
    ScenarioFacts,
    asked,
    line_of,
    read_submitted,
    run_fresh,
    unfolded,
)
from playground.scenarios.models import Scenario, Verification
from playground.scenarios.services import recording
from playground.scenarios.services.audience import checked_audience
from playground.scenarios.services.errands import through_a_worker
from playground.scenarios.services.storage import check_share, count_stored
from scheduler_core.scenario.carried import Carried

MAX_NOTE: Final = 2000
"""Letters of a note."""
AT_ONCE_NODES: Final = 200
AT_ONCE_PODS: Final = 1000
AT_ONCE_STEPS: Final = 2000
AT_ONCE_S: Final = 5.0
"""Up to these sizes a share is run before its link is given out, so that one that cannot be run is refused; it is
waited for so long. Then, and above, the link is given out first, and its page tells how the run went."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What came of sharing.

    Attributes
    ----------
    created
        False: the same owner had shared the same already, and this is that share.
    delete_code
        Told once; None for a share that was there already.
    notes
        For a person.
    field_notes
        Misspelt fields of the document; the share's page tells them, among what was noted while it ran.
    """

    scenario: Scenario
    created: bool
    delete_code: str | None
    notes: tuple[str, ...] = field(default=())
    field_notes: tuple[str, ...] = field(default=())


def max_bytes() -> int:
    """The most bytes one scenario may have."""
    return int(settings.PLAYGROUND_MAX_SCENARIO_BYTES)


def checked_document(document: str | bytes) -> tuple[bytes, ScenarioFacts, Carried | None]:
    """The document as bytes, what it says, and what it was carried by: a link or a saved replay will do as well.

    Raises
    ------
    TooLarge, InvalidManifest
    """
    data = document.encode() if isinstance(document, str) else bytes(document)
    _check_size(data)
    try:
        carried = unfolded(data, max_bytes=max_bytes())
        if carried is not None:
            data = carried.text.encode()
            _check_size(data)
        return data, read_submitted(data, max_objects=settings.PLAYGROUND_MAX_OBJECTS), carried
    except ScenarioError as problem:
        raise as_error(problem) from None


def _check_size(data: bytes) -> None:
    limit = max_bytes()
    if len(data) > limit:
        raise TooLarge(
            f"the scenario has {len(data):,} bytes; at most {limit:,} are shared"
            " (a larger one can be replayed from its file: python -m scheduler_core replay)"
        )


def as_error(problem: ScenarioError) -> InvalidManifest:
    """The family of refusals that pages and APIs know."""
    errors = [
        InvalidManifest(
            str(replace(item, line=None)),
            path=item.path,
            value=item.value if isinstance(item.value, str | int | float | bool) else None,
            line=item.line,
            column=item.column,
            kind="Scenario",
        )
        for item in problem.problems[:20]
    ]
    return InvalidManifest.of(errors)


def share(
    *,
    document: str | bytes,
    owner: Any = None,
    visibility: str = Scenario.Visibility.UNLISTED,
    team: Team | str | None = None,
    expires: datetime | None = None,
    parent: Scenario | None = None,
    gallery_name: str = "",
    note: str = "",
    opens_at: int | None = None,
    run: FreshRun | None = None,
    share_key: str = "",
    field_validation: str = "Warn",
) -> Shared:
    """Share a document. The same owner, content, words (title, lesson, expectations, ...), visibility, note and moment
    give the same share.

    Parameters
    ----------
    document
        YAML or JSON text of one scenario, a link that carries one, or a replay saved as HTML; the last two bring the
        note and the moment they were made with.
    owner
        A user; None in embedded mode.
    visibility
        ``public``, ``unlisted`` (who has the link), ``team`` or ``private``.
    team
        Of a team share, or its name; the owner's only team if he has one.
    expires
        From then on it is not shown.
    parent
        The share it was forked from.
    note
        What the author says of it, beside what it says itself.
    opens_at
        The cycle it is opened at; None for the last one. Of a run that is not known yet, one after its end is its end.
    run
        What a fresh run of exactly this document found, if that is known already.
    share_key
        What makes it the same share, instead of owner, digest and visibility.
    field_validation
        Of fields that its objects' kinds do not have: ``Warn`` tells them, ``Strict`` refuses, ``Ignore`` is silent.

    Raises
    ------
    InvalidManifest
        The document is no scenario, or a step of it cannot be done; nothing is kept.
    InvalidManifest, InvalidInput, TooLarge, QuotaExceeded
    """
    team = checked_audience(visibility, team, owner, expires)
    data, facts, carried = checked_document(document)
    notes_of_fields = _told(facts, field_validation)
    if carried is not None:
        note, opens_at = note or carried.note, opens_at if opens_at is not None else carried.opens_at
    note = _checked_note(note)
    key = share_key or _share_key(owner, facts, visibility, team, note, opens_at)
    known = _known(key)
    if known is not None:
        return _again(known, data, expires, notes_of_fields)
    if run is None and _is_small(facts):
        run = _first_run(data, owner)
    if opens_at is not None:
        _check_moment(opens_at, run)
    if run is None:
        jobs.check_room(lanes.MAKE, jobs.person_of(getattr(owner, "pk", None)))
    code = secrets.token_urlsafe(12)
    said = facts.scenario
    try:
        with transaction.atomic():
            check_share(owner, len(data))
            scenario = Scenario.objects.create(
                share_key=key,
                owner=owner,
                visibility=visibility,
                team=team,
                expires=expires,
                delete_digest=_digest(code),
                gallery_name=gallery_name,
                note=note,
                opens_at=opens_at,
                document=data,
                parent=parent,
                forked_from=parent.public_id if parent else "",
                name=said.name[:253],
                title=said.title[:300],
                emulates=f"v{said.kubernetes_release}",
                n_steps=len(said.steps),
                n_extenders=len((said.scheduler or {}).get("extenders") or ()),
                n_bytes=len(data),
                **{name: getattr(facts, name) for name in ("digest", "n_nodes", "n_pods", "n_expectations")},
                **{name: getattr(said, name) for name in ("seed", "start_ns", "lesson")},
                path=[asdict(stop) for stop in said.path],
                has_cassette=bool(said.extenders and said.extenders.cassette),
                plugins=[
                    f"{plugin.name} ({plugin.requirement})" if plugin.requirement else plugin.name
                    for plugin in said.plugins
                ],
                claimed_digest=said.decisions.digest[:64] if said.decisions else "",
            )
            if not gallery_name:
                audit.record(
                    "scenario-shared",
                    by=owner,
                    team=team,
                    target=str(scenario),
                    detail=f"seen by: {visibility}",
                )
            count_stored(getattr(owner, "pk", None))
            if run is None:
                wake.on_commit("record", scenario_id=scenario.pk)
            else:
                recording.record(scenario, run)
                verification = Verification.objects.create(scenario=scenario)
                wake.on_commit("verify", verification_id=verification.pk)
    except IntegrityError:
        known = _known(key)
        if known is None:
            raise
        return _again(known, data, expires, notes_of_fields)
    return Shared(scenario, True, code, field_notes=notes_of_fields)


def delete_share(*, scenario: Scenario, user: Any = None, code: str = "") -> None:
    """Take a share back: its owner may, and a user with its delete code.

    Raises
    ------
    Forbidden
    """
    is_owner = scenario.owner_id == getattr(user, "pk", None) and (
        scenario.owner_id is not None or settings.EMBEDDED
    )
    if not is_owner and not secrets.compare_digest(_digest(code), scenario.delete_digest):
        raise Forbidden(
            "only its owner, or a user with its delete code, can delete a share",
            kind="Scenario",
            name=scenario.public_id,
        )
    with transaction.atomic():
        audit.record(
            "scenario-deleted", by=user, about=scenario.owner, team=scenario.team, target=str(scenario)
        )
        scenario.delete()
        count_stored(scenario.owner_id)


def _known(key: str) -> Scenario | None:
    """The live share of a key; an expired one is gone for good."""
    scenario = Scenario.objects.filter(share_key=key).first()
    if scenario is not None and scenario.expires is not None and scenario.expires <= timezone.now():
        scenario.delete()
        return None
    return scenario


def _told(facts: ScenarioFacts, field_validation: str) -> tuple[str, ...]:
    """Warnings about misspelt fields, shown beside the link.

    Raises
    ------
    InvalidManifest
        Where that is wanted: each with its place.
    """
    faults = [note for note in facts.field_notes if note.fault]
    if field_validation == "Strict" and faults:
        raise InvalidManifest.of(
            [
                InvalidManifest(note.fault, reason="BadRequest", path=note.path, kind="Scenario")
                for note in faults
            ]
        )
    return tuple(note.words for note in facts.field_notes) if field_validation == "Warn" else ()


def _again(known: Scenario, data: bytes, expires: datetime | None, field_notes: tuple[str, ...]) -> Shared:
    notes = []
    if bytes(known.document) != data:
        notes.append(
            "You have shared this scenario already, written another way or with other recorded decisions;"
            " a share never changes, so the link shows it as first shared."
        )
    if known.expires != expires:
        until = f"{known.expires:%Y-%m-%d %H:%M} UTC" if known.expires else "it is deleted"
        notes.append(f"The link lives until {until}, as first shared.")
    return Shared(known, False, None, tuple(notes), field_notes)


def _share_key(
    owner: Any, facts: ScenarioFacts, visibility: str, team: Team | None, note: str, opens_at: int | None
) -> str:
    parts = [
        getattr(owner, "pk", None) or "",
        facts.digest,
        facts.words_digest,
        visibility,
        team.pk if team else "",
        opens_at or "",
        _digest(note),
    ]
    return _digest("/".join(str(part) for part in parts))


def _checked_note(note: str) -> str:
    text = note.replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTE:
        raise InvalidInput(
            f"a note has at most {MAX_NOTE:,} letters; this one has {len(text):,}",
            field="note",
            value=text[:40],
        )
    if "\0" in text:
        raise InvalidInput("a note cannot hold the character U+0000", field="note")
    return text


def _check_moment(opens_at: int, run: FreshRun | None) -> None:
    last = 2**31 - 1 if run is None else len(run.cycles)
    if not 1 <= opens_at <= last:
        has = "cycles are counted from 1" if run is None else f"the run has {len(run.cycles):,} cycles"
        raise InvalidInput(
            f"there is no cycle {opens_at} to open it at: {has}", field="opens_at", value=opens_at
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_small(facts: ScenarioFacts) -> bool:
    return (
        facts.n_nodes <= AT_ONCE_NODES
        and facts.n_pods <= AT_ONCE_PODS
        and len(facts.scenario.steps) <= AT_ONCE_STEPS
    )


def _first_run(data: bytes, owner: Any) -> FreshRun | None:
    """What a worker finds at once; None if that takes long."""
    try:
        return run_fresh(data, ask=through_a_worker(owner=owner, wait_s=AT_ONCE_S))
    except ScenarioError as problem:
        raise as_error(problem) from None
    except RunStopped:
        return None


MOST_LINK_BYTES: Final = 256 * 1024
"""Documents above are not tried: reading them takes longer than a page may."""
MOST_FILE_PODS: Final = 2000
MOST_FILE_NODES: Final = 1000
MOST_FILE_CYCLES: Final = 5000


def carried_line(*, scenario: Scenario) -> str:
    """What follows the `#` of a link that carries the share, its note and its moment.

    Raises
    ------
    TooLarge
    """
    size = scenario.n_bytes
    said = f"; links carry at most {MAX_LINK_CHARS:,}: pass on the file instead"
    if size > MOST_LINK_BYTES:
        raise TooLarge(f"the scenario has {size:,} bytes{said} characters")
    line = line_of(bytes(scenario.document), note=scenario.note, opens_at=scenario.opens_at)
    if len(line) > MAX_LINK_CHARS:
        raise TooLarge(f"packed the scenario has {len(line):,} characters{said}")
    return line


def standalone_file(*, scenario: Scenario, owner: Any = None, address: str = "") -> str:
    """The share's replay as one HTML file; a worker runs it again, and it must decide as recorded.

    Parameters
    ----------
    owner
        Whose turn it takes.
    address
        Of this site, where the file is opened as a share again.

    Raises
    ------
    Conflict
        It has not been run yet, is decided otherwise today, or no worker had time for it.
    TooLarge
    """
    what = {"kind": "Scenario", "name": scenario.public_id}
    if scenario.state != Scenario.State.RECORDED:
        raise Conflict("it has not been run yet, so there is no replay to save", **what)
    over = [
        f"{number:,} {noun} (at most {most:,})"
        for number, most, noun in (
            (scenario.n_nodes, MOST_FILE_NODES, "nodes"),
            (scenario.n_pods, MOST_FILE_PODS, "pods"),
            (scenario.n_cycles, MOST_FILE_CYCLES, "cycles"),
        )
        if number > most
    ]
    if over:
        raise TooLarge(
            f"the replay is too large for a file: it has {', '.join(over)}; pass on the scenario instead"
        )
    try:
        page, digest, too_large = asked(
            "standalone",
            bytes(scenario.document),
            SavedReplay,
            ask=through_a_worker(owner=owner),
            note=scenario.note,
            opens_at=scenario.opens_at,
            address=address,
        )
    except ScenarioError as problem:
        raise as_error(problem) from None
    except RunStopped as stopped:
        raise Conflict(f"the file could not be made: {stopped}", **what) from None
    if too_large:
        raise TooLarge(too_large)
    if digest != scenario.decisions_digest:
        raise Conflict(
            "today's engine decides it otherwise than was recorded, so a file would not show this share;"
            " prove it again to see where",
            **what,
        )
    return page
