"""Paths of the scenario pages."""

from django.urls import path

from playground.web.scenarios import (
    comparisons,
    elsewhere,
    gallery,
    making,
    questions,
    replay,
    shares,
)
from playground.web.scenarios.sharing import wants_login

app_name = "scenarios"

urlpatterns = [
    path("s/", shares.mine, name="mine"),
    path("s/new/", shares.new, name="new"),
    path("open/", elsewhere.open_link, name="open"),
    path("s/<slug:share_id>.html", elsewhere.saved, name="saved"),
    path("s/<slug:share_id>.yaml", shares.raw, name="raw"),
    path("oembed/", elsewhere.oembed, name="oembed"),
    path("s/<slug:share_id>/", shares.page, name="page"),
    path("s/<slug:share_id>", shares.page),
    path("s/<slug:share_id>/embed/", elsewhere.embed, name="embed"),
    path("s/<slug:share_id>/link/", elsewhere.link, name="link"),
    path("s/<slug:share_id>/proof/", shares.proof, name="proof"),
    path("s/<slug:share_id>/verify/", shares.verify, name="verify"),
    path("s/<slug:share_id>/fork/", shares.fork, name="fork"),
    path("s/<slug:share_id>/branch/", shares.branch, name="branch"),
    path("s/<slug:share_id>/delete/", shares.delete, name="delete"),
    path("s/<slug:share_id>/optimum/", wants_login(questions.OPTIMUM.of_scenario()), name="optimum"),
    path("s/<slug:share_id>/upgrade/", questions.UPGRADE.of_scenario(), name="upgrade"),
    path("s/<slug:share_id>/model/", questions.MODEL.of_scenario(), name="model"),
    path("s/<slug:share_id>/luck/", questions.LUCK.of_scenario(), name="luck"),
    path("s/<slug:share_id>/cycles/<int:number>/", shares.cycle, name="cycle"),
    path("s/<slug:share_id>/cycles/<int:number>/whole/", shares.whole_cycle, name="whole-cycle"),
    path("gallery/", gallery.gallery, name="gallery"),
    path("gallery/gpu/four-ways/", comparisons.four_ways_page, name="four-ways"),
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
    path("c/<slug:cluster_id>/upgrade/", questions.UPGRADE.of_cluster(), name="cluster-upgrade"),
    path("c/<slug:cluster_id>/model/", questions.MODEL.of_cluster(), name="cluster-model"),
    path("c/<slug:cluster_id>/optimum/", questions.OPTIMUM.of_cluster(), name="cluster-optimum"),
]
