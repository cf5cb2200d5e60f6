"""The outcomes of a cycle: each has a word, an icon and a colour, so colour is never alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How one outcome is drawn.

    Attributes
    ----------
    key : str
        The word of the explanation: bound, unschedulable, preempting, waiting, binding, expired or error.
    icon : str
        Name of the symbol in ``templates/components/icons.html``.
    css : str
        Class that carries the colour.
    """

    key: str
    icon: str
    css: str


OUTCOMES: dict[str, Outcome] = {
    "bound": Outcome("bound", "ok", "ok"),
    "unschedulable": Outcome("unschedulable", "no", "bad"),
    "preempting": Outcome("preempting", "pre", "pre"),
    "waiting": Outcome("waiting", "wait", "wait"),
    "binding": Outcome("binding", "wait", "wait"),
    "expired": Outcome("expired", "clock", "warn"),
    "error": Outcome("error", "err", "warn"),
}


def outcome_of(key: str | None) -> Outcome:
    """Return the drawing of an outcome; a word this table does not know is shown as it is, greyed."""
    return OUTCOMES.get(key or "", Outcome(key or "unknown", "dot", "dim"))
