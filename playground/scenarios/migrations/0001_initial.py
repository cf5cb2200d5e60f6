"""The tables of scenarios."""

from django.conf import settings
from django.db import migrations

from playground.migrating import tables_of


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("clusters", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [tables_of("playground.scenarios.migrations")]
