"""The types of rows, for annotations of pages and APIs: names for a type checker, any at run time.

Selectors find rows and services write them; what is handed one says so by its type, and can do no more with it
(docs/decisions/0014-rows-are-handed-out.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playground.scenarios.models import Comparison as Comparison
    from playground.scenarios.models import RecordedCycle as RecordedCycle
    from playground.scenarios.models import Scenario as Scenario
    from playground.scenarios.models import Verdict as Verdict
    from playground.scenarios.models import Verification as Verification
else:

    def __getattr__(name: str) -> Any:
        """A type's name at run time, where annotations are not looked at: it reaches no table."""
        return Any
