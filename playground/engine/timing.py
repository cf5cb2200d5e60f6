"""How long extension points take in wall time: watched from outside, as the core knows no wall clock."""

import time
from collections.abc import Callable
from typing import Any, Final

from scheduler_core.framework.status import Code

Observe = Callable[[str, str, str, float, str], None]
"""``(profile, extension point, status, seconds, plugin)``; without a plugin it is the whole extension point."""
SAMPLE_EVERY: Final = 10
"""Plugins are timed one by one in the first of so many attempts, as upstream samples them."""


def _points(names: str, prefix: str = "") -> dict[str, str]:
    """Method -> extension point: `pre_bind` is called at PreBind."""
    return {prefix + name: name.title().replace("_", "") for name in names.split()}


_ENDS: Final = "reserve unreserve permit pre_bind bind post_bind post_filter"
_BEGINS: Final = "pre_filter filter pre_score score"
_OF_ATTEMPT: Final = _points(_BEGINS, "run_") | {"filter_nominated_node": "Filter"}
_OF_FRAMEWORK: Final = _points(_ENDS, "run_")
_OF_PLUGIN: Final = _points(f"pre_enqueue {_BEGINS} {_ENDS}") | {"normalize": "ScoreExtensionNormalize"}
_NO_PROFILE: Final = ""
_NAMES: Final = [code.name for code in Code]


class ExtensionPointTimes:
    """Watches the frameworks of one simulation's scheduler; a new configuration brings a new one."""

    def __init__(self) -> None:
        self._watched: Any = None
        self.observe: Observe | None = None
        self._attempts = 0
        self._samples = False
        self._sampled: list[tuple[Any, str, Callable[..., Any], Callable[..., Any] | None]] = []

    def watch(self, scheduler: Any) -> None:
        """Have the scheduler's frameworks watched, once."""
        if scheduler is self._watched:
            return
        self._sample(False)
        self._watched, self._sampled = scheduler, []
        for profile, framework in scheduler.profiles.items():
            for name, point in _OF_FRAMEWORK.items():
                setattr(
                    framework, name, self._timed(lambda *_, at=profile: at, point, getattr(framework, name))
                )
            for plugin in framework.plugins.values():
                self._watch_plugin(plugin)
        queue = scheduler.queue
        gates = self._timed(lambda info: info.pod.scheduler_name, "PreEnqueue", queue.run_pre_enqueue)
        queue.run_pre_enqueue = self._sampling(gates)
        scheduler.algorithm.make_attempt = self._watching(scheduler.algorithm.make_attempt)

    def _watching(self, attempt: type[Any]) -> type[Any]:
        """The class of attempts with its methods timed."""
        times = self

        def begin(made: Any, *given: Any) -> None:
            times._sample(times.observe is not None and times._attempts % SAMPLE_EVERY == 0)
            times._attempts += 1
            attempt.__init__(made, *given)

        def profile(made: Any, *given: Any) -> str:
            return str(made.framework.scheduler_name)

        methods = {
            name: self._timed(profile, point, getattr(attempt, name)) for name, point in _OF_ATTEMPT.items()
        }
        return type(attempt.__name__, (attempt,), {"__init__": begin, **methods})

    def _sampling(self, gates: Callable[..., Any]) -> Callable[..., Any]:
        """PreEnqueue, which runs outside of attempts, with its plugins timed in the first of so many runs."""
        n_runs = 0

        def run(info: Any) -> Any:
            nonlocal n_runs
            samples = self._samples
            self._sample(samples or (self.observe is not None and n_runs % SAMPLE_EVERY == 0))
            n_runs += 1
            try:
                return gates(info)
            finally:
                self._sample(samples)

        return run

    def _sample(self, on: bool) -> None:
        """Time plugins one by one, or leave them alone: a call that only looks whether to time costs too."""
        if on is self._samples:
            return
        self._samples = on
        for plugin, name, timed, own in self._sampled:
            if on:
                setattr(plugin, name, timed)
            elif own is not None:
                setattr(plugin, name, own)
            else:
                delattr(plugin, name)

    def _watch_plugin(self, plugin: Any) -> None:
        for name, point in _OF_PLUGIN.items():
            call = getattr(plugin, name, None)
            if call is None or not hasattr(plugin, "__dict__"):
                continue
            # A plugin from outside the tree has its methods watched already: that watch is timed, and comes back.
            timed = self._timed(lambda *_, **__: _NO_PROFILE, point, call, plugin.name)
            self._sampled.append((plugin, name, timed, vars(plugin).get(name)))

    def _timed(
        self, profile: Callable[..., str], point: str, call: Callable[..., Any], plugin: str = ""
    ) -> Callable[..., Any]:
        """A call that tells how long it took; that of a plugin only while plugins are sampled."""

        def timed(*given: Any, **named: Any) -> Any:
            observe = self.observe
            if observe is None or (plugin and not self._samples):
                return call(*given, **named)
            began = time.perf_counter()
            result = call(*given, **named)
            took_s = time.perf_counter() - began
            observe(profile(*given, **named), point, _status(result), took_s, plugin)
            return result

        return timed


def _status(result: Any) -> str:
    """The status' code in upstream's label form."""
    if isinstance(result, tuple):
        result = result[0]
    code = getattr(getattr(result, "status", result), "code", Code.Success)
    return _NAMES[code]
