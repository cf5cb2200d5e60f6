"""The command line: `commands.yaml` has the commands and their options, a module runs each."""

from __future__ import annotations

import argparse
import difflib
import gc
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.bench_workloads import ALGORITHM, PERF
from scheduler_core.framework.limit import DEFAULT_SECONDS
from scheduler_core.objects.duration import duration_ns
from scheduler_core.releases import DEFAULT, RELEASES
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.schema.tables import table_beside
from scheduler_core.version import ENGINE_VERSION

_TABLE = table_beside(__package__, "commands.yaml")


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
    bounds = RunBounds()
    words = {
        "release": DEFAULT.name, "objects": bounds.objects, "virtual_ns": bounds.virtual_ns,
        "time_words": bounds.time_words, "plugin_seconds": DEFAULT_SECONDS, "workloads": ", ".join((*ALGORITHM, *PERF)),
    }  # fmt: skip
    commands = _add_commands(parser, {"dest": "command", "commands": _TABLE["commands"]}, words)
    _check_options(commands, arguments)
    options = parser.parse_args(arguments)
    # Millions of small objects and next to no cycles: looking for garbage as often as Python does costs a twentieth.
    gc.set_threshold(50_000, 20, 50)
    name, _, function = _TABLE["commands"][options.command]["run"].partition(":")
    module = import_module(f"scheduler_core.cli.{name}")
    try:
        status: int = getattr(module, function)(options)
    except (OSError, ScenarioError, reports.Unusable, *getattr(module, "REFUSED", ())) as error:
        return reports.unusable(options, error)
    return status


def _add_commands(
    parser: argparse.ArgumentParser, table: Mapping[str, Any], words: Mapping[str, Any]
) -> Mapping[str, argparse.ArgumentParser]:
    below = parser.add_subparsers(dest=table["dest"], required=True, metavar=table.get("metavar"))
    for name, entry in table["commands"].items():
        command = below.add_parser(name, help=entry["help"])
        group = command.add_mutually_exclusive_group() if "one_of" in entry else command
        for option in entry.get("options") or entry.get("one_of") or ():
            _add_option(group, option, words)
        if "commands" in entry:
            _add_commands(command, entry, words)
    return below.choices


def _add_option(
    command: argparse._ActionsContainer, option: str | Mapping[str, Any], words: Mapping[str, Any]
) -> None:
    written: dict[str, Any] = {
        key: value.format(**words) if isinstance(value, str) else value
        for key, value in (_TABLE["shared"][option] if isinstance(option, str) else option).items()
    }
    if "type" in written:
        written["type"] = {
            "int": int,
            "count": _count,
            "float": float,
            "duration": _duration,
        }[written["type"]]
    command.add_argument(*written.pop("name").split(), **written)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number above 0')
    return int(text)


def _duration(text: str) -> int:
    try:
        return duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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
