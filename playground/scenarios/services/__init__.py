"""Everything that writes scenarios. Keyword arguments only; refusals are `clusters.errors`."""

from playground.scenarios.services import subjects
from playground.scenarios.services.cancelling import cancel
from playground.scenarios.services.carrying import carried_line, standalone_file
from playground.scenarios.services.comparing import compare_now, delete_comparison, request_comparison
from playground.scenarios.services.errands import run_errand
from playground.scenarios.services.forking import do_next_step, fork, make_from_cluster
from playground.scenarios.services.four_ways import compare_four_ways
from playground.scenarios.services.gallery import open_gallery_scenario, share_gallery, share_lookalike
from playground.scenarios.services.housekeeping import tidy
from playground.scenarios.services.luck import request_luck, run_luck
from playground.scenarios.services.model_checks import check_model_now, request_model_check
from playground.scenarios.services.moments import branch, compute_moments, request_moment
from playground.scenarios.services.optima import request_optimum, solve_optimum
from playground.scenarios.services.proof import (
    keep_whole_cycle,
    record_now,
    request_verification,
    request_whole_cycle,
    verify_now,
)
from playground.scenarios.services.shares import Shared, delete_share, share
from playground.scenarios.services.undoing import undo
from playground.scenarios.services.upgrades import (
    branch_of_upgrade,
    preview_upgrade_now,
    request_upgrade,
    share_upgrade,
)
from playground.scenarios.services.verdicts import end_verdict, share_verdict, verdict_answer, verdict_state

subjects.register()

__all__ = [
    "Shared",
    "branch",
    "branch_of_upgrade",
    "cancel",
    "carried_line",
    "check_model_now",
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
    "preview_upgrade_now",
    "record_now",
    "request_comparison",
    "request_luck",
    "request_model_check",
    "request_moment",
    "request_optimum",
    "request_upgrade",
    "request_verification",
    "request_whole_cycle",
    "run_errand",
    "run_luck",
    "share",
    "share_gallery",
    "share_lookalike",
    "share_upgrade",
    "share_verdict",
    "solve_optimum",
    "standalone_file",
    "tidy",
    "undo",
    "verdict_answer",
    "verdict_state",
    "verify_now",
]
