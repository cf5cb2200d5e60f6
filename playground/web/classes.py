"""What the page of classes and budgets says of them, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playground.clusters.selection import selector_text
from playground.clusters.selectors.classes import BudgetUse, ClassesView, ClassUse
from playground.engine.admission import SYSTEM_PREFIX
from playground.web.priorities import PriorityMark, PriorityScale

if TYPE_CHECKING:
    from playground.clusters.row_types import PodDisruptionBudget

MOST_MARKS = 24
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


@dataclass(frozen=True)
class ClassRow:
    """One class; `evicts` and `why` say what a pod of it could evict now."""

    use: ClassUse
    mark: PriorityMark
    built_in: bool
    evicts: str
    why: str
    share: float
    start: float


@dataclass(frozen=True)
class BudgetRow:
    """One budget: rule and selector as text, a mark a pod, and why it allows what it allows.

    `stay`, `go` and `missing` are ranges to draw marks by: pods that must stay, that may go, and that are not healthy
    though the budget expects them.
    """

    use: BudgetUse
    rule: str
    selector: str
    stay: range
    go: range
    missing: range
    why: str
    tone: str
    scaled: bool

    @property
    def healthy(self) -> int:
        """Healthy pods, as counted."""
        return self.use.row.current_healthy


def class_rows(view: ClassesView, scale: PriorityScale) -> list[ClassRow]:
    """The classes with their marks; shares of the bar are percents of the pods that name a class."""
    named = max(1, sum(use.n_pods for use in view.classes))
    rows, start = [], 0.0
    for use in view.classes:
        share = 100 * use.n_pods / named
        evicts, why = _evictions(use)
        rows.append(
            ClassRow(
                use=use,
                mark=scale.mark(use.row.value, use.row.name),
                built_in=use.row.name.startswith(SYSTEM_PREFIX),
                evicts=evicts,
                why=why,
                share=round(share, 2),
                start=round(start, 2),
            )
        )
        start += share
    return rows


def _evictions(use: ClassUse) -> tuple[str, str]:
    if use.row.preemption_policy == "Never":
        if not use.n_below:
            return "none", "its policy is Never, and no pod on a node stands below it"
        return "none", f"its policy is Never; {_pods(use.n_below)} {_below(use)}"
    if not use.n_below:
        return "none", "no pod on a node stands below it"
    return _pods(use.n_below), _below(use)


def _below(use: ClassUse) -> str:
    return "on a node stands below it" if use.n_below == 1 else "on nodes stand below it"


def budget_rows(uses: Sequence[BudgetUse]) -> list[BudgetRow]:
    """The budgets as the page lists them."""
    return [_budget_row(use) for use in uses]


def rule_of(row: PodDisruptionBudget) -> str:
    """The rule as its manifest has it.

    >>> rule_of(PodDisruptionBudget(min_available="50%"))
    'minAvailable: 50%'
    """
    if row.max_unavailable:
        return f"maxUnavailable: {row.max_unavailable}"
    return f"minAvailable: {row.min_available}" if row.min_available else "no rule"


def _budget_row(use: BudgetUse) -> BudgetRow:
    row = use.row
    why, tone = why_allowed(use)
    go = min(row.disruptions_allowed, row.current_healthy)
    missing = max(0, row.expected_pods - row.current_healthy)
    whole = row.current_healthy + missing
    scale = min(1.0, MOST_MARKS / whole) if whole else 1.0
    selector = "selects nothing" if row.selector is None else selector_text(row.selector) or "every pod"
    return BudgetRow(
        use=use,
        rule=rule_of(row),
        selector=selector,
        stay=range(_marks(row.current_healthy - go, scale)),
        go=range(_marks(go, scale)),
        missing=range(_marks(missing, scale)),
        why=why,
        tone=tone,
        scaled=scale < 1,
    )


def _marks(count: int, scale: float) -> int:
    return max(1, round(count * scale)) if count > 0 else 0


def why_allowed(use: BudgetUse) -> tuple[str, str]:
    """What a budget allows now and why, as a sentence, and its tone: ok, bad or empty."""
    row = use.row
    if not row.counted:
        return "not counted yet: the cluster has not run since it was written", ""
    allowed = row.disruptions_allowed
    end = ""
    if row.disrupted_pods:
        end = f"; {_pods(len(row.disrupted_pods))} on the way out already"
    if use.n_shared:
        end += (
            f"; {_pods(use.n_shared)} also under {', '.join(use.shared_with)}:"
            " Kubernetes refuses to evict a pod of two budgets"
        )
    if row.given:
        return f"as its manifest says, which came with a status; it is not counted here{end}", _tone(allowed)
    if row.failure:
        return f"cannot be counted: {row.failure}{end}", "bad"
    if not use.n_pods:
        return "matches no pod", ""
    if not row.min_available and not row.max_unavailable:
        return f"it has no rule, and so allows nothing{end}", "bad"
    where = f"on {use.n_nodes:,} node{_s(use.n_nodes)}"
    counts = f"{row.current_healthy:,} healthy, {row.desired_healthy:,} must stay"
    if row.expected_pods <= 0:
        return f"{_pods(use.n_pods)}, none with a controller to count by: nothing is allowed{end}", "bad"
    if not allowed:
        return f"{counts}: holds up a drain of {use.n_nodes:,} node{_s(use.n_nodes)}{end}", "bad"
    return f"{counts}; {where}, drains go {allowed:,} at a time{end}", "ok"


def headline(view: ClassesView, budgets: Sequence[BudgetUse]) -> tuple[tuple[str, bool], ...]:
    """The sentence above the page, as (text, whether it is a name)."""
    able = [use.row.name for use in view.classes if use.may_evict]
    n = len(view.classes)
    parts: list[tuple[str, bool]] = [(f"{_number(n)} class{'' if n == 1 else 'es'}, ", False)]
    if not able:
        parts.append(("none of which may evict a pod now; ", False))
    elif len(able) == n:
        parts.append(("any of which may evict pods now; " if n > 1 else "which may evict pods now; ", False))
    elif len(able) <= 2:
        parts.append(("of which only ", False))
        for place, name in enumerate(able):
            parts += [(" and ", False)] * bool(place) + [(name, True)]
        parts.append((" may evict pods now; ", False))
    else:
        parts.append((f"of which {_number(len(able)).lower()} may evict pods now; ", False))
    held = [use.row for use in budgets if use.row.counted and not use.row.disruptions_allowed and use.n_pods]
    m = len(budgets)
    if not m:
        parts.append(("no disruption budget", False))
    elif not held:
        each = "which allows" if m == 1 else "each of which allows"
        none = "which holds up no eviction" if m == 1 else "none of which holds up an eviction"
        parts.append((f"{_number(m).lower()} budget{_s(m)}, {none}", False))
        if any(use.row.counted and use.row.disruptions_allowed for use in budgets) and all(
            use.row.disruptions_allowed for use in budgets
        ):
            parts[-1] = (f"{_number(m).lower()} budget{_s(m)}, {each} evictions", False)
    elif m == 1:
        parts += [("one budget, ", False), (f"{held[0].namespace}/{held[0].name}", True)]
        parts.append((", which allows no eviction at all", False))
    else:
        parts.append((f"{_number(m).lower()} budgets, of which ", False))
        if len(held) <= 2:
            for place, row in enumerate(held):
                parts += [(" and ", False)] * bool(place) + [(f"{row.namespace}/{row.name}", True)]
        else:
            parts.append((f"{len(held):,}", False))
        parts.append((f" allow{'s' if len(held) == 1 else ''} no eviction at all", False))
    return (*parts, (".", False))


def standing(view: ClassesView, name: str, value: int, *, never: bool, n_below: int) -> str:
    """Where a class of that value stands, and what a pod of it could evict now."""
    others = [use.row for use in view.classes if use.row.name != name]
    above = [row.name for row in others if row.value > value]
    below = [row.name for row in others if row.value < value]
    equal = [row.name for row in others if row.value == value]
    if equal:
        place = f"It stands level with {equal[0]}"
    elif above and below:
        place = f"It stands between {above[-1]} and {below[0]}"
    else:
        place = (
            f"It stands below {above[-1]}"
            if above
            else f"It stands above {below[0]}"
            if below
            else "It stands alone"
        )
    if never:
        return f"{place}; its policy is Never, so a pod of it evicts none."
    if not n_below:
        return f"{place}; no pod on a node stands below it, so there is none to evict."
    evicts = "one pod" if n_below == 1 else f"any of {_pods(n_below)}"
    return f"{place}; a pod of it could evict {evicts}."


def selecting(namespace: str, n_pods: int, n_nodes: int) -> str:
    """Whom a budget would cover.

    >>> selecting("default", 3, 1)
    'It selects 3 pods on 1 node.'
    """
    if not n_pods:
        return f"It selects no pod in {namespace}."
    return f"It selects {_pods(n_pods)} on {n_nodes:,} node{_s(n_nodes)}."


def _tone(allowed: int) -> str:
    return "ok" if allowed else "bad"


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"


def _pods(count: int) -> str:
    return f"{count:,} pod{_s(count)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
