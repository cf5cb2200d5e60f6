import re

from django.db import migrations

_BOUND = re.compile(r'(^|,)le="([^"]*)"')


def count_once(apps, schema_editor):
    """A bucket held what fell into it and all smaller ones; it holds what fell into it alone. Counts are their sum."""
    alias = schema_editor.connection.alias
    for model, of in (("Metric", ()), ("ClusterMetric", ("cluster_id",))):
        rows = apps.get_model("clusters", model).objects.using(alias)
        rows.filter(name__endswith="_seconds_count").delete()
        rows.filter(name__in=["scheduler_pod_scheduling_attempts_count", "scheduler_preemption_victims_count"]).delete()
        series = {}
        for row in rows.filter(name__endswith="_bucket").iterator():
            bound = _BOUND.search(row.labels)
            key = (*(getattr(row, name) for name in of), row.name, _BOUND.sub("", row.labels))
            series.setdefault(key, []).append((float(bound[2]), row))
        for buckets in series.values():
            before = 0.0
            for _, row in sorted(buckets, key=lambda item: item[0]):
                own, before = row.value - before, row.value
                if own > 0:
                    row.value = own
                    row.save(update_fields=["value"])
                else:
                    row.delete()


class Migration(migrations.Migration):

    dependencies = [
        ("clusters", "0035_kinds_of_every_group"),
    ]

    operations = [
        migrations.RunPython(count_once, migrations.RunPython.noop),
    ]
