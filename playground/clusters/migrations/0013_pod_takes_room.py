"""Whether a pod takes room on a node is a column: what nodes have in use is summed over an index of those alone."""

from typing import Any

from django.db import migrations, models


def say_so(apps: Any, schema_editor: Any) -> None:
    pods = apps.get_model("clusters", "Pod").objects.exclude(node_name="")
    pods.exclude(phase__in=("Succeeded", "Failed")).update(takes_room=True)


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0012_driven_at"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="pod",
            name="pod_use",
        ),
        migrations.AddField(
            model_name="pod",
            name="takes_room",
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(say_so, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="pod",
            index=models.Index(fields=["cluster", "node_name", "phase"], name="pod_node"),
        ),
        migrations.AddIndex(
            model_name="pod",
            index=models.Index(
                condition=models.Q(("takes_room", True)),
                fields=["cluster", "node_name", "cpu_milli", "memory_bytes", "takes_room"],
                name="pod_use",
            ),
        ),
    ]
