import django.db.models.deletion
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import migrations, models


def take_over(apps, schema_editor):
    """People stay logged in: older sessions are read with the same salt, and get an owner."""
    from playground.accounts.sessions import SessionStore

    old, new = apps.get_model("sessions", "Session"), apps.get_model("accounts", "Session")
    known = set(apps.get_model("accounts", "User").objects.values_list("pk", flat=True))
    store = SessionStore()
    for row in old.objects.iterator(500):
        user = str(store.decode(row.session_data).get(SESSION_KEY, ""))
        user_id = int(user) if user.isdecimal() and int(user) in known else None
        new.objects.create(
            session_key=row.session_key,
            session_data=row.session_data,
            expire_date=row.expire_date,
            user_id=user_id,
        )
    old.objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_quotas"), ("sessions", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("began", models.DateTimeField(null=True)),
                ("seen", models.DateTimeField(null=True)),
                ("address", models.CharField(blank=True, default="", max_length=45)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "abstract": False,
                "indexes": [models.Index(fields=["user", "expire_date"], name="session_of_user")],
            },
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
