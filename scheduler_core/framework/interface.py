"""The one file a plugin author reads: what a plugin may answer, and what it is given.

A plugin answers for many nodes at once. It is given *rows* (`cluster.node_table`: a row is a node's place in the
columns) and returns arrays aligned with them. A plugin implements an extension point by inheriting its class here;
which points run, in which order and with which weight is the profile's business.

State lives in typed values: `pre_filter` returns one, and gets it back in `filter`; `pre_score` returns one, and
`score` gets it back. A plugin object itself holds its arguments and nothing about any pod.

Rows are independent. In preemption and with nominated pods the same `filter` is asked about a `WhatIf`, whose row k
is one node in a world of its own. A plugin whose verdict depends on other pods keeps per-row differences in its
state: `fork` makes a state for such a table, `add_pods` and `remove_pods` say what changed on which row.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go, v1.34
Differs: Filter, Score and NormalizeScore answer for all rows in one call; AddPod and RemovePod for one pod a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cmp_to_key, lru_cache
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.actions import EvictBeside, EvictPod, RecordEvent
from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache, PodGroups
from scheduler_core.cluster.journal import JournalReader
from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.args import PluginArgs
from scheduler_core.config.catalog import EXTENSION_POINTS, interface_name
from scheduler_core.framework.amounts import Comparison
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.framework.domain_lanes import DomainRule
from scheduler_core.framework.status import SKIP, SUCCESS, Code, Status, Verdicts, plain, text_problem
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.fields import Document
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness, Stream
from scheduler_core.releases import OLDEST, Release

# --- What the plugins of one scheduling cycle tell each other.


class CycleState:
    """Values by key, from PreFilter to PostBind of one attempt.

    >>> state = CycleState()
    >>> state.write("example.com/rack", {"name": "r1"})
    >>> state.read("example.com/rack")
    {'name': 'r1'}
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def read(self, key: str) -> Any:
        """The value of a key.

        Raises
        ------
        KeyError
            None was written in this cycle.
        """
        if key not in self._values:
            raise KeyError(f'reading "{key}" from cycleState: not found')
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def write(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a key of cycleState is a text, not {type(key).__name__}")
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def data(self) -> dict[str, Any]:
        """The values that are plain data (JSON), as they come back from a checkpoint."""
        kept: dict[str, Any] = {}
        for key, value in self._values.items():
            try:
                kept[key] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                continue
        return kept

    def keep_data(self) -> None:
        """Forget what is no plain data: the scheduling cycle is over, binding may take any time."""
        if self._values:
            self._values = self.data()


# --- Preemptions that go on beside the scheduling cycle: their victims are deleted, their preemptors are held.


class Preemptions:
    """Evictions that were asked for and are not over, by the uid of the pod or group they make room for.

    Parameters
    ----------
    is_asynchronous : bool
        Whether evictions go on beside the cycle at all; otherwise they are part of it.

    Attributes
    ----------
    running : dict of str to tuple of EvictPod
        In order of beginning.
    """

    def __init__(self, is_asynchronous: bool) -> None:
        self.is_asynchronous = is_asynchronous
        self.running: dict[str, tuple[EvictPod, ...]] = {}

    def begin(self, uid: str, evictions: Sequence[EvictPod]) -> EvictBeside:
        """From now on the preemptor is held until `end`."""
        self.running[uid] = tuple(evictions)
        return EvictBeside(uid, self.running[uid])

    def end(self, uid: str) -> tuple[EvictPod, ...]:
        """It is over; the evictions it was about."""
        return self.running.pop(uid, ())

    def is_running(self, uid: str) -> bool:
        """Whether this pod or group waits for evictions to be asked for."""
        return uid in self.running


# --- What preemption goes by besides the cluster: how equals are told apart, and extenders.


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """How ties are broken, and how many candidates are tried.

    Attributes
    ----------
    first_of_ties : bool
        Take the first name of equals instead of drawing one: for comparing with recordings.
    all_preemption_candidates : bool
        Try preemption on every node where it might help, not on a sample of them.
    """

    first_of_ties: bool = False
    all_preemption_candidates: bool = False


Victims = tuple[tuple[Pod, ...], int]
"""Pods to be evicted from a node, in order, and how many of them violate a PodDisruptionBudget."""


@dataclass(slots=True)
class ExtendersLeft:
    """What extenders left of the candidates, by node name; with an error the whole preemption ends in it."""

    candidates: dict[str, Victims]
    error: str | None = None
    calls: list[Any] = field(default_factory=list)


AskExtenders = Callable[[Pod, Mapping[str, Victims], Snapshot], ExtendersLeft]


S = TypeVar("S")

MAX_NODE_SCORE = 100
Scores = NDArray[np.int64]


class Reads(Enum):
    """What a verdict or score for a row depends on besides the pod: how long an answer of an earlier cycle holds."""

    SPEC = "spec"
    """The row's node object alone."""
    USAGE = "usage"
    """The row's node object and the pods on that row."""
    CLUSTER = "cluster"
    """Anything else: never kept from one cycle to the next."""


MAX_FAILURES = 100
MAX_EVENT_MESSAGE = 1024
"""Length at which the API server cuts an event's note."""


class Handle:
    """What plugins may reach: the public face of the scheduler for plugin authors.

    Upstream's Parallelizer has no counterpart: a plugin is asked about all nodes in one call.

    Parameters
    ----------
    randomness : Randomness, optional
        The scheduler's streams; without them draws come from seed 0.
    choices : ChoiceOptions, optional
    extenders : callable, optional
        Asks the extenders about preemption; None where none is configured.
    release : Release, optional
        The release of Kubernetes whose behaviour is asked for, with its feature gates.

    Attributes
    ----------
    cycle_state : CycleState
        What the plugins of the cycle that runs tell each other; the same from PreFilter to PostBind.
    preemptions : Preemptions
        Which preemptors wait for their victims' eviction to be asked for.
    pod_groups : PodGroups
        Who belongs to which PodGroup, and who of them holds a node.
    failures : list of str
        What went wrong where no cycle could fail for it, the last of it.
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
        extenders: AskExtenders | None = None,
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
        self.recorder: Callable[[RecordEvent], None] | None = None
        self.activator: Callable[[Iterable[Pod]], object] | None = None

    @property
    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    @property
    def listers(self) -> Listers:
        """All objects but nodes and pods, in the state last seen by the scheduler's watches."""
        return self._cache.listers

    @property
    def now_ns(self) -> int:
        """The cluster's own time. Nothing else here may ask what time it is."""
        return self._clock.now_ns

    def record_event(self, pod: Pod, type: str, reason: str, action: str, message: str) -> None:
        """Record a v1 Event about a pod; `type` is Normal or Warning."""
        if not isinstance(pod, Pod) or type not in ("Normal", "Warning"):
            raise TypeError("record_event takes a Pod, and Normal or Warning")
        message = message[:MAX_EVENT_MESSAGE]
        for text in (reason, action, message):
            wrong = text_problem(text)
            if wrong is not None:
                raise TypeError(f"record_event was given {wrong}")
        if self.recorder is not None:
            self.recorder(RecordEvent(pod, type, reason, action, message))

    def activate(self, pods: Iterable[Pod]) -> None:
        """Have pending pods tried soon, whatever they wait for, gates excepted.

        Source: framework/interface.go Handle.Activate, v1.34
        """
        pods = list(pods)
        if not all(isinstance(pod, Pod) for pod in pods):
            raise TypeError("activate takes pods")
        if self.activator is not None:
            self.activator(pods)

    def note_failure(self, message: str) -> None:
        """Keep what went wrong where no cycle could fail for it (`Simulation.plugin_failures`)."""
        self.failures.append(plain(message))
        del self.failures[:-MAX_FAILURES]


class Plugin:
    """Base of all plugins: what a class declares of itself besides its extension points.

    Everything else follows from the class: the points from the classes here it inherits, defaults, decoding and
    validation from `Args`, hints from `events`, checkpoints from `checkpoint` and `restore`.

    Parameters
    ----------
    args : object
        An `Args`, defaulted; where the class declares none, the document as written, or None.
    handle : Handle
    """

    name: ClassVar[str]

    Args: ClassVar[type[PluginArgs] | None] = None
    """What the plugin is configured with (`config.args`); None takes any document, unchecked."""

    default_weight: ClassVar[int | None] = None
    """Its weight in the default set, 0 for a plugin that scores nothing; None where it is not on by default."""

    feature_gate: ClassVar[str | None] = None
    """The gate that brings the plugin: releases without it lack the plugin, and where it is off it is not on by
    default."""

    group_labels: ClassVar[tuple[str, ...]] = ()
    """Labels that make a pod a member of a group, which this plugin places together. A pod that carries a label of
    pod groups no plugin of its profile knows is held back, not scheduled as if it had not asked."""

    is_family: ClassVar[bool] = False
    """Whether the class stands for any number of plugins, which a configuration names `NAME/MEMBER`, each with args of
    its own."""

    compares: ClassVar[str] = ""
    """What its filter compares a pod and a node by (`whatif.why_not`), where the answer to 'why not this node' has
    words for it: `requests`, `taints`, ...; else that answer has its reasons alone."""

    draw: ClassVar[tuple[str, int] | None] = None
    """The letter and colour, 1 to 7, of its points in a drawing; a letter of its name where not given."""

    refused_in_v1: ClassVar[bool] = False
    """Whether a v1 configuration may not name it (a retired plugin's name)."""

    sign_reads: ClassVar[tuple[str, ...]] = ()
    """Kinds of objects, besides the pod, that `sign` looks at: after a change of one of them it is asked again."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle

    @classmethod
    def args_in(cls, release: Release) -> type[PluginArgs] | None:
        """The class of its args in a release, for a plugin whose args are not the same in all; `Args` otherwise."""
        return cls.Args

    @property
    def random(self) -> Stream:
        """A random stream of this plugin's own: what it draws changes no other draw, and a replay draws the same.

        Where each row has a draw of its own, draw in the order of `snapshot.rank`: rows are dealt out anew when a
        cluster goes on from a checkpoint.
        """
        return self.handle.randomness.stream(f"plugin/{self.name}")

    def events(self) -> Sequence[ClusterEventWithHint] | None:
        """What may make a pod schedulable that this plugin rejected, and when it is worth another try.

        None asks at every event, as upstream asks a plugin that does not say; nothing at all waits for the flush of
        unschedulable pods.

        Source: framework/interface.go EnqueueExtensions, v1.34
        """
        return None

    def checkpoint(self) -> Any:
        """What the plugin holds beyond its args and what follows from the cluster, as JSON data; None for nothing."""
        return None

    def restore(self, state: Any) -> None:
        """Restore what `checkpoint` gave; the cluster is in the same state."""

    def sign(self, pod: Pod) -> Hashable | None:
        """All this plugin reads of a pod, as one hashable value; None when it cannot say.

        Pods with equal signs get equal answers from equal clusters, so answers may be kept (`Reads`). A filter plugin
        that has one reads of a pod's metadata its namespace at most: the numbers of `FilterGroup` go by spec.
        """
        return None


class PreEnqueuePlugin(Plugin):
    """Holds a pod back before it enters the active queue."""

    def pre_enqueue(self, pod: Pod) -> Status:
        raise NotImplementedError


class QueuedPod(Protocol):
    """A pod in the queue, as QueueSort sees it."""

    @property
    def pod(self) -> Pod: ...

    @property
    def timestamp_ns(self) -> int:
        """When it entered the queue, or came back from its last attempt."""
        ...

    @property
    def attempts(self) -> int: ...

    @property
    def initial_attempt_timestamp_ns(self) -> int | None:
        """When it was first tried; None before."""
        ...


class QueueSortPlugin(Plugin):
    """Orders the active queue, the same for all profiles: by `sort_key`, or by `less`."""

    def sort_key(self, queued: QueuedPod) -> Any:
        """Pods are popped in ascending order of this key; asked whenever the pod enters a queue."""
        return _by_less(self)(queued)

    def less(self, first: QueuedPod, second: QueuedPod) -> bool:
        """Whether `first` is popped before `second`; asked only of a plugin without `sort_key`."""
        raise NotImplementedError


@lru_cache(maxsize=16)
def _by_less(plugin: QueueSortPlugin) -> Callable[[QueuedPod], Any]:
    """Sort keys that compare by a plugin's `less`."""

    def compare(first: QueuedPod, second: QueuedPod) -> int:
        return -1 if plugin.less(first, second) else int(plugin.less(second, first))

    return cmp_to_key(compare)


@dataclass(slots=True)
class PreFilterResult(Generic[S]):
    """What PreFilter found out.

    Attributes
    ----------
    status : Status
        Skip means: do not ask my Filter about this pod.
    state : S or None
        Given to `filter`, `fork`, `add_pods`, `remove_pods`.
    node_names : tuple of str or None
        The only nodes worth looking at; None means all.
    """

    status: Status = SUCCESS
    state: S | None = None
    node_names: tuple[str, ...] | None = None


SKIP_FILTER: Final[PreFilterResult[Any]] = PreFilterResult(SKIP)
"""What most plugins find out about most pods: one for all of them, not to be written to."""


class PreFilterPlugin(Plugin, Generic[S]):
    """Looks at the pod once, before any node."""

    filter_without_state: ClassVar[bool] = False
    """Whether `filter` copes with None where a profile disables this PreFilter but not the Filter."""

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[S]:
        raise NotImplementedError


class FilterPlugin(Plugin, Generic[S]):
    """Says which rows a pod can run on.

    A plugin that is not a PreFilterPlugin is given None as its state.
    """

    filter_reads: ClassVar[Reads] = Reads.CLUSTER
    gives_devices: ClassVar[bool] = False
    """Whether `devices` tells anything."""
    sentences: ClassVar[Sequence[str]] = ()
    """What `reasons` says of a verdict by its detail; empty for a plugin that says its words itself."""

    def filter(self, state: S, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        """Verdicts aligned with `rows`."""
        raise NotImplementedError

    def reasons(
        self, state: S, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        """The exact Kubernetes sentences behind one verdict of `filter`.

        They may depend on code and detail, not on the row: rows with the same verdict are counted together and
        `row` is any one of them. A plugin whose `filter` is `per_node` has said its words there;
        one without `sentences` is named.
        """
        if self.sentences:
            return (self.sentences[detail],)
        said: list[tuple[str, ...]] | None = self.__dict__.get("per_node_reasons")
        return said[detail] if said else (f"node(s) didn't satisfy plugin {self.name}",)

    def compare(self, state: S, pod: Pod, snapshot: Snapshot) -> Iterable[Comparison]:
        """The amounts behind what `filter` rejects, aligned with `snapshot.rows`; nothing where `reasons` say it all.

        Asked about the cluster as it is, and only where a whole trace is kept.
        """
        return ()

    def filter_domains(self, state: S, pod: Pod, snapshot: Snapshot) -> Iterable[DomainRule]:
        """The constraints of `filter` that count pods by topology domain; asked where `compare` is."""
        return ()

    def devices(self, state: S, pod: Pod, node: Node) -> dict[str, Any] | None:
        """How devices were looked for on a node (`dynamic_resources.story`); None from a plugin that gives out none."""
        return None

    def fork(self, state: S, nodes: WhatIf) -> S:
        """A state for `nodes`, in which each row may change on its own. The state itself when no pod can matter."""
        return state

    def add_pods(self, state: S, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` came to row `rows[i]` (`nodes` says so already); no row twice in one call."""

    def remove_pods(self, state: S, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` left row `rows[i]` (`nodes` says so already); no row twice in one call."""


@dataclass(slots=True)
class PreScoreResult(Generic[S]):
    """What PreScore found out; Skip means: do not ask my Score about this pod (it contributes 0)."""

    status: Status = SUCCESS
    state: S | None = None


SKIP_SCORE: Final[PreScoreResult[Any]] = PreScoreResult(SKIP)
"""As `SKIP_FILTER`."""


class PreScorePlugin(Plugin, Generic[S]):
    """Looks at the pod and all feasible rows once, before scoring."""

    score_without_state: ClassVar[bool] = False
    """Whether `score` copes with None where a profile disables this PreScore but not the Score."""

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> PreScoreResult[S]:
        """`rows` are the feasible ones, in evaluation order."""
        raise NotImplementedError


class ScorePlugin(Plugin, Generic[S]):
    """Ranks feasible rows."""

    score_reads: ClassVar[Reads] = Reads.CLUSTER

    normalizes: ClassVar[bool] = False
    """Whether `normalize` does anything."""

    def score(self, state: S, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        """Raw scores, ndarray of shape (len(rows),), int64."""
        raise NotImplementedError

    def normalize(self, state: S, pod: Pod, nodes: NodeColumns, rows: Rows, scores: Scores) -> Scores:
        """Scores from 0 to 100, given the raw scores of all feasible rows.

        Unless `score_reads` is CLUSTER they may be kept along with the raw ones, for the same rows.
        """
        return scores

    def score_domains(self, state: Any, pod: Pod, snapshot: Snapshot) -> Iterable[DomainRule]:
        """What `score` counts by topology domain, with the state of PreScore; asked where `compare` is."""
        return ()


@dataclass(slots=True)
class PostFilterResult:
    """What PostFilter did about a pod that fits nowhere.

    Attributes
    ----------
    status : Status
    nominated_node_name : str or None
        None leaves the pod's nomination alone, "" clears it, a name sets it.
    victims : tuple of Pod
        To be evicted, in order.
    cleared : tuple of Pod
        Pods of lower priority whose nomination to that node is to be taken back.
    trace : object
        What the page of this cycle shows; has `explain()` and `summary()`, both to be called before the cluster
        changes (`framework.preemption.trace`).
    extender_calls : tuple
        What extenders were asked and answered, in order.
    writes : tuple of manifest
        Whole objects that the API server is to be given.
    """

    status: Status
    nominated_node_name: str | None = None
    victims: tuple[Pod, ...] = ()
    cleared: tuple[Pod, ...] = ()
    trace: Any = None
    extender_calls: tuple[Any, ...] = ()
    writes: tuple[Document, ...] = ()


class PostFilterPlugin(Plugin):
    """Tries to make a pod schedulable that fits nowhere."""

    def post_filter(self, cycle: FilteredCycle) -> PostFilterResult:
        raise NotImplementedError


class FilteredCycle(Protocol):
    """A scheduling attempt that found no node, as PostFilter sees it (`framework.runtime.Attempt`)."""

    pod: Pod
    snapshot: Snapshot

    def pre_filter_ran(self, plugin: str) -> bool:
        """Whether the plugin's PreFilter was reached; a rejection before it ends the attempt."""
        ...

    def rejected_rows(self, code: Code) -> Rows:
        """Rows whose verdict has this code, in evaluation order."""
        ...

    def code_of(self, node_name: str) -> Code:
        """The verdict on one node; a node that was not filtered, or is not there, is not resolvable."""
        ...

    def what_if(self, rows: Rows) -> RowWorlds:
        """The given rows, each as a separate world."""
        ...

    def row_key(self) -> Hashable | None:
        """What answers about a row depend on besides that row; None where they depend on other rows."""
        ...

    def rows_changed(self, reader: JournalReader) -> list[int] | None:
        """Rows to ask about again since the reader was used last; None for all of them."""
        ...


class RowWorlds(Protocol):
    """Some rows as separate worlds, with every filter plugin's state for them."""

    nodes: WhatIf

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None: ...

    def remove_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None: ...

    def remove_all(self, starts: NDArray[np.intp], pod_ids: NDArray[np.intp]) -> None: ...

    def feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the world's `rows` the pod fits, nominated pods of equal or higher priority counted in and out."""
        ...

    def rejections(self, rows: Rows) -> tuple[NDArray[np.int64], list[Status]]:
        """Like `feasible`, with the reasons: for each row -1 or an index into the list of distinct rejections."""
        ...


class ReservePlugin(Plugin):
    """Claims what binding needs; gives it back when binding fails."""

    def reserve(self, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Must be safe to call without a reserve before it."""


class PermitPlugin(Plugin):
    """Lets a reserved pod go on, refuses it, or has it wait."""

    def permit(self, pod: Pod, node_name: str) -> tuple[Status, int]:
        """Status (Success, a rejection, or Wait) and, for Wait, the time it may wait in nanoseconds."""
        raise NotImplementedError

    def wakes(self, pod: Pod, other: Pod) -> bool:
        """Whether `other`, which is pending, is worth a try now that `pod` waits for this plugin's word.

        Source: framework/types.go PodsToActivate, v1.34
        """
        return False


class PreBindPlugin(Plugin):
    """Does what must be done before the pod is bound."""

    def pre_bind(self, pod: Pod, node_name: str) -> Status:
        """Success lets the pod be bound. Wait means not yet: it is asked again when objects change or time passes.

        An upstream plugin blocks here instead; nothing blocks in this scheduler.
        """
        return SUCCESS

    def will_pre_bind(self, pod: Pod, node_name: str) -> bool:
        """Whether `pre_bind` has anything to do for a pod that holds the node.

        Asked where the gate NominatedNodeNameForExpectation is on, as it is since 1.35.

        Source: framework/interface.go PreBindPreFlight, v1.34
        """
        return True

    def take_writes(self, pod: Pod) -> tuple[Document, ...]:
        """Manifests to be written for a pod that waits, each given out once."""
        return ()

    def pre_bind_deadline_ns(self, pod: Pod) -> int | None:
        """When the plugin gives up on a pod that waits; None for never."""
        return None


class BindPlugin(Plugin):
    """Binds a pod to its node; Skip leaves it to the next one."""

    def bind(self, pod: Pod, node_name: str) -> Status:
        """Success means: the API server is to be asked to bind the pod."""
        raise NotImplementedError


class PostBindPlugin(Plugin):
    """Called after a pod is bound."""

    def post_bind(self, pod: Pod, node_name: str) -> None: ...


POINT_CLASSES: dict[str, type[Plugin]] = {
    point: globals()[interface_name(point)] for point in EXTENSION_POINTS
}
"""The class a plugin inherits to be asked at an extension point."""


def default_normalize(scores: Scores, max_score: int = MAX_NODE_SCORE, *, reverse: bool = False) -> Scores:
    """Scale to 0..max_score by the largest score, reversed on demand.

    Source: pkg/scheduler/framework/plugins/helper/normalize_score.go, v1.34
    """
    top = int(scores.max()) if len(scores) else 0
    if top == 0:
        return np.full_like(scores, max_score) if reverse else scores
    scaled = max_score * scores // top
    return max_score - scaled if reverse else scaled
