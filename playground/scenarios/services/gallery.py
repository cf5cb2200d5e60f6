"""Our own teaching scenarios, shared like everybody's."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django.db import IntegrityError, transaction

from playground.clusters import wake
from playground.clusters.errors import Conflict, NotFound
from playground.clusters.models import Cluster
from playground.engine.scenarios import (
    FreshRun,
    RunStopped,
    asked,
    gallery_documents,
    run_fresh,
    way_documents,
)
from playground.scenarios.choices import Visibility
from playground.scenarios.models import Comparison, Scenario
from playground.scenarios.services.errands import through_a_worker
from playground.scenarios.services.forking import fork
from playground.scenarios.services.shares import share
from scheduler_core.version import ENGINE_VERSION

LOOKALIKE: Final = "openb-lookalike"


def share_gallery(*, at_most: int = 1000) -> int:
    """Share what is not shared yet, the first in order first; how many are still missing then."""
    documents = gallery_documents()
    shared = dict(
        Scenario.objects.filter(gallery_name__in=documents).values_list("gallery_name", "share_key")
    )
    missing = [
        name for name, document in documents.items() if shared.get(name) != gallery_key(name, document)
    ]
    for name in missing[:at_most]:
        share_one(name, documents[name], run_fresh(documents[name]))
    return max(0, len(missing) - at_most)


def share_next() -> float | None:
    """Share the next one; the seconds to the one after that: who has just started wants the machine meanwhile."""
    return 1.0 if share_gallery(at_most=1) else None


def share_one(name: str, document: bytes, run: FreshRun | None = None) -> Scenario:
    """Share one of them; a new edition takes the old one's place, whose link stays.

    Not one transaction: to share it runs it, and on SQLite no other process could write meanwhile.
    """
    key = gallery_key(name, document)
    Scenario.objects.filter(gallery_name=name).exclude(share_key=key).update(gallery_name="")
    visibility = Scenario.Visibility.PUBLIC
    shared = share(document=document, visibility=visibility, gallery_name=name, share_key=key, run=run)
    return shared.scenario


def gallery_key(name: str, document: bytes) -> str:
    """Every edition of a teaching scenario is another share, words included."""
    return hashlib.sha256(b"gallery/" + name.encode() + b"/" + document).hexdigest()


def share_lookalike() -> Scenario:
    """Share the production-sized scenario; a worker runs it then, which takes a while."""
    known = Scenario.objects.filter(gallery_name=LOOKALIKE).first()
    if known is not None:
        return known
    try:
        text = asked("lookalike", None, str, ask=through_a_worker())
        return share_one(LOOKALIKE, text.encode())
    except RunStopped as stopped:
        raise Conflict(f"it could not be made: {stopped}", kind="Scenario") from None


def gallery_scenario(name: str) -> Scenario:
    """The share of a teaching scenario, made if it is not there yet.

    Raises
    ------
    NotFound
    """
    documents = gallery_documents()
    if name not in documents:
        raise NotFound(f'there is no scenario "{name}" in the gallery', kind="Scenario", name=name)
    known = Scenario.objects.filter(share_key=gallery_key(name, documents[name])).first()
    return known or share_one(name, documents[name])


def open_gallery_scenario(*, name: str, owner: Any = None) -> Cluster:
    """A new cluster that begins as a teaching scenario does.

    Raises
    ------
    NotFound
    """
    return fork(scenario=gallery_scenario(name), owner=owner)


FOUR_WAYS: Final = "gpu-four-ways"
"""Public id of the comparison."""


def compare_four_ways() -> Comparison:
    """The comparison; made, or made anew where a document or the engine has changed."""
    sides = []
    for way, document in way_documents():
        name = FOUR_WAYS if way.taint and way.affinity else f"{FOUR_WAYS}-{way.key}"
        shared = share_one(name, document)
        sides.append({"kind": "scenario", "id": shared.public_id, "cycle": None})
    title = f"GPU nodes, four ways ({ENGINE_VERSION})"
    with transaction.atomic():
        known = Comparison.objects.select_for_update().filter(public_id=FOUR_WAYS).first()
        if known is not None and (known.sides != sides or known.title != title or known.state == "failed"):
            known.delete()
            known = None
        if known is None:
            try:
                with transaction.atomic():
                    known = Comparison.objects.create(
                        public_id=FOUR_WAYS, a=sides[0], b=sides[1], more=sides[2:], title=title,
                        visibility=Visibility.PUBLIC,
                    )  # fmt: skip
            except IntegrityError:  # two workers at once
                known = Comparison.objects.get(public_id=FOUR_WAYS)
            wake.on_commit("compare", comparison_id=known.pk)
    return known
