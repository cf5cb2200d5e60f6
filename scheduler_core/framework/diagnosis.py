"""The words Kubernetes finds for a pod that fits nowhere.

Source: pkg/scheduler/framework/types.go FitError, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.attempt import Attempt

NO_NODES = "no nodes available to schedule pods"


def fit_error(attempt: Attempt) -> str:
    """`0/3 nodes are available: ...`, without what PostFilter has to add."""
    n_nodes = len(attempt.snapshot.order)
    message = f"0/{n_nodes} nodes are available:"
    if not attempt.pre_filter_status.is_success:
        words = attempt.pre_filter_status.message
        return f"{message} {words}." if words else message
    counts = attempt.reason_counts()
    n_outside = n_nodes - attempt.n_statuses
    if n_outside > 0 and attempt.node_names is not None:
        reason = attempt.absent_reason
        counts[reason] = counts.get(reason, 0) + n_outside
    if not counts:
        return message
    # Sorted as strings, counts and all: "10 ..." stands before "7 ...".
    return f"{message} {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."


def with_post_filter(message: str, post_filter_message: str) -> str:
    """The text of the event and the pod's condition: the fit error, then what PostFilter said."""
    return f"{message} {post_filter_message}" if post_filter_message else message
