"""What an API server refuses of Leases.

Source: pkg/apis/coordination/validation/validation.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import mapping, optional_integer, optional_string, string
from scheduler_core.objects.label_syntax import qualified_name_errors

Document = Mapping[str, Any]

_OLDEST: Final = "OldestEmulationVersion"


def check_lease(manifest: Document) -> None:
    """Check a Lease's numbers, and that a preferred holder comes with a strategy.

    Raises
    ------
    InvalidObject
    """
    spec = mapping(manifest, "spec", "")
    duration_s = optional_integer(spec, "leaseDurationSeconds", "spec")
    if duration_s is not None and duration_s <= 0:
        raise InvalidObject("spec.leaseDurationSeconds", duration_s, "must be greater than 0")
    transitions = optional_integer(spec, "leaseTransitions", "spec")
    if transitions is not None and transitions < 0:
        raise InvalidObject("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
    strategy = optional_string(spec, "strategy", "spec")
    if strategy is not None:
        _check_strategy(strategy)
    if string(spec, "preferredHolder", "spec") and not strategy:
        words = "Forbidden: may only be specified if `strategy` is defined"
        raise InvalidObject("spec.preferredHolder", None, words)


def _check_strategy(strategy: str) -> None:
    if "/" not in strategy and strategy != _OLDEST:
        raise InvalidObject("spec.strategy", strategy, f'supported values: "{_OLDEST}"')
    if "/" in strategy and (wrong := qualified_name_errors(strategy)):
        raise InvalidObject("spec.strategy", strategy, wrong[0])
