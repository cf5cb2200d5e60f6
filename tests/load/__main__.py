"""Pods a second through REST and run, at several sizes: a JSON report of what was measured."""

import argparse
import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from tests.load import site


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    site.add_to(parser.add_subparsers(required=True))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playground-load-"))
    with contextlib.ExitStack() as stops:
        stops.callback(shutil.rmtree, folder, ignore_errors=True)
        report = options.measure(options, folder, stops)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
