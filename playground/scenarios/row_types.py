"""The types of rows, for annotations of pages and APIs: names for a type checker, which are not there at run time.

Selectors find rows and services write them; what is handed one says so by its type, and can do no more with it
(docs/decisions/0014-rows-are-handed-out.md).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playground.scenarios.models import (
        Comparison,
        RecordedCycle,
        Scenario,
        Verdict,
        Verification,
    )

__all__ = [
    "Comparison",
    "RecordedCycle",
    "Scenario",
    "Verdict",
    "Verification",
]
