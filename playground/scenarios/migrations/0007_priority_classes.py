"""Shares from before a priority had to come from a class: a class for each bare priority.

They decide as they did; the document and its digest are new.
"""

from typing import Any

from django.db import migrations

from playground.engine.scenarios import ScenarioProblem, with_priority_classes


def add_classes(apps: Any, schema_editor: Any) -> None:
    scenarios = apps.get_model("scenarios", "Scenario").objects
    for pk in list(scenarios.order_by("pk").values_list("pk", flat=True)):
        document = bytes(scenarios.values_list("document", flat=True).get(pk=pk))
        if b"priority" not in document and b"preemptionPolicy" not in document:
            continue
        try:
            changed = with_priority_classes(document)
        except ScenarioProblem:
            # It could not be read before either; it stays as it was given.
            continue
        if changed is not None:
            data, digest = changed
            scenarios.filter(pk=pk).update(document=data, digest=digest, n_bytes=len(data))


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0006_viable_nodes_and_model_checks")]

    operations = [migrations.RunPython(add_classes, migrations.RunPython.noop)]
