"""`loops`: whether controllers of a scenario or a dump go round in circles, or objects get less than they ask for.

The exit status is 0 when nothing is found, 1 when a loop or a failure is, 2 when the file cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scheduler_core.cli import reports
from scheduler_core.cli.plan import read_cluster
from scheduler_core.scenario import dump_scenario
from scheduler_core.scenario.loops import document_of, find_loops, lines_of, recorded

NONE, FOUND = 0, 1


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    scenario, _ = read_cluster(options.file, options.release)
    search = find_loops(scenario, horizon_ns=options.within, n_seeds=options.seeds, all_cures=options.all)
    cure = search.cures[0].scenario if search.cures else None
    for place, found in ((options.circle, search.proof), (options.cure, cure)):
        if place and found is not None:
            text = dump_scenario(recorded(found))
            if place == "-":
                sys.stdout.write(text)
            else:
                Path(place).write_text(text, "utf-8")
    if "-" not in (options.circle, options.cure):
        reports.show(options, document_of(search), lines_of(search), indent=1)
    return NONE if search.wrong is None else FOUND
