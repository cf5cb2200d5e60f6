"""The files of a new plugin package: a class, its oracle twin, a test and a README."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec

_CLASS = '''"""NAME: keeps nodes from holding more than so many pods, and likes the emptier ones."""

from dataclasses import dataclass

import numpy as np

from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import NODE, POD, QUEUE, ActionType, ClusterEvent, ClusterEventWithHint
from scheduler_core.framework.interface import FilterPlugin, Reads, ScorePlugin
from scheduler_core.framework.status import Code, Verdicts

REASON = "node(s) had too many pods for NAME"


@dataclass(frozen=True)
class NAMEArgs(PluginArgs):
    """What a configuration may say under `pluginConfig`, in camelCase: `maxPods`."""

    max_pods: int = 3

    def problems(self, path):
        if self.max_pods < 1:
            yield invalid(f"{path}.maxPods", self.max_pods, "must be at least 1")


class NAME(FilterPlugin[None], ScorePlugin[None]):
    """Rejects nodes with `maxPods` pods; scores the share of that which is free."""

    name = "NAME"
    Args = NAMEArgs
    # An answer about a node holds until the node or its pods change, for every pod alike: `sign`.
    filter_reads = Reads.USAGE
    score_reads = Reads.USAGE

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.max_pods = args.max_pods

    def sign(self, pod):
        return ()

    def filter(self, state, pod, nodes, rows):
        return Verdicts.where(nodes.n_pods[rows] >= self.max_pods, Code.Unschedulable)

    def reasons(self, state, pod, nodes, row, code, detail):
        return (REASON,)

    def compare(self, state, pod, snapshot):
        held = snapshot.nodes.n_pods[snapshot.rows]
        limit = np.full(len(held), self.max_pods)
        yield Comparison(held >= self.max_pods, ("holds ", Amount(held), " pods of at most ", Amount(limit)))

    def score(self, state, pod, nodes, rows):
        free = np.maximum(self.max_pods - nodes.n_pods[rows], 0)
        return 100 * free // self.max_pods

    def events(self):
        def room(pod, old, new):
            return QUEUE.because("a pod left, or a node came")

        return [
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), room),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), room),
        ]
'''

_ORACLE = '''"""The same rules one node at a time, as plainly as possible: what the columns are held to."""


def fits(max_pods, n_pods_on_node):
    return n_pods_on_node < max_pods


def score(max_pods, n_pods_on_node):
    return 100 * max(max_pods - n_pods_on_node, 0) // max_pods
'''

_TEST = '''"""NAME keeps the contract of the framework, and says what its oracle says."""

import oracle
import pytest
from MODULE import NAME, REASON

from scheduler_core.framework.example import scores, verdicts
from scheduler_core.plugin_kit import check

POD = {"containers": [{"name": "c"}]}


def test_it_conforms():
    assert check(NAME) == []
    assert check(NAME, args={"maxPods": 1}) == []


@pytest.mark.parametrize("n_pods", range(6))
def test_columns_say_what_the_oracle_says(n_pods):
    node = {"pods": [POD] * n_pods}
    said = verdicts(NAME, POD, n=node)["n"]
    assert said == ("passes" if oracle.fits(3, n_pods) else REASON)
    assert scores(NAME, POD, n=node)["n"] == oracle.score(3, n_pods)
'''

_PROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "DIST"
version = "0.1"
description = "The scheduler plugin NAME"
requires-python = ">=3.11"

[project.entry-points."kube_scheduler_playground.plugins"]
NAME = "MODULE:NAME"

[tool.setuptools]
py-modules = ["MODULE"]

[tool.pytest.ini_options]
pythonpath = [".", "tests"]
"""

_README = """# DIST

The scheduler plugin `NAME`: keeps nodes from holding more than `maxPods` pods, and likes the emptier ones.

    pytest                                            # the class against its oracle, and the conformance kit
    pip install .                                     # known to the playground from now on
    python -m scheduler_core plugin check MODULE:NAME # what is wrong, and what a call costs

Name it in a configuration:

    profiles:
    - plugins:
        multiPoint:
          enabled: [{name: NAME}]
      pluginConfig:
      - {name: NAME, args: {maxPods: 5}}
"""


def files(name: str) -> dict[str, str]:
    """Path -> text of a package that brings a plugin of this name, a word such as `NightShift`."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    module = "_".join(word.lower() for word in words)
    if keyword.iskeyword(module) or module == "tests" or find_spec(module) is not None:
        # `Json` or `Numpy` would hide a module that its own imports need.
        module += "_plugin"

    def filled(text: str) -> str:
        return text.replace("NAME", name).replace("MODULE", module).replace("DIST", module.replace("_", "-"))

    return {
        "pyproject.toml": filled(_PROJECT),
        "README.md": filled(_README),
        f"{module}.py": filled(_CLASS),
        "tests/oracle.py": _ORACLE,
        f"tests/test_{module}.py": filled(_TEST),
    }
