"""How long clusters and pages wait while workers are busy: a JSON report of what was measured.

``kills``: processes of `manage.py play` are killed and stopped at random; how long a pod waits for
its node then. ``site``: pods a second through REST and run, at several sizes.
``team``: many clusters, event streams and outages of the broker on a team's site; 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import servers
from tests.load import site, team
from tests.play import kills

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    hit = commands.add_parser("kills", help="random kills of the processes of manage.py play")
    hit.add_argument("--kills", type=int, default=100)
    hit.add_argument("--seed", type=int, default=1)
    hit.add_argument("--port", type=int, default=0)
    hit.set_defaults(measure=kill_processes)
    site.add_to(commands)
    team.add_to(commands)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playground-load-"))
    with contextlib.ExitStack() as stops:
        stops.callback(shutil.rmtree, folder, ignore_errors=True)
        report = options.measure(options, folder, stops)
    print(json.dumps(report, indent=2))
    return 1 if report.get("violations") else 0


def kill_processes(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Random kills and stops; after each a pod must be bound within ten seconds."""
    port = options.port or servers.free_port()
    return kills.run(folder / "data", port, n_kills=options.kills, seed=options.seed)


if __name__ == "__main__":
    sys.exit(main())
