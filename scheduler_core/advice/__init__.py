"""Questions about decisions: what would it take, why not there, from which weight on, and what if it came now.

All of it is asked of a copy (`Sandbox`): nothing here changes a cluster. See README.md.
"""

from scheduler_core.advice.advised import Advice, SearchLimits
from scheduler_core.advice.devices import devices_of
from scheduler_core.advice.edits import Edit, FailedEdit, ProvenEdit
from scheduler_core.advice.group_story import GroupStory, Remedy, UnknownGroup, group_story
from scheduler_core.advice.judge import ForeignDecision, Judge, Judgement, share_of_agreement
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.advice.try_pod import TriedPod, try_pod
from scheduler_core.advice.weights import CycleWeights, Interval, PluginWeights, Switch, weights_document
from scheduler_core.advice.what_would_it_take import what_would_it_take
from scheduler_core.advice.why_not import Distance, UnknownNode, WhyNot, distances, why_not

__all__ = [
    "Advice",
    "CycleWeights",
    "Distance",
    "Edit",
    "FailedEdit",
    "ForeignDecision",
    "GroupStory",
    "Interval",
    "Judge",
    "Judgement",
    "PluginWeights",
    "ProvenEdit",
    "Remedy",
    "Sandbox",
    "SearchLimits",
    "Switch",
    "TriedPod",
    "UnknownGroup",
    "UnknownNode",
    "WhyNot",
    "devices_of",
    "distances",
    "group_story",
    "share_of_agreement",
    "try_pod",
    "weights_document",
    "what_would_it_take",
    "why_not",
]
