"""The tables of accounts."""

from django.db import migrations

from playground.migrating import tables_of


class Migration(migrations.Migration):
    initial = True

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [tables_of("playground.accounts.migrations")]
