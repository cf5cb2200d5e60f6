"""`alwaysCheckAllPredicates`: what every filter says of a node, not only the first that rejects it.

Source: pkg/scheduler/framework/runtime/framework.go RunFilterPlugins (runAllFilters), v1.22, the last to have it
"""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.failure import filter_failure
from scheduler_core.framework.filtering import Filtering
from scheduler_core.framework.status import Code


def hear_all_filters(attempt: Filtering) -> None:
    """Give every rejected row the reasons of all filters that reject it, in `Attempt.explicit`.

    A row that cannot be helped by preemption in the eyes of one of them cannot be at all. Rows whose words come
    from beside nominated pods keep them.

    Raises
    ------
    PluginFailure
    """
    places = np.flatnonzero(attempt.stop < len(attempt.framework.filter))
    places = places[[int(row) not in attempt.explicit for row in attempt.rows[places].tolist()]]
    if not len(places):
        return
    pod, nodes, rows = attempt.pod, attempt.snapshot.nodes, attempt.rows[places]
    said: list[list[tuple[str, Code, tuple[str, ...]]]] = [[] for _ in places]
    for _, plugin in attempt.framework.filters.active(attempt.skipped_filters):
        state = attempt.filter_states.get(plugin.name)
        try:
            verdicts = plugin.filter(state, pod, nodes, rows)
            for index in np.flatnonzero(verdicts.codes).tolist():
                code = Code(int(verdicts.codes[index]))
                detail = 0 if verdicts.details is None else int(verdicts.details[index])
                reasons = tuple(plugin.reasons(state, pod, nodes, int(rows[index]), code, detail))
                said[index].append((plugin.name, code, reasons))
        except Exception as error:
            raise filter_failure(error) from error
    attempt.own_verdicts()
    for place, row, words in zip(places.tolist(), rows.tolist(), said, strict=True):
        codes = [code for _, code, _ in words]
        hopeless = Code.UnschedulableAndUnresolvable
        code = hopeless if hopeless in codes else codes[0]
        attempt.code[place] = code
        attempt.explicit[row] = (
            words[0][0],
            code,
            tuple(reason for _, _, given in words for reason in given),
        )
        attempt.also_rejecting.update(dict.fromkeys(name for name, _, _ in words))
