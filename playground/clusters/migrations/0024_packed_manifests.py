"""Manifests are stored packed, too. What is there stays as it is and is read as JSON text (`packed.unpack`)."""

import json
from typing import Any

from django.db import migrations

import playground.clusters.packed
from playground.clusters.packed import unpack

MODELS = ("Manifest", "Node", "Pod", "PodDisruptionBudget", "PriorityClass")


def to_bytes(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL has no cast from jsonb to bytea; SQLite's columns take what they are given."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for model in MODELS:
        table = schema_editor.quote_name(apps.get_model("clusters", model)._meta.db_table)
        schema_editor.execute(
            f"ALTER TABLE {table} ALTER COLUMN manifest TYPE bytea USING convert_to(manifest::text, 'UTF8')"
        )


def to_text(apps: Any, schema_editor: Any) -> None:
    """Back to JSON text: what was packed is unpacked first."""
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for model in MODELS:
        table = schema_editor.quote_name(apps.get_model("clusters", model)._meta.db_table)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT id, manifest FROM {table}")
            rows = []
            for pk, value in cursor.fetchall():
                text = json.dumps(unpack(value if isinstance(value, str) else bytes(value)))
                rows.append((text.encode() if is_postgresql else text, pk))
            if rows:
                cursor.executemany(f"UPDATE {table} SET manifest = %s WHERE id = %s", rows)
        if is_postgresql:
            schema_editor.execute(
                f"ALTER TABLE {table} ALTER COLUMN manifest TYPE jsonb"
                " USING convert_from(manifest, 'UTF8')::jsonb"
            )


class AlterFieldHere(migrations.AlterField):
    """As AlterField, where `to_bytes` has not done it already."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0023_binding_lane"),
    ]

    operations = [
        migrations.RunPython(to_bytes, migrations.RunPython.noop),
        AlterFieldHere(
            model_name="manifest",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        AlterFieldHere(
            model_name="node",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        AlterFieldHere(
            model_name="pod",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        AlterFieldHere(
            model_name="poddisruptionbudget",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        AlterFieldHere(
            model_name="priorityclass",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        # Last, so that it is the first on the way back.
        migrations.RunPython(migrations.RunPython.noop, to_text),
    ]
