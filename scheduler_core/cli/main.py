"""The command line: one subcommand a file."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence

from scheduler_core.cli import bench, compare, conformance, group, model, openb, optimum, plan, plugin, replay
from scheduler_core.releases import RELEASES
from scheduler_core.version import ENGINE_VERSION


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scheduler_core",
        description=f"A deterministic kube-scheduler {', '.join(RELEASES)} in columns (engine {ENGINE_VERSION}).",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in (
        ("replay", replay),
        ("model", model),
        ("group", group),
        ("optimum", optimum),
        ("compare", compare),
        ("plan", plan),
        ("conformance", conformance),
        ("bench", bench),
        ("plugin", plugin),
        ("openb", openb),
    ):
        command = commands.add_parser(
            name, help=(module.__doc__ or "").split(": ", 1)[-1].split("\n")[0].strip()
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    # Millions of small objects and next to no cycles: looking for garbage as often as Python does costs a twentieth.
    gc.set_threshold(50_000, 20, 50)
    status: int = options.run(options)
    return status
