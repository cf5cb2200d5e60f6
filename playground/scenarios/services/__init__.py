"""Everything that writes scenarios. Keyword arguments only; refusals are `clusters.errors`."""

from playground.scenarios.services.comparing import compare_now, delete_comparison, request_comparison
from playground.scenarios.services.forking import do_next_step, fork, make_from_cluster, undo
from playground.scenarios.services.gallery import (
    compare_four_ways,
    open_gallery_scenario,
    share_gallery,
    share_lookalike,
)
from playground.scenarios.services.moments import branch, compute_moments, request_moment
from playground.scenarios.services.proof import (
    keep_whole_cycle,
    record_now,
    request_verification,
    request_whole_cycle,
    verify_now,
)
from playground.scenarios.services.questions import branch_of_upgrade, share_upgrade
from playground.scenarios.services.shares import Shared, carried_line, delete_share, share, standalone_file
from playground.scenarios.services.storage import tidy
from playground.scenarios.services.verdicts import end_verdict, share_verdict

__all__ = [
    "Shared",
    "branch",
    "branch_of_upgrade",
    "carried_line",
    "compare_four_ways",
    "compare_now",
    "compute_moments",
    "delete_comparison",
    "delete_share",
    "do_next_step",
    "end_verdict",
    "fork",
    "keep_whole_cycle",
    "make_from_cluster",
    "open_gallery_scenario",
    "record_now",
    "request_comparison",
    "request_moment",
    "request_verification",
    "request_whole_cycle",
    "share",
    "share_gallery",
    "share_lookalike",
    "share_upgrade",
    "share_verdict",
    "standalone_file",
    "tidy",
    "undo",
    "verify_now",
]
