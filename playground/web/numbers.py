"""Numbers from a query string."""

MAX = 2**53


def positive_int(text: str | None) -> int | None:
    """Return the number, or None for anything that is not one from 1 to 2^53."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 16:
        return None
    number = int(text)
    return number if 1 <= number <= MAX else None
