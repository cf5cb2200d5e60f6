"""How long questions about a large cluster take, in seconds of this process: ``python -m tests.load plans``.

The cluster is `tests.scheduler_core.whatif.cloud`'s. Of each question: the whole of it, and how long it goes on at most
after it was cancelled, from one report of its progress to the next, and until all is taken back.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import time
from pathlib import Path
from typing import Any

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.whatif.answers import answer_question
from tests.scheduler_core.whatif.cloud import cluster

QUESTIONS: dict[str, dict[str, Any]] = {
    "any-node": {"ask": "any-node"},
    "headroom": {"ask": "headroom", "workload": "Deployment web/frontend"},
    "drain": {"ask": "drain"},
    "backlog": {"ask": "backlog"},
    "consolidate": {"ask": "consolidate"},
}


class _Cancelled(Exception):
    """The answer is not wanted any more."""


class _Watch:
    """Notes how far apart reports are; from `cancel_at` on, the next one ends the question."""

    def __init__(self, cancel_at_s: float | None = None) -> None:
        self.began_s = self.last_s = time.process_time()
        self.cancel_at_s = cancel_at_s
        self.longest: tuple[float, str] = (0.0, "")
        self.what = ""

    def report(self, done: int, total: int, what: str) -> None:
        now_s = time.process_time()
        self.longest = max(self.longest, (now_s - self.last_s, self.what))
        self.last_s, self.what = now_s, what
        if self.cancel_at_s is not None and now_s - self.began_s >= self.cancel_at_s:
            raise _Cancelled


def add_to(commands: Any) -> None:
    """The command's arguments."""
    plans = commands.add_parser("plans", help="questions about a large cluster")
    plans.add_argument("--nodes", type=int, default=5000)
    plans.add_argument("--pods", type=int, default=60_000)
    plans.add_argument("--pending", type=int, default=0)
    plans.add_argument("--times", type=int, default=1, help="the median of so many is told")
    plans.add_argument("questions", nargs="*", choices=[[], *QUESTIONS], metavar="QUESTION")
    plans.set_defaults(measure=ask_plans)


def ask_plans(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    objects = cluster(options.nodes, options.pods, options.pending)
    names = [item["metadata"]["name"] for item in objects if item["kind"] == "Node"]
    began_s = time.process_time()
    simulation = run_scenario(load_scenario(scenario_of_dump(objects)), full_traces=False).simulation
    told: dict[str, Any] = {"nodes": len(names), "pods": options.pods, "read_s": _since(began_s)}
    gc.disable()  # as a worker answers
    stops.callback(gc.enable)
    for name in options.questions or QUESTIONS:
        question = QUESTIONS[name] | ({"nodes": names[:3]} if name == "drain" else {})
        took = []
        for _ in range(options.times):
            watch = _Watch()
            answer = answer_question(simulation, question, report=watch.report)
            took.append(time.process_time() - watch.began_s)
        half = _Watch(cancel_at_s=statistics.median(took) / 2)
        with contextlib.suppress(_Cancelled):
            answer_question(simulation, question, report=half.report)
        told[name] = {
            "took_s": round(statistics.median(took), 2),
            "verdict": answer["verdict"],
            "decisions": answer["decisions"],
            "limit": answer.get("limit"),
            "longest_between_reports": [round(watch.longest[0], 2), watch.longest[1]],
            "taken_back_s": _since(half.last_s),
        }
    return told | {"load": os.getloadavg()[0]}


def _since(began_s: float) -> float:
    return round(time.process_time() - began_s, 2)
