"""A cycle's row says in columns what its sentence said; log entries and Events are stored packed.

What is there is not written again: JSON text stays as it is and is read as such (`packed.unpack`), and sentences of
before stay in `sentence_then`.
"""

import json
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import playground.clusters.packed
from playground.clusters.packed import unpack


def to_bytes(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL has no cast from jsonb to bytea; SQLite's columns take what they are given."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for model, name in (("LogEntry", "payload"), ("Event", "manifest")):
        table = schema_editor.quote_name(apps.get_model("clusters", model)._meta.db_table)
        schema_editor.execute(
            f"ALTER TABLE {table} ALTER COLUMN {name} TYPE bytea USING convert_to({name}::text, 'UTF8')"
        )


def to_text(apps: Any, schema_editor: Any) -> None:
    """Back to JSON text: what was packed is unpacked first."""
    for model, name in (("LogEntry", "payload"), ("Event", "manifest")):
        table = schema_editor.quote_name(apps.get_model("clusters", model)._meta.db_table)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT id, {name} FROM {table}")
            rows = [(json.dumps(unpack(_bytes(value))), pk) for pk, value in cursor.fetchall()]
            if schema_editor.connection.vendor == "postgresql":
                rows = [(text.encode(), pk) for text, pk in rows]
            cursor.executemany(f"UPDATE {table} SET {name} = %s WHERE id = %s", rows)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(
                f"ALTER TABLE {table} ALTER COLUMN {name} TYPE jsonb USING convert_from({name}, 'UTF8')::jsonb"
            )


def _bytes(value: Any) -> bytes | str:
    return value if isinstance(value, str) else bytes(value)


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
        ("clusters", "0017_creators"),
    ]

    operations = [
        migrations.RunPython(to_bytes, migrations.RunPython.noop),
        migrations.RemoveIndex(
            model_name="cycle",
            name="cycle_outcome_number",
        ),
        migrations.RenameField(
            model_name="cycle",
            old_name="sentence",
            new_name="sentence_then",
        ),
        migrations.AddField(
            model_name="cycle",
            name="best_total",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cycle",
            name="failed_plugin",
            field=models.CharField(blank=True, default="", max_length=253),
        ),
        migrations.AddField(
            model_name="cycle",
            name="failed_point",
            field=models.CharField(blank=True, default="", max_length=20),
        ),
        migrations.AddField(
            model_name="cycle",
            name="n_evaluated",
            field=models.IntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cycle",
            name="n_victims",
            field=models.IntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cycle",
            name="nominated_node",
            field=models.CharField(blank=True, default="", max_length=253),
        ),
        migrations.AlterField(
            model_name="cycle",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="cycles",
                to="clusters.cluster",
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="clusters.cluster",
            ),
        ),
        AlterFieldHere(
            model_name="event",
            name="manifest",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        migrations.AlterField(
            model_name="logentry",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="log",
                to="clusters.cluster",
            ),
        ),
        AlterFieldHere(
            model_name="logentry",
            name="payload",
            field=playground.clusters.packed.PackedJSONField(),
        ),
        migrations.AddIndex(
            model_name="cycle",
            index=models.Index(
                condition=models.Q(("outcome", "bound"), _negated=True),
                fields=["cluster", "outcome", "number"],
                name="cycle_outcome_number",
            ),
        ),
        migrations.RemoveIndex(model_name="logentry", name="log_source_seq"),
        migrations.AddIndex(
            model_name="logentry",
            index=models.Index(
                condition=models.Q(("source", "api")),
                fields=["cluster", "source", "seq"],
                name="log_source_seq",
            ),
        ),
        migrations.AddIndex(
            model_name="cycle",
            index=models.Index(
                condition=models.Q(("n_viable__gt", 1)),
                fields=["cluster", "number"],
                name="cycle_tied_number",
            ),
        ),
        # Last, so that it is the first on the way back.
        migrations.RunPython(migrations.RunPython.noop, to_text),
    ]
