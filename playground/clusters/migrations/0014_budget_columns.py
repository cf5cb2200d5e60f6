"""A budget's rule, selector and counts are columns, filled from the manifests that are stored."""

from typing import Any

from django.db import migrations, models

BATCH = 500
COMPUTED = "computed from the cluster's pods"
FILLED = (
    "min_available",
    "max_unavailable",
    "selector",
    "unhealthy_pod_eviction_policy",
    "expected_pods",
    "current_healthy",
    "desired_healthy",
    "disruptions_allowed",
    "disrupted_pods",
    "counted",
    "given",
    "failure",
)


def fill(apps: Any, schema_editor: Any) -> None:
    """Read every stored budget's manifest once more; the manifests themselves stay as they are."""
    model = apps.get_model("clusters", "PodDisruptionBudget")
    batch = []
    for row in model.objects.order_by("pk").iterator(chunk_size=BATCH):
        _read(row)
        batch.append(row)
        if len(batch) == BATCH:
            model.objects.bulk_update(batch, FILLED)
            batch = []
    if batch:
        model.objects.bulk_update(batch, FILLED)


def _read(row: Any) -> None:
    # As engine.columns.budget_columns reads it today, written out: that one may change, this one may not.
    spec = row.manifest.get("spec") or {}
    status = row.manifest.get("status") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    row.min_available = "" if least is None else str(least)[:20]
    row.max_unavailable = "" if most is None else str(most)[:20]
    row.selector = spec.get("selector")
    row.unhealthy_pod_eviction_policy = str(spec.get("unhealthyPodEvictionPolicy") or "")[:24]
    row.expected_pods = _count(status.get("expectedPods"))
    row.current_healthy = _count(status.get("currentHealthy"))
    row.desired_healthy = _count(status.get("desiredHealthy"))
    row.disruptions_allowed = _count(status.get("disruptionsAllowed"))
    row.disrupted_pods = sorted(status.get("disruptedPods") or ())
    row.counted = status.get("disruptionsAllowed") is not None
    conditions = [c for c in status.get("conditions") or () if c.get("type") == "DisruptionAllowed"]
    message = str(conditions[0].get("message") or "") if conditions else ""
    row.given = row.counted and not message.startswith(COMPUTED)
    failed = bool(conditions) and conditions[0].get("reason") == "SyncFailed"
    row.failure = message.removeprefix(f"{COMPUTED}: ") if failed else ""


def _count(value: Any) -> int:
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return max(min(number, 2**31 - 1), -(2**31))


class Migration(migrations.Migration):
    dependencies = [("clusters", "0013_pod_takes_room")]

    operations = [
        migrations.AddField(
            "poddisruptionbudget", "min_available", models.CharField(max_length=20, blank=True, default="")
        ),
        migrations.AddField(
            "poddisruptionbudget", "max_unavailable", models.CharField(max_length=20, blank=True, default="")
        ),
        migrations.AddField("poddisruptionbudget", "selector", models.JSONField(null=True, default=None)),
        migrations.AddField(
            "poddisruptionbudget",
            "unhealthy_pod_eviction_policy",
            models.CharField(max_length=24, blank=True, default=""),
        ),
        migrations.AddField("poddisruptionbudget", "expected_pods", models.IntegerField(default=0)),
        migrations.AddField("poddisruptionbudget", "current_healthy", models.IntegerField(default=0)),
        migrations.AddField("poddisruptionbudget", "desired_healthy", models.IntegerField(default=0)),
        migrations.AddField("poddisruptionbudget", "disrupted_pods", models.JSONField(default=list)),
        migrations.AddField("poddisruptionbudget", "counted", models.BooleanField(default=False)),
        migrations.AddField("poddisruptionbudget", "given", models.BooleanField(default=False)),
        migrations.AddField("poddisruptionbudget", "failure", models.TextField(blank=True, default="")),
        migrations.AddIndex(
            "poddisruptionbudget",
            models.Index(fields=["cluster", "disruptions_allowed"], name="pdb_allowed"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
