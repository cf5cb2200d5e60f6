"""The tables of a new database, made at once out of data beside each first migration."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.utils.module_loading import import_string

from scheduler_core.schema.tables import table_beside

USUAL = "django.db.models."
"""Where names without a dot are from."""


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


def tables_of(package: str) -> CreateModels:
    """The models that `0001_initial.yaml` describes; `python -m tests.initial_tables` writes it."""
    models = []
    for name, said in table_beside(package, "0001_initial.yaml").items():
        fields, managers = (list(_made(said.get(key, {})).items()) for key in ("fields", "managers"))
        models.append(CreateModel(name, fields, options=_made(said.get("options", {})), managers=managers))
    return CreateModels(models)


def _made(said: Any) -> Any:
    """A value: `is` is the class of an object, `named` something as it is, `setting` a setting of Django's."""
    if isinstance(said, list):
        return [_made(one) for one in said]
    if not isinstance(said, dict):
        return said
    if "setting" in said:
        return getattr(settings, said["setting"])
    if "named" in said:
        return _named(said["named"])
    values = {key: _made(value) for key, value in said.items()}
    if "is" not in values:
        return values
    # What fields, constraints and conditions are given are tuples: of a Q, pairs of a column and its value.
    arguments = _tuples(values.pop("args", ()))
    return _named(values.pop("is"))(*arguments, **dict(zip(values, _tuples(values.values()), strict=True)))


def _tuples(values: Iterable[Any]) -> list[Any]:
    return [tuple(one) if isinstance(one, list) else one for one in values]


def _named(path: str) -> Any:
    return import_string(path if "." in path else USUAL + path)
