"""From a cluster's log to a scenario, and from a scenario to one without anybody's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from playground.engine.entries import Entry
from playground.engine.extender_answers import extenders_of
from playground.engine.releases import release_of
from playground.engine.scenarios import RUN_TIMEOUT_S, AskProcess, ask_process
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.make import make_scenario
from scheduler_core.scenario.record import Decided
from scheduler_core.version import ENGINE_VERSION


@dataclass(frozen=True, slots=True)
class MadeText:
    """A scenario as YAML, and what a person should know about how it was made."""

    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a log is left off in the middle of a batch.

    Attributes
    ----------
    ran_seq
        The batch's `ran` entry.
    n_cycles
        Cycles of the batch that still belong to it.
    clock_ns
        Virtual time of the last of them.
    """

    ran_seq: int
    n_cycles: int
    clock_ns: int


def make_text(
    *,
    name: str,
    title: str,
    seed: int,
    start_ns: int,
    config: Mapping[str, Any] | None,
    release: Mapping[str, Any] | None = None,
    entries: Iterable[Entry],
    decided: Sequence[Decided] = (),
    decided_by: str = "",
    cut: Cut | None = None,
    mock_rules: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
    ours_decide: bool = False,
    kept: Iterable[Mapping[str, Any]] = (),
) -> MadeText:
    """The scenario of a log: how the cluster began and what people did, not what the scheduler did.

    Parameters
    ----------
    name
        Short name, for files.
    entries
        The whole log, in order.
    decided
        Its cycles, in order; without them the scenario does not say what was decided.
    decided_by
        The engine that decided the first of them.
    mock_rules
        Place of an extender in the configuration -> the rules it is made of.
    ours_decide
        Without what other schedulers decided: our own does.
    kept
        Objects that shape no placement.

    Raises
    ------
    ScenarioError
    """
    made = make_scenario(
        _until(entries, cut),
        config=config,
        release=release_of(release),
        seed=seed,
        start_ns=start_ns,
        name=name,
        title=title,
        traces=decided,
        engine=decided_by or ENGINE_VERSION,
        mock=extenders_of(mock_rules or {}),
        ours_decide=ours_decide,
        kept=kept,
    )
    return MadeText(dump_scenario(made.scenario), made.notes)


def _until(entries: Iterable[Entry], cut: Cut | None) -> Iterator[Entry]:
    """Log entries up to the cut; a batch that spans it is truncated."""
    if cut is None:
        yield from entries
        return
    held: list[Entry] = []
    for entry in entries:
        if entry.seq > cut.ran_seq:
            return
        if entry.seq < cut.ran_seq:
            held.append(entry)
            if entry.kind == "ran":
                yield from held
                held = []
            continue
        read = entry.payload["read"]
        yield from (
            item for item in held if item.source == "api" and (item.kind == "extender" or item.seq <= read)
        )
        yield replace(entry, payload=_shortened(entry.payload, cut))


def _shortened(payload: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
    calls = payload["calls"]
    if calls and calls[0][0] == "step":
        calls = calls[: cut.n_cycles]
    elif calls:
        calls = [[calls[0][0], calls[0][1], cut.n_cycles]]
    return {**payload, "calls": calls, "stop": "budget", "cycles": cut.n_cycles, "clock_ns": cut.clock_ns}


def redact_text(text: str, *, title: str = "", ask: AskProcess | None = None) -> MadeText:
    """The scenario without names and without what no scheduler reads, with the decisions it makes.

    Both are run, in a process of their own: the decisions must be the same up to the renaming.

    Raises
    ------
    ScenarioError
        It cannot be read or run, or the renamed one decides otherwise.
    RunStopped
    """
    answer = (ask or ask_process)({"document": text, "redact": True, "title": title}, RUN_TIMEOUT_S)
    return MadeText(answer["text"], tuple(answer["notes"]))
