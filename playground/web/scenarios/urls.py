"""Paths of the scenario pages."""

from django.urls import path

from playground.web.scenarios import (
    comparisons,
    four_ways,
    gallery,
    luck,
    making,
    model_checks,
    optima,
    replay,
    shares,
    upgrades,
)

app_name = "scenarios"

urlpatterns = [
    path("s/", shares.mine, name="mine"),
    path("s/new/", shares.new, name="new"),
    path("s/<slug:share_id>.yaml", shares.raw, name="raw"),
    path("s/<slug:share_id>.svg", shares.picture, name="picture"),
    path("s/<slug:share_id>/", shares.page, name="page"),
    path("s/<slug:share_id>", shares.page),
    path("s/<slug:share_id>/embed/", shares.embed, name="embed"),
    path("s/<slug:share_id>/proof/", shares.proof, name="proof"),
    path("s/<slug:share_id>/verify/", shares.verify, name="verify"),
    path("s/<slug:share_id>/fork/", shares.fork, name="fork"),
    path("s/<slug:share_id>/branch/", shares.branch, name="branch"),
    path("s/<slug:share_id>/delete/", shares.delete, name="delete"),
    path("s/<slug:share_id>/optimum/", optima.of_scenario, name="optimum"),
    path("s/<slug:share_id>/upgrade/", upgrades.of_scenario, name="upgrade"),
    path("s/<slug:share_id>/model/", model_checks.of_scenario, name="model"),
    path("s/<slug:share_id>/luck/", luck.luck, name="luck"),
    path("s/<slug:share_id>/cycles/<int:number>/", shares.cycle, name="cycle"),
    path("s/<slug:share_id>/cycles/<int:number>/whole/", shares.whole_cycle, name="whole-cycle"),
    path("gallery/", gallery.gallery, name="gallery"),
    path("gallery/gpu/four-ways/", four_ways.page, name="four-ways"),
    path("differs/", gallery.differs, name="differs"),
    path("gallery/at-scale/make/", gallery.make_large, name="gallery-large"),
    path("gallery/<slug:name>/", gallery.show, name="gallery-show"),
    path("gallery/<slug:name>/open/", gallery.open_one, name="gallery-open"),
    path("compare/", comparisons.ask, name="compare-ask"),
    path("compare/<slug:comparison_id>/", comparisons.page, name="compare"),
    path("compare/<slug:comparison_id>/delete/", comparisons.delete, name="compare-delete"),
    path("c/<slug:cluster_id>/replay/", replay.replay, name="replay"),
    path("c/<slug:cluster_id>/replay/branch/", replay.branch, name="replay-branch"),
    path("c/<slug:cluster_id>/share/", making.share, name="share"),
    path("c/<slug:cluster_id>/share/step/", making.next_step, name="next-step"),
    path("c/<slug:cluster_id>/upgrade/", upgrades.of_cluster, name="cluster-upgrade"),
    path("c/<slug:cluster_id>/model/", model_checks.of_cluster, name="cluster-model"),
    path("c/<slug:cluster_id>/optimum/", optima.of_cluster, name="cluster-optimum"),
]
