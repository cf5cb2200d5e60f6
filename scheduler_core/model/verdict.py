"""What the model says of one property of one cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ORDER, PLACEMENT, CASUALTY = "order", "placement", "casualty"
PROPERTIES: Final = (ORDER, PLACEMENT, CASUALTY)

HOLDS, LEAVES, FAILS, NOT_COMPUTED = "holds", "leaves", "fails", "notComputed"
STATUSES: Final = (HOLDS, LEAVES, FAILS, NOT_COMPUTED)


@dataclass(frozen=True, slots=True)
class PropertyVerdict:
    """One property of one cycle.

    Attributes
    ----------
    status : str
        `HOLDS`; `LEAVES`: Kubernetes leaves the model on purpose; `FAILS`: a fault; `NOT_COMPUTED`.
    departure : str
        Key of `departures.DEPARTURES`; also with `HOLDS`, where it explains and nothing better was missed.
    counterexample : mapping
        JSON-able: what would have been right.
    """

    property: str
    status: str
    sentence: str
    departure: str = ""
    counterexample: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """JSON-able; what is empty is left out."""
        told: dict[str, Any] = {"property": self.property, "status": self.status, "sentence": self.sentence}
        if self.departure:
            told["departure"] = self.departure
        if self.counterexample:
            told["counterexample"] = dict(self.counterexample)
        return told
