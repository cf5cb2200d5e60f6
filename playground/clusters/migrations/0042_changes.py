from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0041_indexes_of_the_cluster_alone'),
    ]

    operations = [
        migrations.RenameModel(old_name='Deed', new_name='Change'),
        migrations.AlterField(
            model_name='change',
            name='cluster',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='clusters.cluster'),
        ),
        migrations.RenameIndex(model_name='change', new_name='change_newest', old_name='deed_newest'),
        migrations.RenameField(model_name='draft', old_name='deed', new_name='action'),
    ]
