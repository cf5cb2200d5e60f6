"""The first migration of each app as data, written from the models: `python -m tests.initial_tables`."""

import os
from pathlib import Path
from typing import Any

import yaml
from django.utils.functional import Promise

APPS = ("accounts", "clusters", "scenarios")
USUAL = "django.db.models."
FOLDER = Path(__file__).parent.parent / "playground"


def place_of(app: str) -> Path:
    """The file of an app's tables."""
    return FOLDER / app / "migrations" / "0001_initial.yaml"


def tables_of(app: str) -> dict[str, Any]:
    """What `playground.migrating` makes the models of an app of."""
    from django.apps import apps
    from django.db.migrations.state import ModelState

    found = {}
    for model in sorted(apps.get_app_config(app).get_models(), key=lambda one: one.__name__):
        state = ModelState.from_model(model)
        options = {key: _said(value) for key, value in state.options.items() if value not in ([], ())}
        parts = {
            "fields": {name: _field(field) for name, field in state.fields.items()},
            "options": options,
            "managers": {name: _said(manager) for name, manager in state.managers},
        }
        found[state.name] = {key: part for key, part in parts.items() if part}
    return found


def _field(field: Any) -> dict[str, Any]:
    _, path, arguments, known = field.deconstruct()
    return _object(path, arguments, known)


def _object(path: str, arguments: Any, known: dict[str, Any]) -> dict[str, Any]:
    args = {"args": [_said(one) for one in arguments]} if arguments else {}
    return {"is": _short(path), **args, **{key: _said(value) for key, value in known.items()}}


def _said(value: Any) -> Any:
    if setting := getattr(value, "setting_name", ""):
        return {"setting": setting}
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_said(one) for one in value]
    if hasattr(value, "deconstruct"):
        found = value.deconstruct()
        # A manager says first whether it is one of a queryset.
        return _object(found[1], *found[3:]) if len(found) == 5 else _object(*found[-3:])
    if isinstance(value, Promise):  # words of Django's own models, translated late
        return str(value)
    if callable(value):
        return {"named": _short(f"{value.__module__}.{value.__qualname__}")}
    return getattr(value, "value", value)


def _short(path: str) -> str:
    for long in (f"{USUAL}deletion.", f"{USUAL}constraints.", f"{USUAL}indexes.", USUAL):
        if path.startswith(long) and "." not in path.removeprefix(long):
            return path.removeprefix(long)
    return path


def text_of(app: str) -> str:
    """The file's text: a line a field, index and constraint."""
    lines = [
        "# Written by `python -m tests.initial_tables`: what `playground.migrating` makes the tables of."
    ]
    for name, parts in tables_of(app).items():
        lines.append(f"{name}:")
        for key, part in parts.items():
            lines.append(f"  {key}:")
            for inner, value in part.items():
                if isinstance(value, list) and value and isinstance(value[0], dict):
                    lines += [f"    {inner}:", *(f"      - {_line(one)}" for one in value)]
                else:
                    lines.append(f"    {inner}: {_line(value)}")
    return "\n".join(lines) + "\n"


def _line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=100_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")
    django.setup()
    for each in APPS:
        place_of(each).write_text(text_of(each), encoding="utf-8")
