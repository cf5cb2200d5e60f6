"""Small breaks of the code, each of which the rounds must find: a harness that misses one would miss its like.

A mutant is an edit of one file in a copy of the tree; the code itself knows nothing of it. One whose lines have
changed does not apply any more, which is an error (and a test).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

_DRIVE = "playground/clusters/drive"
COPIED = ("playground", "scheduler_core")


@dataclass(frozen=True)
class Mutant:
    """One edit: `old` stands exactly once in the file.

    Attributes
    ----------
    what
        In a few words, what is wrong then.
    """

    what: str
    path: str
    old: str
    new: str


MUTANTS = {
    "race-check-off": Mutant(
        "a batch is kept although an object it writes was written meanwhile",
        f"{_DRIVE}/commit.py",
        "        _refuse_races(cluster, result)\n",
        "",
    ),
    "fence-token-off": Mutant(
        "a worker whose lease was taken over may commit",
        f"{_DRIVE}/commit.py",
        "cluster.lease_token != lease.token or cluster.generation != driven.generation",
        "cluster.generation != driven.generation",
    ),
    "fence-position-off": Mutant(
        "a batch decided on another state than the committed one is kept",
        f"{_DRIVE}/commit.py",
        "if cluster.engine_seq != driven.engine_seq:",
        "if False:",
    ),
    "fence-answer-off": Mutant(
        "a worker whose lease was taken over may write down an extender's answer",
        f"{_DRIVE}/extender_calls.py",
        "        if cluster.lease_token != lease.token:\n            raise Fenced\n        writer",
        "        writer",
    ),
    "events-dropped": Mutant(
        "three of ten Events are not kept",
        f"{_DRIVE}/commit.py",
        "    for outcome, key in keyed:\n        kind = kinds.named(key[0])\n",
        "    for outcome, key in keyed:\n"
        "        if key[0] == 'Event' and sum(key[2].encode()) % 10 < 3:\n"
        "            continue\n"
        "        kind = kinds.named(key[0])\n",
    ),
    "last-event-dropped": Mutant(
        "the last Event of a batch is not kept",
        f"{_DRIVE}/commit.py",
        "    keyed = [(outcome, _key(outcome)) for outcome in outcomes]\n",
        "    events = [outcome for outcome in outcomes if _key(outcome)[0] == 'Event']\n"
        "    keyed = [(outcome, _key(outcome)) for outcome in outcomes if outcome not in events[-1:]]\n",
    ),
    "lease-not-renewed": Mutant(
        "a commit and a wait for an extender do not hold the lease for longer",
        f"{_DRIVE}/lease.py",
        "    return held.update(lease_expires=_from_now(LEASE_S)) == 1\n",
        "    return held.exists()\n",
    ),
    "undo-forgets-an-object": Mutant(
        "an undo leaves one object as the change made it",
        "playground/clusters/history/undo.py",
        "    return sorted(keys)\n",
        "    return sorted(keys)[1:]\n",
    ),
    "lost-wake-ups-stay-lost": Mutant(
        "a worker waits for a message where it should look by itself",
        "playground/play/rooms.py",
        "            poked.wait(pause_s)\n",
        "            poked.wait(None if pause_s > 0.1 else pause_s)\n",
    ),
    "lease-never-expires": Mutant(
        "the lease of a worker that stands still is never anyone else's",
        f"{_DRIVE}/lease.py",
        "        | Q(lease_expires__lt=Now())\n",
        "",
    ),
    "lease-never-given-back": Mutant(
        "a worker that is done keeps its lease",
        f"{_DRIVE}/lease.py",
        '{"lease_expires": None, "lease_holder": "", "driven_at": Now()}',
        '{"driven_at": Now()}',
    ),
    "position-not-kept": Mutant(
        "a commit does not note how far the log was read",
        f"{_DRIVE}/commit.py",
        "        cluster.cursor_seq = result.read_seq\n",
        "",
    ),
    "permit-forgotten": Mutant(
        "an engine that is loaded again has forgotten who waits at Permit",
        "scheduler_core/sim/checkpoint.py",
        '    scheduler.waiting_pods.restore(document["waiting"], held)\n',
        "",
    ),
    "timers-dropped": Mutant(
        "an engine that is loaded again has lost its timers",
        "scheduler_core/sim/checkpoint.py",
        '    simulation.timers.restore(document["timers"])\n',
        "",
    ),
    "bound-twice": Mutant(
        "after a crash a bind call is made without looking the pod up",
        f"{_DRIVE}/extender_calls.py",
        "        elif pod.node_name:\n",
        "        elif False:\n",
    ),
    "answers-not-kept": Mutant(
        "what extenders answered within a batch is not in the log",
        f"{_DRIVE}/commit.py",
        "        for answered in result.answered:\n",
        "        for answered in ():\n",
    ),
    "tail-dropped": Mutant(
        "the last thing a batch did is not kept",
        f"{_DRIVE}/commit.py",
        "_fold(writer, result.outcomes, ",
        "_fold(writer, result.outcomes[:-1], ",
    ),
    "job-not-adopted": Mutant(
        "the work of a worker that died is lost",
        "playground/clusters/jobs.py",
        'return Q(holder="") | Q(claimed_until__lt=timezone.now()) | Q(holder__in=dead)',
        'return Q(holder="")',
    ),
    "tick-twice": Mutant(
        "a call of the engine is made twice and noted once",
        "playground/engine/batch.py",
        "        name, argument, max_cycles = call\n        match name:\n",
        "        name, argument, max_cycles = call\n"
        "        if name == 'advance' and argument:\n"
        "            self.simulation.advance(argument, max_cycles=max_cycles)\n"
        "        match name:\n",
    ),
    "checkpoint-off-by-one": Mutant(
        "a checkpoint says that it stands one entry before where it does",
        f"{_DRIVE}/commit.py",
        "        engine_seq=cluster.engine_seq,\n        cursor_seq=result.read_seq,\n",
        "        engine_seq=cluster.engine_seq - 1,\n        cursor_seq=result.read_seq,\n",
    ),
    "reset-keeps-the-token": Mutant(
        "a reset does not fence off who is at work",
        "playground/clusters/lifecycle.py",
        "    row.generation += 1\n    row.lease_token += 1\n",
        "",
    ),
    "half-a-request": Mutant(
        "of what was asked for together the last object's entry is not kept",
        "playground/clusters/log/writer.py",
        "        if self._entries:\n            entries = [",
        "        if len(self._entries) > 3 and self._entries[0][2] == 'api':\n"
        "            self._entries.pop()\n"
        "        if self._entries:\n            entries = [",
    ),
}


def mutated(name: str, tree: Path, folder: Path) -> Path:
    """A copy of the tree with this mutant.

    Raises
    ------
    ValueError
        Its lines are not in the tree, or stand there more than once.
    """
    mutant = MUTANTS[name]
    text = edited(mutant, (tree / mutant.path).read_text())
    folder.mkdir()
    for entry in tree.iterdir():
        if entry.name in COPIED:
            shutil.copytree(entry, folder / entry.name)
        elif not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    (folder / mutant.path).write_text(text)
    return folder


def edited(mutant: Mutant, text: str) -> str:
    """The file with the edit."""
    if text.count(mutant.old) != 1:
        raise ValueError(
            f"{mutant.path} has {mutant.old!r} {text.count(mutant.old)} times; the mutant must say it anew"
        )
    return text.replace(mutant.old, mutant.new)
