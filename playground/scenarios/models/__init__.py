"""Rows of scenarios. A share never changes; what is found out about it stands beside it."""

from playground.scenarios.models.comparison import Comparison, Optimum
from playground.scenarios.models.errand import Errand
from playground.scenarios.models.luck import Luck, LuckEnd
from playground.scenarios.models.model_check import ModelCheck
from playground.scenarios.models.moment import Moment, Origin
from playground.scenarios.models.scenario import RecordedCycle, Scenario, Verification
from playground.scenarios.models.upgrade import Upgrade
from playground.scenarios.models.verdict import Verdict

__all__ = [
    "Comparison",
    "Errand",
    "Luck",
    "LuckEnd",
    "ModelCheck",
    "Moment",
    "Optimum",
    "Origin",
    "RecordedCycle",
    "Scenario",
    "Upgrade",
    "Verdict",
    "Verification",
]
