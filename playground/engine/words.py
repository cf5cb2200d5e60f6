"""The words of the engine, for those who keep only columns of what it did."""

from scheduler_core.errors import FieldError
from scheduler_core.framework.words import CycleFacts, headline, of_one, placed, sentence
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
