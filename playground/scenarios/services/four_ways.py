"""The GPU use case in four ways: four shares, and one comparison of them under a link that stays."""

from __future__ import annotations

from typing import Final

from django.db import IntegrityError, transaction

from playground.engine.scenarios import way_documents
from playground.scenarios import wake
from playground.scenarios.choices import Visibility
from playground.scenarios.models import Comparison
from playground.scenarios.services.gallery import share_one
from scheduler_core.version import ENGINE_VERSION

FOUR_WAYS: Final = "gpu-four-ways"
"""Public id of the comparison."""


def compare_four_ways() -> Comparison:
    """The comparison; made, or made anew where a document or the engine has changed."""
    sides = []
    for way in way_documents():
        name = FOUR_WAYS if way.taint and way.affinity else f"{FOUR_WAYS}-{way.key}"
        shared = share_one(name, way.document)
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
            wake.on_commit(wake.COMPARE, comparison_id=known.pk)
    return known
