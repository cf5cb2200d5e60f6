from django.apps import AppConfig


class KubeApiConfig(AppConfig):
    name = "playground.kube_api"
    label = "kube_api"
