"""Where mock extenders answer."""

from django.urls import path

from playground.clusters.mock_extender import views

app_name = "mock_extender"
urlpatterns = [path("<slug:public_id>/<slug:verb>", views.answer, name="answer")]
