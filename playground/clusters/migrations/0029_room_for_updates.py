"""Rows that change with every batch leave room on their pages, so that PostgreSQL puts the new version beside the old.

Without it each batch appends as many rows as there are metrics, and as many index entries, until the next vacuum.
"""

from typing import Any

from django.db import migrations

TABLES = ("clusters_metric", "clusters_clustermetric", "clusters_cluster", "clusters_run", "clusters_lanepulse")


def leave_room(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table in TABLES:
            schema_editor.execute(f"ALTER TABLE {table} SET (fillfactor = 35)")


def fill_up(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table in TABLES:
            schema_editor.execute(f"ALTER TABLE {table} RESET (fillfactor)")


class Migration(migrations.Migration):
    dependencies = [("clusters", "0028_binding_outcome_and_expiry")]

    operations = [migrations.RunPython(leave_room, fill_up)]
