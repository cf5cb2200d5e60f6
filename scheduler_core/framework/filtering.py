"""What the parts of an attempt see of it: kept answers, worlds of rows, and reasons of all filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.filter_group import FilterGroup
from scheduler_core.framework.interface import FilterPlugin
from scheduler_core.framework.nominated_pods import NominatedPods
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod


class ProfileFilters(Protocol):
    """Filter plugins of a profile, in order."""

    @property
    def filter(self) -> Sequence[FilterPlugin[Any]]: ...
    @property
    def filters(self) -> FilterGroup: ...


class Filtering(Protocol):
    """One pod's way through the filters of a profile (`Attempt`)."""

    @property
    def framework(self) -> ProfileFilters: ...
    @property
    def pod(self) -> Pod: ...
    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def filter_states(self) -> Mapping[str, Any]: ...
    @property
    def skipped_filters(self) -> dict[str, None]: ...
    @property
    def rows(self) -> Rows: ...
    @property
    def stop(self) -> NDArray[np.int8]: ...
    @property
    def code(self) -> NDArray[np.int8]: ...
    @property
    def explicit(self) -> dict[int, tuple[str, Code, tuple[str, ...]]]: ...
    @property
    def also_rejecting(self) -> dict[str, None]: ...

    def own_verdicts(self) -> None: ...

    def passes_spec(self, rows: Rows) -> NDArray[np.bool_]: ...

    def nominated_pods(self) -> NominatedPods | None: ...
