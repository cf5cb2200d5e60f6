"""Quantities, for forms."""

from scheduler_core.objects.quantity import QuantityError, parse_quantity


def is_quantity(text: str) -> bool:
    """Whether the text is a Kubernetes quantity of 0 or more."""
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return not text.strip().startswith("-")
