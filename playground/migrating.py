"""The tables of a new database, made at once."""

from collections.abc import Sequence
from typing import Any

from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation


class CreateModels(Operation):
    """Several `CreateModel`s, whose models are rendered once.

    Django renders a model and all that are related to it anew with each operation: of sixty models that all know a
    cluster or a user, that is three quarters of the time a new database takes.
    """

    def __init__(self, models: Sequence[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: Any) -> None:
        # What is rendered is made again from the state where it is asked for: after the last of them.
        vars(state).pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "Create the models " + ", ".join(model.name for model in self.models)
