"""What the judge's pages show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playground.clusters.selectors.foreign import MOST_NAMED, Agreement, KindCount
from playground.engine.releases import patch_of
from playground.engine.verdict_words import TITLES, why

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, ForeignDecision

LOOKS: Final = {
    "agree": ("ok", "ok"),
    "tie": ("wait", "dice"),
    "different": ("bad", "no"),
    "infeasible": ("warn", "err"),
    "unknown": ("dim", "info"),
    "": ("dim", "clock"),
}
UNNAMED: Final = ("", "default-scheduler")
BARS: Final = (("agree", "okf"), ("tie", "progw"), ("different", "badf"), ("infeasible", "warnf"))
MEANINGS: Final = {
    "agree": "the same node, or no node either",
    "tie": "tie: another node with the same points",
    "different": "different",
    "infeasible": "does not fit",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the bar, and its line in the key; `x` and `width` in per cent."""

    verdict: str
    n: int
    css: str
    icon: str
    fill: str
    meaning: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class AgreementView:
    """The head of the page.

    Attributes
    ----------
    name
        What the other scheduler is called: by the pods that name it, else by its program. Of several how many they are.
    common
        Of those that disagree: css, icon, number, what, plugin.
    """

    name: str
    found: Agreement
    per_cent: str
    pieces: tuple[Piece, ...]
    common: tuple[tuple[str, str, int, str, str], ...]
    judge: str
    patch: str
    n_all: int

    @property
    def are_several(self) -> bool:
        """Whether more than one scheduler decided: each decision then says whose it is."""
        return len(self.found.schedulers) > 1

    @property
    def ours(self) -> str:
        """What our engine is called beside what it judges, which may be a kube-scheduler itself."""
        return "the playground" if self.name.startswith("kube-scheduler") else "kube-scheduler"

    @property
    def no_node(self) -> KindCount:
        """Decisions that found no node."""
        return self.found.kinds["no-node"]

    @property
    def n_others(self) -> int:
        """Decisions that neither agree nor tie."""
        return self.found.total - self.found.agreed


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A row of the table."""

    row: ForeignDecision
    css: str
    icon: str
    title: str
    why: str

    @property
    def by(self) -> str:
        """Who decided, as the page calls it."""
        return self.row.program.partition("/")[0] if self.row.scheduler in UNNAMED else self.row.scheduler

    @property
    def is_other(self) -> bool:
        """Whether it stands out."""
        return self.row.verdict in ("different", "infeasible")


def view_agreement(cluster: Cluster, found: Agreement) -> AgreementView:
    """The head of a cluster's page."""
    pieces, at = [], 0.0
    for verdict, fill in BARS:
        n = found.counts[verdict]
        width = 100 * n / found.total if found.total else 0.0
        css, icon = LOOKS[verdict]
        pieces.append(Piece(verdict, n, css, icon, fill, MEANINGS[verdict], round(at, 2), round(width, 2)))
        at += width
    name = next(iter(found.schedulers), "")
    if name in UNNAMED and found.authors:
        name = found.authors[0].partition("/")[0]
    if len(found.schedulers) > 1:
        more = "+" if len(found.schedulers) == MOST_NAMED else ""
        name = f"{len(found.schedulers)}{more} schedulers"
    per_cent = "" if found.per_cent is None else f"{found.per_cent:.1f}".removesuffix(".0")
    profiles = (cluster.config or {}).get("profiles") or [{}]
    names = [str(profile.get("schedulerName") or "default-scheduler") for profile in profiles]
    common = tuple(
        (*LOOKS[verdict], n, _have_in_common(plugin, verdict), plugin) for plugin, verdict, n in found.common
    )
    return AgreementView(
        name,
        found,
        per_cent,
        tuple(pieces),
        common,
        "default-scheduler" if "default-scheduler" in names else names[0],
        patch_of(cluster.release),
        found.total + found.counts["unknown"] + found.left,
    )


def _have_in_common(plugin: str, verdict: str) -> str:
    if verdict == "infeasible":
        return "are against this filter" if plugin else "name a node that is not there"
    if plugin == "victims":
        return "evict other pods on the node"
    return (
        "differ most by this plugin"
        if plugin
        else "found no node where there is one, or made room needlessly"
    )


def view_decision(row: ForeignDecision) -> DecisionView:
    """One decision in words."""
    css, icon = LOOKS[row.verdict]
    title = TITLES.get(row.verdict, "not judged yet")
    return DecisionView(row, css, icon, title, why(row))
