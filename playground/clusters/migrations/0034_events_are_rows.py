import django.db.models.deletion
import playground.clusters.packed
from django.db import migrations, models


def drop_entries_of_events(apps, schema_editor):
    """Each was written twice; the row, of the same number, stays."""
    entries = apps.get_model("clusters", "LogEntry").objects.using(schema_editor.connection.alias)
    entries.filter(kind="event").delete()


class TextToBytes(migrations.AlterField):
    """Hexadecimal text becomes bytes on PostgreSQL; SQLite keeps each value as it is, and both are read."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        self._alter("decode", "bytea", app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        self._alter("encode", "varchar(64)", app_label, schema_editor, from_state, to_state)

    def _alter(self, how, type_, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        schema_editor.execute(
            f"ALTER TABLE {app_label}_{self.model_name_lower} "
            f"ALTER COLUMN {self.name} TYPE {type_} USING {how}({self.name}, 'hex')"
        )


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0033_foreign_decisions'),
    ]

    operations = [
        migrations.RunPython(drop_entries_of_events, migrations.RunPython.noop),
        migrations.RemoveConstraint(
            model_name='logentry',
            name='log_kind_known',
        ),
        migrations.RemoveField(
            model_name='event',
            name='message',
        ),
        migrations.RemoveField(
            model_name='event',
            name='uid',
        ),
        TextToBytes(
            model_name='cycle',
            name='digest',
            field=playground.clusters.packed.HexField(),
        ),
        migrations.AlterField(
            model_name='logentry',
            name='kind',
            field=models.CharField(choices=[('write', 'Write'), ('delete', 'Delete'), ('permit', 'Permit'), ('config', 'Config'), ('clock', 'Clock'), ('expiry', 'Expiry'), ('extender', 'Extender'), ('ran', 'Ran')], max_length=12),
        ),
        migrations.AlterField(
            model_name='pod',
            name='cluster',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pods', to='clusters.cluster'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['cluster', 'resource_version'], name='event_seq'),
        ),
        migrations.AddConstraint(
            model_name='logentry',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['write', 'delete', 'permit', 'config', 'clock', 'expiry', 'extender', 'ran'])), name='log_kind_known'),
        ),
    ]
