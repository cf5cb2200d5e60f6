"""Many runs, spread over processes, and the file that keeps what came of them."""

import json
import multiprocessing
import sys
from typing import NamedTuple

import numpy as np

from example_gpu_sharing.experiment import run


class Task(NamedTuple):
    """One run."""

    trace: str
    policy: str
    seed: int
    ties: str


class Result(NamedTuple):
    """What is kept of one run: `Outcome.curves`, and the processor time in seconds."""

    alloc: np.ndarray
    frag_amount: np.ndarray
    frag_ratio: np.ndarray
    cpu_s: float


_traces = {}


def _keep(traces):
    _traces.update(traces)


def _one(task):
    outcome = run(_traces[task.trace], task.policy, task.seed, ties=task.ties)
    return task, Result(*outcome.curves(), outcome.cpu_s)


def run_all(tasks, traces, path, n_processes):
    """Run what the file does not hold yet, and add each to it as it ends.

    Parameters
    ----------
    tasks : sequence of Task
    traces : dict of str to Trace
    path : path
    n_processes : int
    """
    done = read_results(path) if path.exists() else {}
    left = [task for task in tasks if task not in done]
    with (
        path.open("a") as file,
        multiprocessing.Pool(n_processes, _keep, (traces,), maxtasksperchild=8) as pool,
    ):
        for number, (task, result) in enumerate(pool.imap_unordered(_one, left), 1):
            columns = {
                name: getattr(result, name).tolist() for name in ("alloc", "frag_amount", "frag_ratio")
            }
            file.write(json.dumps({**task._asdict(), "cpu_s": round(result.cpu_s, 2), **columns}) + "\n")
            file.flush()
            print(
                f"{number}/{len(left)} {task.trace} {task.policy} {task.seed} {task.ties}: "
                f"{result.alloc[100]:.2f} % at load 100, {result.cpu_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )


def read_results(path):
    """Results by task. NaN where a run never came to a load.

    Raises
    ------
    ValueError
        A line is not a result.
    """
    found = {}
    with path.open() as lines:
        for number, line in enumerate(lines, 1):
            try:
                one = json.loads(line)
                columns = [np.array(one[name], np.float64) for name in ("alloc", "frag_amount", "frag_ratio")]
                found[Task(*(one[name] for name in Task._fields))] = Result(*columns, one["cpu_s"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number}: not a result: {error}") from error
    return found
