"""A deterministic re-implementation of kube-scheduler 1.34 to 1.36 in columns. README.md says how it is built.

The names below are what a program of one's own begins with; each is made known when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from scheduler_core.version import ENGINE_VERSION as ENGINE_VERSION

if TYPE_CHECKING:
    from scheduler_core.objects.documents import load_documents as load_documents
    from scheduler_core.releases import RELEASES as RELEASES
    from scheduler_core.scenario import load_scenario as load_scenario
    from scheduler_core.scenario import run_scenario as run_scenario
    from scheduler_core.scenario import verify as verify
    from scheduler_core.sim.changes import DeleteObject as DeleteObject
    from scheduler_core.sim.changes import WriteObject as WriteObject
    from scheduler_core.sim.simulation import Simulation as Simulation
    from scheduler_core.validation.admission import prepare as prepare
    from scheduler_core.whatif.answers import answer_question as answer_question

_HOMES = {
    "DeleteObject": "scheduler_core.sim.changes",
    "RELEASES": "scheduler_core.releases",
    "Simulation": "scheduler_core.sim.simulation",
    "WriteObject": "scheduler_core.sim.changes",
    "answer_question": "scheduler_core.whatif.answers",
    "load_documents": "scheduler_core.objects.documents",
    "load_scenario": "scheduler_core.scenario",
    "prepare": "scheduler_core.validation.admission",
    "run_scenario": "scheduler_core.scenario",
    "verify": "scheduler_core.scenario",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
