"""Everything that writes. Each function is one short transaction under the cluster's lock.

All take keyword arguments only and raise `clusters.errors`; a view or task makes one call.
"""

from playground.clusters.services.actions import Acted, act_on_nodes, act_on_pods
from playground.clusters.services.advance import AdvanceReport, Visit, advance
from playground.clusters.services.apply import (
    AppliedObject,
    ApplyResult,
    IgnoredObject,
    apply_documents,
)
from playground.clusters.services.applying_branches import AppliedBranch, apply_branch, edits_of
from playground.clusters.services.changes import one_change
from playground.clusters.services.config import (
    offer_clock,
    set_assumed_expiry,
    set_clock,
    set_config,
    set_release,
)
from playground.clusters.services.housekeeping import tidy
from playground.clusters.services.lifecycle import (
    clone_cluster,
    create_cluster,
    delete_cluster,
    export_manifests,
    rename_cluster,
    reset_cluster,
)
from playground.clusters.services.mock_answers import answer_as_mock_extender
from playground.clusters.services.mock_extenders import (
    create_mock_extender,
    delete_mock_extender,
    mock_extender_url,
    mock_rules_of,
    mock_rules_throughout,
    serve_mock_extenders,
    update_mock_extender,
    with_extenders_at,
)
from playground.clusters.services.objects import (
    bind_pod,
    create_object,
    delete_object,
    delete_objects,
    evict_pod,
    patch_object,
    replace_object,
    set_cordon,
)
from playground.clusters.services.pools import expand_pool, parse_taint
from playground.clusters.services.runs import (
    cancel_run,
    decide_permit,
    parse_duration_ns,
    request_run,
    unpark_cluster,
)
from playground.clusters.services.traces import recompute_trace, request_trace
from playground.clusters.services.turns import take_turn
from playground.clusters.services.undo import Undone, last_change, undo

__all__ = [
    "Acted",
    "AdvanceReport",
    "AppliedBranch",
    "AppliedObject",
    "ApplyResult",
    "IgnoredObject",
    "Undone",
    "Visit",
    "act_on_nodes",
    "act_on_pods",
    "advance",
    "answer_as_mock_extender",
    "apply_branch",
    "apply_documents",
    "bind_pod",
    "cancel_run",
    "clone_cluster",
    "create_cluster",
    "create_mock_extender",
    "create_object",
    "decide_permit",
    "delete_cluster",
    "delete_mock_extender",
    "delete_object",
    "delete_objects",
    "edits_of",
    "evict_pod",
    "expand_pool",
    "export_manifests",
    "last_change",
    "mock_extender_url",
    "mock_rules_of",
    "mock_rules_throughout",
    "offer_clock",
    "one_change",
    "parse_duration_ns",
    "parse_taint",
    "patch_object",
    "recompute_trace",
    "rename_cluster",
    "replace_object",
    "request_run",
    "request_trace",
    "reset_cluster",
    "serve_mock_extenders",
    "set_assumed_expiry",
    "set_clock",
    "set_config",
    "set_cordon",
    "set_release",
    "take_turn",
    "tidy",
    "undo",
    "unpark_cluster",
    "update_mock_extender",
    "with_extenders_at",
]
