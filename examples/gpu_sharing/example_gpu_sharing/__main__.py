"""`python -m example_gpu_sharing`: run the paper's experiment, and put what comes of it beside the authors' results."""

import argparse
import sys
from pathlib import Path

from example_gpu_sharing import POLICIES
from example_gpu_sharing.experiment import DRAWN, FIRST
from example_gpu_sharing.report import check, curves, table
from example_gpu_sharing.runs import Task, read_results, run_all
from example_gpu_sharing.traces import read_trace, synthetic_trace, trace_names

NAMES = [policy.name for policy in POLICIES]


def main(arguments=None):
    """Run the command; 1 where a figure is not the authors', 2 for unusable input."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (OSError, ValueError, KeyError) as error:
        print(f"example_gpu_sharing: {error}", file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(prog="python -m example_gpu_sharing", description=__doc__)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser(
        "run", help="run traces, policies and seeds; what is in the file is not run again"
    )
    runs.add_argument("results", type=Path, help="file of results, a JSON line for each run")
    runs.add_argument("--data", type=Path, help="folder of the openb CSV files; a synthetic trace without it")
    runs.add_argument("--traces", nargs="+", default=["default"], help='names, or "all" (default: default)')
    runs.add_argument("--policies", nargs="+", default=NAMES, choices=NAMES, metavar="POLICY")
    runs.add_argument("--seeds", nargs="+", type=int, help="orders of arrival (default: all there are)")
    runs.add_argument("--ties", nargs="+", default=[FIRST], choices=(FIRST, DRAWN),
                      help="first name of equals, as the authors, or drawn, as kube-scheduler")  # fmt: skip
    runs.add_argument("--processes", type=int, default=1)
    runs.set_defaults(command=_run)
    tables = commands.add_parser(
        "table", help="allocation and unallocated GPUs at load 100, means of the seeds"
    )
    tables.add_argument("results", type=Path)
    tables.add_argument("--expected", type=Path, help="folder of the authors' results")
    tables.set_defaults(
        command=lambda options: _print(table(read_results(options.results), options.expected))
    )
    drawn = commands.add_parser("curves", help="draw unallocated GPUs and fragmentation over load as SVG")
    drawn.add_argument("results", type=Path)
    drawn.add_argument("output", type=Path, help="file to write")
    drawn.add_argument("--expected", type=Path, help="folder of the authors' results, drawn dashed beside")
    drawn.add_argument("--trace", default="default")
    drawn.set_defaults(command=_curves)
    checks = commands.add_parser("check", help="hold every run against the authors' figures of its seed")
    checks.add_argument("results", type=Path)
    checks.add_argument("expected", type=Path)
    checks.set_defaults(command=_check)
    return parser


def _run(options):
    tasks = []
    if options.data is None:
        traces = [synthetic_trace()]
    else:
        known = trace_names(options.data)
        names = known if options.traces == ["all"] else options.traces
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no trace {unknown[0]} in {options.data}; there are {', '.join(known)}")
        traces = [read_trace(options.data, name) for name in names]
    for trace in traces:
        for place, seed in enumerate(options.seeds or sorted(trace.arrivals)):
            if seed not in trace.arrivals:
                raise ValueError(f"trace {trace.name} has no order of arrival {seed}")
            tasks += [
                (place, Task(trace.name, policy, seed, ties))
                for policy in options.policies
                for ties in options.ties
            ]
    # Seed by seed, so that a run that is stopped has something of everything.
    tasks.sort(key=lambda item: item[0])
    run_all(
        [task for _, task in tasks],
        {trace.name: trace for trace in traces},
        options.results,
        options.processes,
    )
    return 0


def _curves(options):
    options.output.write_text(curves(read_results(options.results), options.trace, options.expected))
    return 0


def _check(options):
    lines, good = check(read_results(options.results), options.expected)
    _print(lines)
    return 0 if good else 1


def _print(lines):
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
