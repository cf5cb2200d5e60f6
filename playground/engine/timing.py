"""How long extension points take in wall time: watched from outside, as the core knows no wall clock."""

import time
from collections.abc import Callable
from typing import Any, Final

Observe = Callable[[str, str, str, float], None]
"""``(profile, extension point, status, seconds)``."""

_OF_ATTEMPT: Final = {
    "run_pre_filter": "PreFilter",
    "run_filter": "Filter",
    "filter_nominated_node": "Filter",
    "run_score": "Score",
}
_OF_FRAMEWORK: Final = {
    "run_reserve": "Reserve",
    "run_unreserve": "Unreserve",
    "run_permit": "Permit",
    "run_pre_bind": "PreBind",
    "run_bind": "Bind",
    "run_post_bind": "PostBind",
    "run_post_filter": "PostFilter",
}


class ExtensionPointTimes:
    """Watches the frameworks of one simulation's scheduler; a new configuration brings a new one."""

    def __init__(self) -> None:
        self._watched: Any = None
        self.observe: Observe | None = None

    def watch(self, scheduler: Any) -> None:
        """Have the scheduler's frameworks watched, once."""
        if scheduler is self._watched:
            return
        self._watched = scheduler
        for profile, framework in scheduler.profiles.items():
            for name, point in _OF_FRAMEWORK.items():
                setattr(framework, name, self._timed(profile, point, getattr(framework, name)))
        scheduler.algorithm.make_attempt = self._watching(scheduler.algorithm.make_attempt)

    def _watching(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(framework: Any, *given: Any) -> Any:
            made = make(framework, *given)
            if self.observe is not None:
                for name, point in _OF_ATTEMPT.items():
                    setattr(made, name, self._timed(framework.scheduler_name, point, getattr(made, name)))
            return made

        return attempt

    def _timed(self, profile: str, point: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            observe = self.observe
            if observe is None:
                return call(*given)
            began = time.perf_counter()
            result = call(*given)
            observe(profile, point, _status(result), time.perf_counter() - began)
            return result

        return timed


def _status(result: Any) -> str:
    """The status' code in upstream's label form."""
    if isinstance(result, tuple):
        result = result[0]
    code = getattr(getattr(result, "status", result), "code", None)
    return "Success" if code is None else str(code.name)
