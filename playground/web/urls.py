"""Paths of the pages. A page is a view function, a path, a template and a test (README.md)."""

from django.urls import path

from playground.web import devices, home, judge, manual
from playground.web.board import views as board
from playground.web.clusters import views as clusters
from playground.web.config import classes
from playground.web.config import views as config
from playground.web.cycles import views as cycles
from playground.web.objects import views as objects
from playground.web.pods import views as pods
from playground.web.questions import plans
from playground.web.questions import views as advice

app_name = "web"

urlpatterns = [
    path("", home.home, name="home"),
    path("watch/", home.watch, name="watch"),
    path("about/", home.about, name="about"),
    path("manual/", manual.page, name="manual"),
    path("manual/<slug:name>/", manual.page, name="manual-chapter"),
    path("find/", home.in_site, name="find-all"),
    path("c/<slug:cluster_id>/find/", home.in_cluster, name="find"),
    path("new/", clusters.new_blank, name="new-blank"),
    path("new/pools/", clusters.new_pools, name="new-pools"),
    path("new/import/", clusters.new_import, name="new-import"),
    path("new/import/<slug:draft_id>/", clusters.draft, name="draft"),
    path("new/import/<slug:draft_id>/cancel/", clusters.draft_cancel, name="draft-cancel"),
    path("c/<slug:cluster_id>/", board.board, name="board"),
    path("c/<slug:cluster_id>/live/", board.live, name="live"),
    path("c/<slug:cluster_id>/ticks/", board.ticks, name="ticks"),
    path("c/<slug:cluster_id>/inspector/", board.inspector, name="inspector"),
    path("c/<slug:cluster_id>/run/", board.run, name="run"),
    path("c/<slug:cluster_id>/clock/", board.clock, name="clock"),
    path("c/<slug:cluster_id>/run/<slug:run_id>/cancel/", board.run_cancel, name="run-cancel"),
    path("c/<slug:cluster_id>/nodes/<str:name>/cordon/", board.cordon, name="cordon"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/permit/", board.permit, name="permit"),
    path("c/<slug:cluster_id>/difference/", clusters.difference, name="difference"),
    path("c/<slug:cluster_id>/apply-to-parent/", clusters.apply, name="apply-branch"),
    path("c/<slug:cluster_id>/changes/", objects.changes, name="changes"),
    path("c/<slug:cluster_id>/undo/", objects.undo, name="undo"),
    path("c/<slug:cluster_id>/act/", objects.act, name="act"),
    path("c/<slug:cluster_id>/nodes/", objects.node_list, name="nodes"),
    path("c/<slug:cluster_id>/cycles/", cycles.cycle_list, name="cycles"),
    path("c/<slug:cluster_id>/cycles/<int:number>/", cycles.cycle, name="cycle"),
    path("c/<slug:cluster_id>/pods/", pods.pod_list, name="pods"),
    path("c/<slug:cluster_id>/groups/<str:namespace>/<str:name>/", pods.group, name="group"),
    path("c/<slug:cluster_id>/pods/new/", pods.pod_new, name="pod-new"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/", pods.pod_story, name="pod"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/explain/", advice.explain, name="explain"),
    path(
        "c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/explain/ask/",
        advice.explain_ask,
        name="explain-ask",
    ),
    path("c/<slug:cluster_id>/cycles/<int:number>/why-not/", advice.cycle_why, name="cycle-why"),
    path("c/<slug:cluster_id>/cycles/<int:number>/devices/", devices.cycle_devices, name="cycle-devices"),
    path("c/<slug:cluster_id>/cycles/<int:number>/weights/", advice.weights, name="weights"),
    path("c/<slug:cluster_id>/try/", advice.try_pod, name="try"),
    path("c/<slug:cluster_id>/luck/", advice.luck, name="luck"),
    path("c/<slug:cluster_id>/questions/<slug:question_id>/", advice.question, name="question"),
    path(
        "c/<slug:cluster_id>/questions/<slug:question_id>/cancel/",
        advice.question_cancel,
        name="question-cancel",
    ),
    path("c/<slug:cluster_id>/questions/<slug:question_id>/branch/", advice.branch, name="edit-branch"),
    path("c/<slug:cluster_id>/plan/", plans.overview, name="plan"),
    path("c/<slug:cluster_id>/plan/<slug:question_id>/", plans.answer, name="plan-answer"),
    path("c/<slug:cluster_id>/plan/<slug:question_id>/branch/", plans.branch, name="plan-branch"),
    path("c/<slug:cluster_id>/plan/<slug:question_id>/share/", plans.share, name="plan-share"),
    path("v/<slug:verdict_id>/", plans.verdict, name="verdict"),
    path("v/<slug:verdict_id>/answer.json", plans.verdict_answer, name="verdict-answer"),
    path("v/<slug:verdict_id>/cluster.json", plans.verdict_cluster, name="verdict-cluster"),
    path("v/<slug:verdict_id>/end/", plans.verdict_end, name="verdict-end"),
    path("c/<slug:cluster_id>/objects/", objects.held, name="objects"),
    path("c/<slug:cluster_id>/objects/<str:kind>/", objects.of_kind, name="objects-of-kind"),
    path("c/<slug:cluster_id>/objects/<str:kind>/<str:namespace>/<str:name>/", objects.edit, name="object"),
    path(
        "c/<slug:cluster_id>/objects/<str:kind>/<str:namespace>/<str:name>/delete/",
        objects.delete,
        name="object-delete",
    ),
    path("c/<slug:cluster_id>/load/<str:kind>/<str:namespace>/<str:name>/", objects.load, name="load"),
    path("c/<slug:cluster_id>/import/", clusters.import_into, name="import"),
    path("c/<slug:cluster_id>/pools/", clusters.pools_into, name="pools"),
    path("c/<slug:cluster_id>/config/", config.config, name="config"),
    path("c/<slug:cluster_id>/config/release/", config.release, name="release"),
    path("c/<slug:cluster_id>/config/rules/", config.rule_page, name="rules"),
    path("c/<slug:cluster_id>/config/classes/", classes.classes, name="classes"),
    path("c/<slug:cluster_id>/config/extenders/new/", config.extender_new, name="extender-new"),
    path("c/<slug:cluster_id>/config/extenders/<slug:extender_id>/", config.extender, name="extender"),
    path("c/<slug:cluster_id>/schedulers/", judge.schedulers, name="schedulers"),
    path("c/<slug:cluster_id>/judge/", judge.judge, name="judge"),
    path("c/<slug:cluster_id>/judge/<int:seq>/<slug:kind>/", judge.decision, name="judged"),
    path("c/<slug:cluster_id>/cluster/", clusters.settings, name="settings"),
    path("c/<slug:cluster_id>/cluster/<slug:action>/", clusters.action, name="cluster-action"),
    path("c/<slug:cluster_id>/export.yaml", clusters.export, name="export"),
]
