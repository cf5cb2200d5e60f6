"""The words of the engine, for those who keep only columns of what it did."""

from scheduler_core.errors import FieldError
from scheduler_core.framework.words import CycleFacts, headline, placed, sentence
from scheduler_core.objects.quantity import QuantityError, parse_quantity

__all__ = ["CycleFacts", "FieldError", "headline", "of_one", "placed", "quantity_words", "sentence"]


def quantity_words(text: str) -> str:
    """What Kubernetes says of a text that is no quantity.

    >>> quantity_words("1Kii")
    "unable to parse quantity's suffix"
    """
    try:
        parse_quantity(text)
    except QuantityError as error:
        return str(error)
    return "is not a quantity"


def of_one(reason: str) -> str:
    """A filter's reason beside the one node it is about: the scheduler words it for a number of nodes.

    >>> of_one("node(s) were unschedulable"), of_one("node(s) had untolerated taint {gpu: true}")
    ('was unschedulable', 'had untolerated taint {gpu: true}')
    >>> of_one("node(s) didn't match Pod's node affinity/selector"), of_one("Insufficient cpu")
    ("didn't match Pod's node affinity/selector", 'Insufficient cpu')
    """
    words = reason.removeprefix("node(s) ")
    if words == reason:
        return reason
    return f"was {words.removeprefix('were ')}" if words.startswith("were ") else words
