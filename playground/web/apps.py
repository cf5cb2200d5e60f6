"""The pages."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "playground.web"
    label = "web"
    verbose_name = "Pages"
