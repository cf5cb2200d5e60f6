"""The command line: one subcommand a file."""

from __future__ import annotations

import argparse
import difflib
import gc
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scheduler_core.cli import (
    bench,
    compare,
    conformance,
    diff,
    group,
    model,
    optimum,
    plan,
    plugin,
    replay,
    simulate,
)
from scheduler_core.releases import RELEASES
from scheduler_core.version import ENGINE_VERSION


def command() -> None:
    """The installed command `scheduler-core`."""
    # As other programs do, it ends quietly when the reader of its output has gone (`scheduler-core plan ... | head`).
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=_program(),
        description=f"A deterministic kube-scheduler {', '.join(RELEASES)} in columns (engine {ENGINE_VERSION}).",
    )
    parser.add_argument("--version", action="version", version=f"scheduler-core {ENGINE_VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in (
        ("simulate", simulate),
        ("replay", replay),
        ("model", model),
        ("group", group),
        ("optimum", optimum),
        ("compare", compare),
        ("diff", diff),
        ("plan", plan),
        ("conformance", conformance),
        ("bench", bench),
        ("plugin", plugin),
    ):
        command = commands.add_parser(
            name, help=(module.__doc__ or "").split(": ", 1)[-1].split("\n")[0].strip()
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    _check_options(commands.choices, arguments)
    options = parser.parse_args(arguments)
    # Millions of small objects and next to no cycles: looking for garbage as often as Python does costs a twentieth.
    gc.set_threshold(50_000, 20, 50)
    status: int = options.run(options)
    return status


def _check_options(commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str]) -> None:
    """End with what was probably meant where a command has no such option."""
    command = commands.get(arguments[0]) if arguments else None
    if command is None:
        return
    known = _options_of(command)
    for argument in arguments[1:]:
        name = argument.partition("=")[0]
        if argument == "--":
            return
        if argument.startswith("--") and not any(option.startswith(name) for option in known):
            near = difflib.get_close_matches(name, known, n=1)
            command.error(
                f"unrecognized arguments: {argument}" + (f" (did you mean {near[0]}?)" if near else "")
            )


def _options_of(command: argparse.ArgumentParser) -> list[str]:
    """The options of a command and of the commands below it."""
    found = list(command._option_string_actions)
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found += _options_of(below)
    return found


def _program() -> str:
    program = Path(sys.argv[0]).name
    return program if program.startswith("scheduler-core") else "python -m scheduler_core"
