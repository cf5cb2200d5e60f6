from django.db import migrations
from django.db.models import F


def give_creators(apps, schema_editor):
    """An older cluster counts for its owner; a team's for the person who has owned the team longest.

    Nothing of it counts as stored before it is measured.
    """
    clusters = apps.get_model("clusters", "Cluster").objects
    memberships = apps.get_model("accounts", "Membership").objects
    clusters.update(measured_seq=F("next_seq"))
    clusters.filter(owner__isnull=False).update(creator=F("owner"))
    for team in clusters.filter(team__isnull=False).values_list("team", flat=True).distinct().order_by("team"):
        first = memberships.filter(team=team, role="owner").order_by("pk").values_list("user", flat=True).first()
        clusters.filter(team=team).update(creator=first)


class Migration(migrations.Migration):
    # Apart from the columns: PostgreSQL alters no table that has rows changed in the same transaction.
    dependencies = [
        ("accounts", "0003_counts"),
        ("clusters", "0016_quotas"),
    ]

    operations = [migrations.RunPython(give_creators, migrations.RunPython.noop, elidable=True)]
