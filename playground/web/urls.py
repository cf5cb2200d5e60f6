"""Paths of the pages. A page is a view function, a path, a template and a test (README.md)."""

from django.urls import path

from playground.web.views import (
    advice,
    board,
    classes,
    clusters,
    config,
    cycles,
    extenders,
    home,
    objects,
    pods,
    releases,
)

app_name = "web"

urlpatterns = [
    path("", home.home, name="home"),
    path("about/", home.about, name="about"),
    path("new/", clusters.new_blank, name="new-blank"),
    path("new/pools/", clusters.new_pools, name="new-pools"),
    path("new/import/", clusters.new_import, name="new-import"),
    path("c/<slug:cluster_id>/", board.board, name="board"),
    path("c/<slug:cluster_id>/live/", board.live, name="live"),
    path("c/<slug:cluster_id>/ticks/", board.ticks, name="ticks"),
    path("c/<slug:cluster_id>/inspector/", board.inspector, name="inspector"),
    path("c/<slug:cluster_id>/run/", board.run, name="run"),
    path("c/<slug:cluster_id>/clock/", board.clock, name="clock"),
    path("c/<slug:cluster_id>/run/<slug:run_id>/cancel/", board.run_cancel, name="run-cancel"),
    path("c/<slug:cluster_id>/nodes/<str:name>/cordon/", board.cordon, name="cordon"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/permit/", board.permit, name="permit"),
    path("c/<slug:cluster_id>/cycles/", cycles.cycle_list, name="cycles"),
    path("c/<slug:cluster_id>/cycles/<int:number>/", cycles.cycle, name="cycle"),
    path("c/<slug:cluster_id>/pods/", pods.pod_list, name="pods"),
    path("c/<slug:cluster_id>/pods/new/", pods.pod_new, name="pod-new"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/", pods.pod_story, name="pod"),
    path("c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/explain/", advice.explain, name="explain"),
    path(
        "c/<slug:cluster_id>/pods/<str:namespace>/<str:name>/explain/ask/",
        advice.explain_ask,
        name="explain-ask",
    ),
    path("c/<slug:cluster_id>/cycles/<int:number>/why-not/", advice.cycle_why, name="cycle-why"),
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
    path("c/<slug:cluster_id>/objects/<slug:kind>/<str:namespace>/<str:name>/", objects.edit, name="object"),
    path(
        "c/<slug:cluster_id>/objects/<slug:kind>/<str:namespace>/<str:name>/delete/",
        objects.delete,
        name="object-delete",
    ),
    path("c/<slug:cluster_id>/import/", clusters.import_into, name="import"),
    path("c/<slug:cluster_id>/pools/", clusters.pools_into, name="pools"),
    path("c/<slug:cluster_id>/config/", config.config, name="config"),
    path("c/<slug:cluster_id>/config/release/", releases.release, name="release"),
    path("c/<slug:cluster_id>/config/classes/", classes.classes, name="classes"),
    path("c/<slug:cluster_id>/config/extenders/new/", extenders.extender_new, name="extender-new"),
    path("c/<slug:cluster_id>/config/extenders/<slug:extender_id>/", extenders.extender, name="extender"),
    path("c/<slug:cluster_id>/cluster/", clusters.settings, name="settings"),
    path("c/<slug:cluster_id>/cluster/<slug:deed>/", clusters.deed, name="deed"),
    path("c/<slug:cluster_id>/export.yaml", clusters.export, name="export"),
]
