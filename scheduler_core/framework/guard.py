"""A plugin from outside the tree is not trusted: what it raises or returns amiss ends its cycle, never the engine.

`guard` puts a watched method in the place of each method the scheduler calls. Where a cycle runs it fails under the
plugin's name and the place; where none does there is an answer that harms nothing, and an event on the pod says what
happened. In-tree plugins are held to the same rules by the conformance kit, and are called directly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from operator import eq, lt
from typing import Any, Final

import numpy as np

from scheduler_core.clock import measure_cpu_ns
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.domain_lanes import DomainRule
from scheduler_core.framework.failure import PluginFailure, failure_of, invalid_score
from scheduler_core.framework.limit import Limit, TookTooLong
from scheduler_core.framework.status import Code, Status, Verdicts, text_problem, words_of
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.pod import Pod

_SAID_BY_FILTERS = np.isin(np.arange(256), [code for code in Code if code not in (Code.Wait, Code.Skip)])
"""Which bytes are codes a filter can say: looked up, it is asked of every node in every cycle."""

_LONGEST_WAIT_NS = 2**63 - 1
"""What a time.Duration of upstream's can hold."""

FAILURES = (Exception, SystemExit, TookTooLong)
"""What a plugin may raise."""

Clean = Callable[[Any, Any, tuple[Any, ...]], Any]
"""An answer as it is used, given the plugin and what it was asked; a TypeError or ValueError says what was returned
instead of one."""

_MOST_REASONS = 100
_ENDS_THE_CYCLE: Final = object()
"""In place of an answer that harms nothing: there is none."""


def guard(plugin: fw.Plugin, limit: Limit | None = None) -> None:
    """Watch every method of a plugin that the scheduler calls."""
    for method, (point, fallback, clean) in _WATCHED.items():
        # Something else of this name is the plugin's own: what it does not declare is not called.
        if callable(getattr(plugin, method, None)):
            setattr(plugin, method, _watched(plugin, method, point, fallback, clean, limit))
    if isinstance(plugin, fw.FilterPlugin):
        plugin.reasons = _spoken(plugin, limit)  # type: ignore[method-assign]
        compare = _watched(plugin, "compare", "Filter", (), _comparisons, limit)
        plugin.compare = compare  # type: ignore[method-assign]
    for method, point in (("filter_domains", "Filter"), ("score_domains", "Score")):
        if hasattr(plugin, method):
            setattr(plugin, method, _watched(plugin, method, point, (), _domain_rules, limit))


def _timed(plugin: fw.Plugin, method: str, limit: Limit | None) -> Callable[..., Any]:
    call: Callable[..., Any] = getattr(plugin, method)
    return call if limit is None or not limit.budget_ns else partial(limit.call, call)


def _watched(
    plugin: fw.Plugin, method: str, point: str, fallback: Any, clean: Clean, limit: Limit | None
) -> Callable[..., Any]:
    call = _timed(plugin, method, limit)

    def watched(*args: Any) -> Any:
        try:
            result = call(*args)
            try:
                return clean(plugin, result, args)
            except (TypeError, ValueError) as error:
                raise TypeError(f"{method} returned {error}") from error
        except FAILURES as error:
            if fallback is not _ENDS_THE_CYCLE:
                tell(plugin, point, error, next((item for item in args if isinstance(item, Pod)), None))
                return fallback
            if isinstance(error, PluginFailure):
                raise
            raise _failure(plugin, point, error) from error

    return watched


def _failure(plugin: fw.Plugin, point: str, error: BaseException) -> PluginFailure:
    if point == "Filter":
        # In upstream's words, as for any plugin that fails there.
        said = f'running "{plugin.name}" filter plugin: {words_of(error)}'
        return PluginFailure(plugin.name, point, said)
    return failure_of(plugin, point, error)


def tell(plugin: fw.Plugin, point: str, error: BaseException, pod: Pod | None) -> None:
    """Record an event about a failure that ends no cycle."""
    said = str(failure_of(plugin, point, error))
    plugin.handle.note_failure(said)
    if pod is not None:
        plugin.handle.record_event(pod, "Warning", "PluginFailed", point, said)


def _spoken(plugin: fw.FilterPlugin[Any], limit: Limit | None) -> Callable[..., tuple[str, ...]]:
    """`reasons` gives words about what was decided before; without them it says why there are none."""
    call = _timed(plugin, "reasons", limit)

    def reasons(*args: Any) -> tuple[str, ...]:
        try:
            said = call(*args)
            wrong = _texts_problem(tuple(said) if isinstance(said, list) else said)
            if wrong is None:
                return tuple(said)
            raise TypeError(f"reasons returned {wrong}")
        except FAILURES as error:
            return (f'"{plugin.name}" does not say why: {words_of(error)}',)

    return reasons


# ---- what an answer must be


def _is(kind: type[Any]) -> Clean:
    def clean(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
        if not isinstance(result, kind):
            raise TypeError(f"{type(result).__name__}, not {kind.__name__}")
        return result

    return clean


def _check_column(column: Any, n_rows: int, dtype: type[Any], what: str) -> None:
    if not isinstance(column, np.ndarray):
        raise TypeError(f"{what} as {type(column).__name__}, not as an ndarray of {dtype.__name__}")
    if column.shape != (n_rows,):
        raise TypeError(f"{what} of shape {column.shape} for {n_rows} rows")
    if column.dtype != dtype:
        raise TypeError(f"{what} of {column.dtype}, not of {dtype.__name__}")


def _verdicts(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    if not isinstance(result, Verdicts):
        raise TypeError(f"{type(result).__name__}, not Verdicts")
    n_rows = len(args[-1])
    _check_column(result.codes, n_rows, np.int8, "codes")
    if result.details is not None:
        _check_column(result.details, n_rows, np.int64, "details")
    if not _SAID_BY_FILTERS[result.codes.view(np.uint8)].all():
        raise TypeError(f"the codes {sorted(set(result.codes.tolist()))}, which a filter cannot say")
    return result


def _scores(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    rows = args[3]
    _check_column(result, len(rows), np.int64, "scores")
    is_last = len(args) > 4 or (isinstance(plugin, fw.ScorePlugin) and not plugin.normalizes)
    if is_last and len(rows) and (int(result.min()) < 0 or int(result.max()) > 100):
        worst = int(result.min()) if int(result.min()) < 0 else int(result.max())
        raise invalid_score(plugin, worst)
    return result


def _pre_filter(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    names = _is(fw.PreFilterResult)(plugin, result, args).node_names
    if names is not None and not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
        raise TypeError(f"node_names {_shown(names)}, not a tuple of names")
    _status(plugin, result.status, args)
    return result


def _permit(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    try:
        status, wait_ns = result
        _status(plugin, status, args)
        if isinstance(wait_ns, int | np.integer) and 0 <= wait_ns <= _LONGEST_WAIT_NS:
            return result
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{_shown(result)}, not a Status and how long the pod may wait, in nanoseconds")


def _status(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    # A dataclass takes what it is given.
    code: Any = _is(Status)(plugin, result, args).code
    if not isinstance(code, Code):
        raise TypeError(f"a Status with the code {_shown(code)}")
    wrong = _texts_problem(result.reasons)
    if wrong is not None:
        raise TypeError(f"a Status with the reasons {wrong}")
    if result.plugin != "" and text_problem(result.plugin) is not None:
        raise TypeError("a Status of a plugin without a name")
    return result


def _texts_problem(said: Any) -> str | None:
    """What keeps a tuple of texts from being one."""
    if not isinstance(said, tuple) or not all(isinstance(text, str) for text in said):
        return f"{_shown(said)}, not a tuple of texts"
    if len(said) > _MOST_REASONS:
        return f"{len(said)} texts, there may be {_MOST_REASONS}"
    return next((wrong for text in said if (wrong := text_problem(text)) is not None), None)


def _pre_score(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    _status(plugin, _is(fw.PreScoreResult)(plugin, result, args).status, args)
    return result


def _post_filter(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    _status(plugin, _is(fw.PostFilterResult)(plugin, result, args).status, args)
    node: Any = result.nominated_node_name
    if node is not None and node != "" and (text_problem(node) or node not in args[0].snapshot.nodes.row_of):
        raise TypeError(f"as nominated node {_shown(node)}, which is no node")
    for name in ("victims", "cleared"):
        pods: Any = getattr(result, name)
        if not (isinstance(pods, tuple) and all(isinstance(pod, Pod) for pod in pods)):
            raise TypeError(f"{name} {_shown(pods)}, not a tuple of pods")
    calls: Any = result.extender_calls
    if not (isinstance(calls, tuple) and all(hasattr(call, "explain") for call in calls)):
        raise TypeError(f"extender_calls {_shown(calls)}, not a tuple of calls")
    try:
        _manifests(plugin, result.writes, args)
        if result.trace is not None:
            _document(plugin, result.trace.explain(), args)
            _document(plugin, result.trace.summary(), args)
    except Exception as error:
        raise TypeError(f"writes or a trace that cannot be used: {words_of(error)}") from error
    return result


def _shown(value: Any) -> str:
    """A value for a message, short; it may be one that cannot be shown."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}..."


def _hashable(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    try:
        hash(result)
    except Exception as error:
        raise TypeError(f"what has no hash: {words_of(error)}") from error
    return result


def _anything(plugin: fw.Plugin, result: Any, args: tuple[Any, ...]) -> Any:
    return result


def _boolean(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(said, bool | np.bool_):
        raise TypeError(f"{type(said).__name__}, not bool")
    return bool(said)


def _moment(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> int | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | np.integer):
        raise TypeError(f"{_shown(said)}, not nanoseconds since the epoch")
    return int(said)


def _manifests(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Objects that an API server would take."""
    for manifest in _is(tuple)(plugin, said, args):
        if not isinstance(manifest, dict) or not isinstance(manifest.get("metadata"), dict):
            raise TypeError(f"{_shown(manifest)}, which is no manifest")
        _document(plugin, manifest, args)
        named = (manifest.get("apiVersion"), manifest.get("kind"), manifest["metadata"].get("name"))
        if not all(isinstance(text, str) and text for text in named):
            raise TypeError("a manifest without apiVersion, kind and metadata.name")
        if is_read(manifest):
            parse(manifest)
    found: tuple[Any, ...] = said
    return found


def _document(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> Any:
    """A dict of JSON that can be written down, or None."""
    if said is not None and not isinstance(said, dict):
        raise TypeError(f"{type(said).__name__}, not dict")
    written = json.dumps(said, allow_nan=False, ensure_ascii=False)
    if "\\u0000" in written or written != written.encode("utf-8", "replace").decode():
        raise ValueError("texts with a NUL character, or half of a surrogate pair")
    return json.loads(written)


def _json(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> Any:
    return json.loads(json.dumps(said, allow_nan=False))


def _comparisons(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> tuple[Comparison, ...]:
    """What `compare` says of a state, a pod and the rows of a snapshot."""
    n_rows = len(args[2].rows)
    for one in (comparisons := tuple(said)):
        _check_comparison(one, n_rows)
    return comparisons


def _domain_rules(plugin: fw.Plugin, said: Any, args: tuple[Any, ...]) -> tuple[DomainRule, ...]:
    """What is counted by topology domain: arrays of one length."""
    for one in (rules := tuple(said)):
        arrays = (one.counts, one.allowed, one.skew, one.points, one.is_counted)
        if any(array is not None and array.shape != one.counts.shape for array in arrays):
            raise TypeError("arrays of several shapes")
    return rules


def _check_comparison(said: Any, n_rows: int) -> None:
    if not isinstance(said, Comparison):
        raise TypeError(f"{type(said).__name__}, not Comparison")
    amounts = [part for part in said.words if isinstance(part, Amount)]
    columns = [said.fails, *(part.column for part in amounts)]
    if any(not isinstance(column, np.ndarray) or column.shape != (n_rows,) for column in columns):
        raise TypeError(f"columns that are no ndarrays of {n_rows} rows")
    if said.fails.dtype != np.bool_ or any(part.column.dtype.kind not in "biu" for part in amounts):
        raise TypeError("columns that are not of bool and whole numbers")
    units = [(part.unit,) if isinstance(part.unit, str) else part.unit for part in amounts]
    texts = [part for part in said.words if not isinstance(part, Amount)]
    for text in (*texts, *(part.absent for part in amounts), *(text for unit in units for text in unit)):
        wrong = text_problem(text)
        if wrong is not None:
            raise TypeError(f"among its words {wrong}")


_WATCHED: Mapping[str, tuple[str, Any, Clean]] = {
    "sign": ("Filter", _ENDS_THE_CYCLE, _hashable),
    "pre_filter": ("PreFilter", _ENDS_THE_CYCLE, _pre_filter),
    "filter": ("Filter", _ENDS_THE_CYCLE, _verdicts),
    "fork": ("Filter", _ENDS_THE_CYCLE, _anything),
    "add_pods": ("Filter", _ENDS_THE_CYCLE, _anything),
    "remove_pods": ("Filter", _ENDS_THE_CYCLE, _anything),
    "post_filter": ("PostFilter", _ENDS_THE_CYCLE, _post_filter),
    "pre_score": ("PreScore", _ENDS_THE_CYCLE, _pre_score),
    "score": ("Score", _ENDS_THE_CYCLE, _scores),
    "normalize": ("NormalizeScore", _ENDS_THE_CYCLE, _scores),
    "pre_enqueue": ("PreEnqueue", _ENDS_THE_CYCLE, _status),
    "reserve": ("Reserve", _ENDS_THE_CYCLE, _status),
    "permit": ("Permit", _ENDS_THE_CYCLE, _permit),
    "pre_bind": ("PreBind", _ENDS_THE_CYCLE, _status),
    "bind": ("Bind", _ENDS_THE_CYCLE, _status),
    "unreserve": ("Unreserve", None, _anything),
    "wakes": ("Permit", False, _boolean),
    "will_pre_bind": ("PreBind", True, _boolean),
    "take_writes": ("PreBind", (), _manifests),
    "pre_bind_deadline_ns": ("PreBind", None, _moment),
    "post_bind": ("PostBind", None, _anything),
    "devices": ("Filter", None, _document),
    "checkpoint": ("checkpoint", None, _json),
    "restore": ("restore", None, _anything),
}
"""Methods: point, what stands in for an answer where none decides anything, and what an answer must be."""


# ---- the order of the queue


class GuardedOrder:
    """Sort keys of a QueueSort plugin that is not trusted.

    A pod whose key cannot be had, or cannot be compared, stands behind all others, by priority and age; its next cycle
    ends in the error.
    """

    def __init__(self, plugin: fw.QueueSortPlugin, limit: Limit | None = None) -> None:
        self.plugin = plugin
        self.limit = limit or Limit(measure_cpu_ns, 0)
        self._failures: dict[str, str] = {}

    def sort_key(self, queued: fw.QueuedPod) -> _Key:
        self._failures.pop(queued.pod.uid, None)
        key = _Key(self, queued)
        try:
            key.value = self.limit.call(self.plugin.sort_key, queued)
        except FAILURES as error:
            self.note(key, error)
        return key

    def note(self, key: _Key, error: BaseException) -> None:
        key.is_broken = True
        self._failures[key.queued.pod.uid] = str(failure_of(self.plugin, "QueueSort", error))

    def failure(self, uid: str) -> str | None:
        """Report a failure of a popped pod once."""
        return self._failures.pop(uid, None)


class _Key:
    __slots__ = ("is_broken", "order", "queued", "stand_in", "value")

    def __init__(self, order: GuardedOrder, queued: fw.QueuedPod) -> None:
        self.order = order
        self.queued = queued
        self.stand_in = (-queued.pod.priority, queued.timestamp_ns, queued.pod.uid)
        self.value: Any = None
        self.is_broken = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key) or self.is_broken or other.is_broken:
            return self is other
        try:
            return bool(self.order.limit.call(eq, self.value, other.value))
        except FAILURES as error:
            self.order.note(self, error)
            return False

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: _Key) -> bool:
        if not (self.is_broken or other.is_broken):
            try:
                return bool(self.order.limit.call(lt, self.value, other.value))
            except FAILURES as error:
                self.order.note(self, error)
        return (self.is_broken, *self.stand_in) < (other.is_broken, *other.stand_in)
