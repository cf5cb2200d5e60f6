"""What can be done with all pods or nodes that were chosen from a list: the buttons of `components/choosing.html`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ManyAction:
    """One action, a button.

    Attributes
    ----------
    name
        What is posted as `action`.
    note
        What it does, asked before it is done; empty: done at once, or `field` asks.
    field
        The label of the value it wants, posted under `name`; empty: it wants none.
    """

    name: str
    words: str
    icon: str = ""
    note: str = ""
    field: str = ""
    is_danger: bool = False


_BACK = "An undo brings all of it back."
POD_BUTTONS = (
    ManyAction(
        "delete",
        "Delete",
        icon="trash",
        note="A pod on a node terminates for its grace period on the cluster's clock; an owner such as a ReplicaSet"
        f" makes a new one. {_BACK}",
        is_danger=True,
    ),
)
NODE_BUTTONS = (
    ManyAction("cordon", "Cordon", icon="cordon"),
    ManyAction("uncordon", "Uncordon"),
    ManyAction(
        "drain",
        "Drain",
        icon="drain",
        note="They are cordoned, and their pods evicted as far as budgets let them go. Pods of DaemonSets stay.",
    ),
    ManyAction("taint", "Taint", field="Taint as key=value:Effect; key:Effect- takes it off"),
    ManyAction("label", "Label", field="Label as key=value; key- takes it off"),
    ManyAction(
        "delete",
        "Delete",
        icon="trash",
        note=f"Pods on them are left without a node. {_BACK}",
        is_danger=True,
    ),
)
