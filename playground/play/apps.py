from django.apps import AppConfig


class PlayConfig(AppConfig):
    name = "playground.play"
    label = "play"

    def ready(self) -> None:
        # Makes ours the current Celery application, so that tasks can be sent by name from anywhere.
        from playground.celery import app
        from playground.play.watch import LaneStep

        app.steps["worker"].add(LaneStep)
