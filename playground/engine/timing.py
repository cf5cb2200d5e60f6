"""How long extension points take in wall time: watched from outside, as the core knows no wall clock."""

import time
from collections.abc import Callable
from typing import Any, Final

Observe = Callable[[str, str, str, float, str], None]
"""``(profile, extension point, status, seconds, plugin)``; without a plugin it is the whole extension point."""
SAMPLE_EVERY: Final = 10
"""Plugins are timed one by one in the first of so many attempts, as upstream samples them."""

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
_OF_PLUGIN: Final = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
_NO_PROFILE: Final = ""


class ExtensionPointTimes:
    """Watches the frameworks of one simulation's scheduler; a new configuration brings a new one."""

    def __init__(self) -> None:
        self._watched: Any = None
        self.observe: Observe | None = None
        self._attempts = 0
        self._samples = True

    def watch(self, scheduler: Any) -> None:
        """Have the scheduler's frameworks watched, once."""
        if scheduler is self._watched:
            return
        self._watched = scheduler
        for profile, framework in scheduler.profiles.items():
            for name, point in _OF_FRAMEWORK.items():
                setattr(framework, name, self._timed(profile, point, getattr(framework, name)))
            for plugin in framework.plugins.values():
                self._watch_plugin(profile, plugin)
        scheduler.algorithm.make_attempt = self._watching(scheduler.algorithm.make_attempt)

    def _watching(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(framework: Any, *given: Any) -> Any:
            made = make(framework, *given)
            self._samples = self._attempts % SAMPLE_EVERY == 0
            self._attempts += 1
            if self.observe is not None:
                for name, point in _OF_ATTEMPT.items():
                    setattr(made, name, self._timed(framework.scheduler_name, point, getattr(made, name)))
            return made

        return attempt

    def _watch_plugin(self, profile: str, plugin: Any) -> None:
        for name, point in _OF_PLUGIN.items():
            call = getattr(plugin, name, None)
            if call is None or not hasattr(plugin, "__dict__"):
                continue
            setattr(plugin, name, self._timed_plugin(profile, plugin.name, point, call))

    def _timed_plugin(
        self, profile: str, plugin: str, point: str, call: Callable[..., Any]
    ) -> Callable[..., Any]:
        # PreScore and PreEnqueue have no method of the framework's: what their plugins take is their time.
        is_whole = point in ("PreScore", "PreEnqueue")

        def timed(*given: Any, **named: Any) -> Any:
            observe = self.observe
            if observe is None or not (self._samples or is_whole):
                return call(*given, **named)
            began = time.perf_counter()
            result = call(*given, **named)
            took_s = time.perf_counter() - began
            status = _status(result)
            if is_whole:
                observe(profile, point, status, took_s, "")
            if self._samples:
                observe(_NO_PROFILE, point, status, took_s, plugin)
            return result

        return timed

    def _timed(self, profile: str, point: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            observe = self.observe
            if observe is None:
                return call(*given)
            began = time.perf_counter()
            result = call(*given)
            observe(profile, point, _status(result), time.perf_counter() - began, "")
            return result

        return timed


def _status(result: Any) -> str:
    """The status' code in upstream's label form."""
    if isinstance(result, tuple):
        result = result[0]
    code = getattr(getattr(result, "status", result), "code", None)
    return "Success" if code is None else str(code.name)
