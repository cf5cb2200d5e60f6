"""All profiles of one scheduler, and the handle their plugins hold."""

from __future__ import annotations

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.framework.interface import ChoiceOptions, PreemptingExtenders
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release


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
    loaded: LoadedConfiguration, registry: Registry, handle: SchedulerHandle, cache: Cache
) -> dict[str, Framework]:
    """A framework for each profile, by schedulerName, in the configuration's order."""
    registry = registry.in_release(loaded.release)
    return {plan.scheduler_name: Framework(plan, registry, handle, cache.nodes) for plan in loaded.plans}
