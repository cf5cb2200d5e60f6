"""All profiles of one scheduler, and the handle their plugins hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler_core.actions import RecordEvent
from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.cluster.pod_groups import PodGroups
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.framework.failure import plain, text_problem
from scheduler_core.framework.interface import ChoiceOptions, CycleState, PreemptingExtenders, Preemptions
from scheduler_core.framework.limit import Limit
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release

MAX_FAILURES = 100
MAX_EVENT_MESSAGE = 1024
"""Length at which the API server cuts an event's note."""


class SchedulerHandle:
    """What plugins reach of the scheduler (`framework.interface.Handle`).

    Parameters
    ----------
    randomness : Randomness, optional
        The scheduler's streams; without them draws come from seed 0.
    choices : ChoiceOptions, optional
    extenders : PreemptingExtenders, optional
    release : Release, optional
        Whose behaviour the plugins follow.
    """

    def __init__(
        self,
        cache: Cache,
        nominator: Nominator,
        waiting_pods: WaitingPods,
        clock: Clock,
        *,
        randomness: Randomness | None = None,
        choices: ChoiceOptions | None = None,
        extenders: PreemptingExtenders | None = None,
        release: Release = OLDEST,
    ) -> None:
        self._cache = cache
        self._clock = clock
        self.nominator = nominator
        self.waiting_pods = waiting_pods
        self.randomness = randomness or Randomness(0)
        self.choices = choices or ChoiceOptions()
        self.extenders = extenders
        self.release = release
        self.pod_groups = PodGroups(cache, release)
        self.preemptions = Preemptions(release.gate("SchedulerAsyncPreemption"))
        self.cycle_state = CycleState()
        self.failures: list[str] = []
        """What went wrong where no cycle could fail for it, the last of it."""
        self.recorder: Callable[[RecordEvent], None] | None = None
        self.activator: Callable[[Iterable[Pod]], object] | None = None

    def record_event(self, pod: Pod, type: str, reason: str, action: str, message: str) -> None:
        if not isinstance(pod, Pod) or type not in ("Normal", "Warning"):
            raise TypeError("record_event is told of a Pod, and Normal or Warning")
        message = message[:MAX_EVENT_MESSAGE]
        for text in (reason, action, message):
            wrong = text_problem(text)
            if wrong is not None:
                raise TypeError(f"record_event was given {wrong}")
        if self.recorder is not None:
            self.recorder(RecordEvent(pod, type, reason, action, message))

    def activate(self, pods: Iterable[Pod]) -> None:
        pods = list(pods)
        if not all(isinstance(pod, Pod) for pod in pods):
            raise TypeError("activate is told of pods")
        if self.activator is not None:
            self.activator(pods)

    def note_failure(self, message: str) -> None:
        self.failures.append(plain(message))
        del self.failures[:-MAX_FAILURES]

    @property
    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    @property
    def listers(self) -> Listers:
        return self._cache.listers

    @property
    def now_ns(self) -> int:
        return self._clock.now_ns


def build_profiles(
    loaded: LoadedConfiguration,
    registry: Registry,
    handle: SchedulerHandle,
    cache: Cache,
    limit: Limit | None = None,
) -> dict[str, Framework]:
    """A framework for each profile, by schedulerName, in the configuration's order.

    Raises
    ------
    ConstructionError
        A plugin from outside the tree cannot be made.
    """
    registry = registry.in_release(loaded.release)
    return {
        plan.scheduler_name: Framework(plan, registry, handle, cache.nodes, limit) for plan in loaded.plans
    }


def check_plugins(loaded: LoadedConfiguration, registry: Registry) -> None:
    """Make the plugins from outside the tree that a configuration names, to see whether they can be made.

    Raises
    ------
    ConstructionError
    """
    if any(name in registry.outside for plan in loaded.plans for name in plan.plugin_names):
        cache = Cache()
        handle = SchedulerHandle(cache, Nominator(), WaitingPods(), Clock(0), release=loaded.release)
        for framework in build_profiles(loaded, registry, handle, cache).values():
            framework.events()
