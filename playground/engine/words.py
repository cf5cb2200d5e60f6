"""The words of the engine, for those who keep only columns of what it did."""

from scheduler_core.errors import FIELD_ERROR_WORDS, FieldError, InvalidObject
from scheduler_core.framework.words import CycleFacts, headline, of_one, placed, sentence
from scheduler_core.objects.fields import aggregate
from scheduler_core.objects.labels import subdomain_errors
from scheduler_core.validation.problems import FieldErrors

__all__ = [
    "FIELD_ERROR_WORDS",
    "CycleFacts",
    "FieldError",
    "aggregate",
    "amount_problem",
    "headline",
    "name_problem",
    "of_one",
    "placed",
    "sentence",
]


def amount_problem(text: str) -> str:
    """What Kubernetes says of a text that is no amount of 0 or more; empty where it is one.

    >>> amount_problem("-5"), amount_problem("16Gi")
    ('Invalid value: "-5": must be greater than or equal to 0', '')
    """
    problems = FieldErrors()
    try:
        problems.amount(text, "")
        problems.refuse()
    except InvalidObject as error:
        return error.words
    return ""


def name_problem(text: str) -> str:
    """What Kubernetes says of a text that cannot be the name of most objects; empty where it can."""
    return next(iter(subdomain_errors(text)), "")
