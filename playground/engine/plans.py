"""Questions about a whole cluster (`scheduler_core.whatif`): an engine and a question in, plain data out."""

from collections.abc import Mapping
from typing import Any, Final

from playground.engine.advise import CannotAnswer, Report
from playground.engine.batch import Engine
from scheduler_core.errors import InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.whatif.answers import answer_question, answer_text
from scheduler_core.whatif.fork import ZONE
from scheduler_core.whatif.prices import read_prices
from scheduler_core.whatif.questions import ASKS, question_from

PLAN_QUESTIONS: Final = ASKS
ZONE_LABEL: Final = ZONE


class PlanProblem(ValueError):
    """A question that cannot be read: the sentence of the command line, which names `field` and `value`."""

    def __init__(self, error: InvalidObject) -> None:
        super().__init__(str(error))
        self.field, self.value = error.path, error.value


def checked_plan(document: Mapping[str, Any]) -> dict[str, Any]:
    """The normal form of a question, equal for equal ones.

    Raises
    ------
    PlanProblem
    """
    try:
        return question_from(document).document()
    except InvalidObject as error:
        raise PlanProblem(error) from None


def prices_from_text(text: str) -> list[Any]:
    """A price list in YAML or CSV, for a question's `prices`.

    Raises
    ------
    PlanProblem
    """
    try:
        return read_prices(text)
    except InvalidObject as error:
        raise PlanProblem(error) from None


def answer_plan(
    engine: Engine,
    question: Mapping[str, Any],
    *,
    transport: Transport = no_transport,
    report: Report = lambda done, total, what: None,
) -> dict[str, Any]:
    """Answer a question about a cluster, on a copy of it.

    Raises
    ------
    CannotAnswer
    """
    simulation: Any = engine.simulation
    try:
        return answer_question(simulation, question, transport=transport, report=report)
    except InvalidObject as error:
        raise CannotAnswer(f"{error}.") from None


__all__ = [
    "PLAN_QUESTIONS",
    "ZONE_LABEL",
    "PlanProblem",
    "answer_plan",
    "answer_text",
    "checked_plan",
    "prices_from_text",
]
