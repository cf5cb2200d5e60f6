"""Every action of every page is an operation.

A new page that takes POST needs a line in `PAGES`, a service that pages call needs to be called by this API's views or
a line in `ELSEWHERE`: the operation that does it, or why there is none.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from inspect import Parameter, isfunction, ismodule, signature
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from playground.api.documentation import METHODS, document

ROOT = Path(__file__).resolve().parents[2] / "playground"


class NoOperation(str):
    """Why an action of a page is none of a program."""


BROWSER = NoOperation("a login, its session and its password are a browser's; programs have tokens")
MAIL = NoOperation(
    "passwords and addresses are changed with the password at hand, which programs are not given"
)

PAGES: dict[str, tuple[str, ...] | NoOperation] = {
    "web:watch": ("clusters_create",),
    "web:new-blank": ("clusters_create",),
    "web:new-pools": ("clusters_create", "clusters_add_nodes"),
    "web:new-import": ("drafts_create", "drafts_commit", "clusters_create", "clusters_apply"),
    "web:draft-cancel": ("drafts_discard",),
    "web:draft-commit": ("drafts_commit",),
    "web:undo": ("changes_undo",),
    "web:act": ("actions_do",),
    "web:run": ("runs_start",),
    "web:clock": ("clock_write",),
    "web:run-cancel": ("runs_cancel",),
    "web:cordon": ("nodes_patch",),
    "web:permit": ("permits_decide", "runs_start"),
    "web:group": ("groups_ask",),
    "web:pod-new": ("pods_create", "clusters_apply", "clusters_try"),
    "web:fix": ("clusters_fix", "pods_why_not"),
    "web:fix-all": ("clusters_fix",),
    "web:cycle-why": ("cycles_why_not",),
    "web:weights": ("cycles_weights",),
    "web:try": ("clusters_try",),
    "web:luck": ("clusters_seeds",),
    "web:question-cancel": ("questions_cancel",),
    "web:edit-branch": ("questions_branch",),
    "web:plan": ("clusters_plan",),
    "web:plan-branch": ("questions_branch",),
    "web:plan-share": ("plan_share",),
    "web:verdict-end": ("verdicts_delete",),
    "web:apply-branch": ("branches_apply",),
    "web:object": ("objects_replace",),
    "web:object-delete": ("objects_delete",),
    "web:load": ("objects_patch",),
    "web:import": ("clusters_apply",),
    "web:pools": ("clusters_add_nodes",),
    "web:config": ("config_write", "config_convert", "config_default", "extender_hosts_allow", "extender_hosts_forbid",
                   "assumed_pods_write"),
    "web:release": ("release_write",),
    "web:rules": ("rules_write", "rules_delete", "clusters_try_rule"),
    "web:classes": ("priorityclasses_create", "priorityclasses_patch", "poddisruptionbudgets_create",
                    "poddisruptionbudgets_patch"),
    "web:extender-new": ("mock_extenders_create", "config_write"),
    "web:extender": ("mock_extenders_write", "mock_extenders_delete"),
    "web:cluster-action": ("clusters_rename", "clusters_clone", "clusters_reset", "clusters_delete", "clusters_unpark",
                 "job_duration_write"),
    "scenarios:open": ("scenarios_share",),
    "scenarios:new": ("scenarios_share",),
    "scenarios:verify": ("scenarios_verify",),
    "scenarios:fork": ("scenarios_fork",),
    "scenarios:branch": ("scenarios_branch",),
    "scenarios:delete": ("scenarios_delete",),
    "scenarios:optimum": ("scenarios_optimum_find", "scenarios_optimum_cancel"),
    "scenarios:upgrade": ("scenarios_upgrade_preview", "scenarios_upgrade_cancel", "scenarios_upgrade_share",
                          "scenarios_upgrade_branch"),
    "scenarios:model": ("scenarios_model_check", "scenarios_model_cancel"),
    "scenarios:luck": ("scenarios_luck_run", "scenarios_luck_cancel"),
    "scenarios:whole-cycle": ("scenarios_whole_cycle",),
    "scenarios:gallery-large": ("gallery_make_large",),
    "scenarios:gallery-open": ("gallery_open",),
    "scenarios:compare-ask": ("comparisons_create",),
    "scenarios:compare-delete": ("comparisons_delete",),
    "scenarios:replay-branch": ("clusters_branch",),
    "scenarios:share": ("clusters_scenario_share", "comparisons_create"),
    "scenarios:next-step": ("steps_next",),
    "scenarios:cluster-upgrade": ("clusters_upgrade_preview", "clusters_upgrade_cancel", "clusters_upgrade_share",
                                  "clusters_upgrade_branch"),
    "scenarios:cluster-model": ("clusters_model_check", "clusters_model_cancel"),
    "scenarios:cluster-optimum": ("clusters_optimum_find", "clusters_optimum_cancel"),
    "accounts:account": ("tokens_create",),
    "accounts:token-delete": ("tokens_delete",),
    "accounts:login": BROWSER,
    "accounts:logout": BROWSER,
    "accounts:session-end": BROWSER,
    "accounts:sessions-end": BROWSER,
    "accounts:password": MAIL,
    "accounts:email": MAIL,
    "accounts:reset": MAIL,
    "accounts:reset-confirm": MAIL,
    "accounts:people-reset": MAIL,
    "accounts:invitation": NoOperation("it makes an account, or adds one that is logged in"),
    "accounts:team-new": ("teams_create",),
    "accounts:team-invite": ("teams_invite",),
    "accounts:team-member": ("teams_set_member", "teams_remove_member"),
    "accounts:team-withdraw": ("teams_invitations_withdraw",),
    "accounts:people-invite": ("people_invite",),
    "accounts:people-withdraw": ("people_invitations_withdraw",),
    "accounts:people-action": ("people_set_active",),
}  # fmt: skip

ELSEWHERE: dict[str, tuple[str, ...] | NoOperation] = {
    "set_cordon": ("nodes_patch",),
    "create_demo": ("clusters_create",),
    "start_import": ("drafts_commit",),
    "cancel_draft": ("drafts_discard",),
    "expect_questions": NoOperation("has a worker made ready where a person is about to ask"),
}
"""Services that pages call and this API's views do not."""


def operation_ids() -> set[str]:
    return {
        item[method]["operationId"]
        for item in document()["paths"].values()
        for method in METHODS
        if method in item
    }


def pages() -> Iterator[tuple[str, Any]]:
    """Name and view of every path of the pages."""

    def walk(patterns: list[Any], app: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, pattern.app_name or app)
            elif isinstance(pattern, URLPattern) and app in ("web", "scenarios", "accounts") and pattern.name:
                yield f"{app}:{pattern.name}", pattern.callback

    yield from walk(get_resolver().url_patterns, "")


def posted_to() -> set[str]:
    return {name for name, view in pages() if "POST" in getattr(view, "methods", ())}


def test_every_page_that_takes_an_action_names_its_operations() -> None:
    assert posted_to() - set(PAGES) == set(), (
        "a page's action without an operation: add one, and a line to PAGES"
    )
    assert set(PAGES) - posted_to() == set(), "PAGES names what is no page any more"


def test_the_operations_named_are_there() -> None:
    known = operation_ids()
    for table in (PAGES, ELSEWHERE):
        for name, told in table.items():
            if not isinstance(told, NoOperation):
                assert set(told) <= known and told, (name, set(told) - known)


def services_called(folder: Path) -> dict[str, str]:
    """Services that a folder's modules call -> one of these modules.

    What changes something is handed everything by name, which tells it from what only reads.
    """
    found = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        here: dict[str, Any] = {}
        for node in ast.walk(tree):
            module_name = getattr(node, "module", None) or ""
            # Types of rows are there for a type checker alone.
            if module_name.startswith(ROOMS) and not module_name.endswith("row_types"):
                for alias in node.names:  # type: ignore[attr-defined]  # of an import
                    here[alias.asname or alias.name] = pkgutil.resolve_name(f"{module_name}.{alias.name}")
        for node in ast.walk(tree):
            called = None
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = here.get(node.value.id)
                called = getattr(module, node.attr, None) if ismodule(module) else None
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                called = here.get(node.id)
            if isfunction(called):
                kinds = [one.kind for one in signature(called).parameters.values()]
                if kinds and kinds[0] is Parameter.KEYWORD_ONLY:
                    found[called.__name__] = path.name
    return found


ROOMS = ("playground.clusters", "playground.scenarios")


def test_every_service_of_the_pages_is_called_here_too() -> None:
    ours = services_called(ROOT / "api" / "views")
    theirs = services_called(ROOT / "web")
    missing = {name: where for name, where in theirs.items() if name not in ours}
    assert missing.keys() == ELSEWHERE.keys(), missing


@pytest.mark.parametrize(
    "code",
    [
        "from playground.clusters.lifecycle import delete_cluster\ndelete_cluster()\n",
        "from playground.clusters import lifecycle\nlifecycle.delete_cluster()\n",
    ],
)
def test_a_service_that_only_pages_call_is_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(code)
    assert "delete_cluster" in services_called(tmp_path)
