"""The tables of clusters."""

from django.conf import settings
from django.db import migrations

from playground.migrating import tables_of


def leave_room(apps, schema_editor):
    """Rows that change with every batch leave room on their pages on PostgreSQL."""
    if schema_editor.connection.vendor == "postgresql":
        for table in ("metric", "cluster", "run", "lanepulse"):
            schema_editor.execute(f"ALTER TABLE clusters_{table} SET (fillfactor = 35)")


class Migration(migrations.Migration):
    initial = True

    dependencies = [("accounts", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        tables_of("playground.clusters.migrations"),
        migrations.RunPython(leave_room, migrations.RunPython.noop),
    ]
