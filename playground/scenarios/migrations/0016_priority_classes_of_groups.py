"""Shares from before a PodGroup's priority had to come from a class: a class for each bare one."""

from importlib import import_module

from django.db import migrations

add_classes = import_module("playground.scenarios.migrations.0007_priority_classes").add_classes


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0015_verdicts")]

    operations = [migrations.RunPython(add_classes, migrations.RunPython.noop)]
