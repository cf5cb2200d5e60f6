import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scenarios', '0017_note_and_moment'),
    ]

    operations = [
        migrations.RenameModel(old_name='Draft', new_name='Origin'),
        migrations.AlterField(
            model_name='origin',
            name='cluster',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='share_origin', to='clusters.cluster'),
        ),
        migrations.AlterField(
            model_name='origin',
            name='scenario',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='origins', to='scenarios.scenario'),
        ),
    ]
