"""The tables of scenarios."""

import django.db.models.deletion
import playground.clusters.packed
import playground.scenarios.models
from django.conf import settings
from django.db import migrations, models

from playground.migrating import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('clusters', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='Scenario',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=playground.scenarios.models.new_share_id, editable=False, max_length=24, unique=True)),
                    ('share_key', models.CharField(max_length=64, unique=True)),
                    ('visibility', models.CharField(choices=[('public', 'Public'), ('unlisted', 'Unlisted'), ('team', 'Team'), ('private', 'Private')], default='unlisted', max_length=8)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('expires', models.DateTimeField(blank=True, null=True)),
                    ('delete_digest', models.CharField(max_length=64)),
                    ('gallery_name', models.CharField(blank=True, default='', max_length=100)),
                    ('note', models.TextField(blank=True, default='')),
                    ('opens_at', models.IntegerField(blank=True, null=True)),
                    ('document', models.BinaryField()),
                    ('digest', models.CharField(max_length=64)),
                    ('forked_from', models.CharField(blank=True, default='', max_length=24)),
                    ('name', models.CharField(blank=True, default='', max_length=253)),
                    ('title', models.CharField(blank=True, default='', max_length=300)),
                    ('emulates', models.CharField(max_length=40)),
                    ('seed', models.BigIntegerField(default=0)),
                    ('start_ns', models.BigIntegerField()),
                    ('n_nodes', models.IntegerField(default=0)),
                    ('n_pods', models.IntegerField(default=0)),
                    ('n_steps', models.IntegerField(default=0)),
                    ('n_expectations', models.IntegerField(default=0)),
                    ('n_extenders', models.IntegerField(default=0)),
                    ('n_bytes', models.IntegerField(default=0)),
                    ('recorded_bytes', models.BigIntegerField(default=0)),
                    ('lesson', models.TextField(blank=True, default='')),
                    ('path', models.JSONField(default=list)),
                    ('has_cassette', models.BooleanField(default=False)),
                    ('plugins', models.JSONField(default=list)),
                    ('claimed_digest', models.CharField(blank=True, default='', max_length=64)),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('recorded', 'Recorded'), ('failed', 'Failed')], default='queued', max_length=10)),
                    ('problem', models.TextField(blank=True, default='')),
                    ('engine_version', models.CharField(blank=True, default='', max_length=40)),
                    ('decisions_digest', models.CharField(blank=True, default='', max_length=64)),
                    ('n_cycles', models.IntegerField(default=0)),
                    ('figures', models.JSONField(default=dict)),
                    ('findings', models.JSONField(default=list)),
                    ('notes', models.JSONField(default=list)),
                    ('stop', models.TextField(blank=True, default='')),
                    ('timeline', playground.clusters.packed.PackedJSONField(blank=True, null=True)),
                    ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to=settings.AUTH_USER_MODEL)),
                    ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='scenarios.scenario')),
                    ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='accounts.team')),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', '-created'], name='scenario_owner_created'), models.Index(fields=['expires'], name='scenario_expires'), models.Index(fields=['digest'], name='scenario_digest')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('visibility__in', ['public', 'unlisted', 'team', 'private'])), name='scenario_visibility_known'), models.CheckConstraint(condition=models.Q(models.Q(('team__isnull', False), ('visibility', 'team')), models.Q(models.Q(('visibility', 'team'), _negated=True), ('team__isnull', True)), _connector='OR'), name='scenario_team_if_team_only'), models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'recorded', 'failed'])), name='scenario_state_known'), models.UniqueConstraint(condition=models.Q(('gallery_name', ''), _negated=True), fields=('gallery_name',), name='scenario_gallery_once')],
                },
            ),
            migrations.CreateModel(
                name='RecordedCycle',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.IntegerField()),
                    ('at_ns', models.BigIntegerField()),
                    ('pod_namespace', models.CharField(max_length=253)),
                    ('pod_name', models.CharField(max_length=253)),
                    ('pod_uid', models.CharField(max_length=300)),
                    ('profile', models.CharField(blank=True, default='', max_length=253)),
                    ('attempt', models.IntegerField(default=1)),
                    ('outcome', models.CharField(max_length=16)),
                    ('node', models.CharField(blank=True, default='', max_length=253)),
                    ('message', models.TextField(blank=True, default='')),
                    ('sentence', models.TextField(blank=True, default='')),
                    ('n_nodes', models.IntegerField(default=0)),
                    ('n_feasible', models.IntegerField(default=0)),
                    ('n_viable', models.IntegerField(blank=True, null=True)),
                    ('digest', models.CharField(max_length=64)),
                    ('trace', models.BinaryField(blank=True, null=True)),
                    ('scenario', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cycles', to='scenarios.scenario')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('scenario', 'number'), name='recorded_cycle_once')],
                },
            ),
            migrations.CreateModel(
                name='Moment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('generation', models.IntegerField(default=0)),
                    ('cycle', models.BigIntegerField()),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('note', models.CharField(blank=True, default='', max_length=300)),
                    ('data', playground.clusters.packed.PackedJSONField(blank=True, null=True)),
                    ('brief', playground.clusters.packed.PackedJSONField(blank=True, null=True)),
                    ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='moments', to='clusters.cluster')),
                    ('scenario', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='moments', to='scenarios.scenario')),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', False), ('scenario__isnull', True)), models.Q(('cluster__isnull', True), ('scenario__isnull', False)), _connector='OR'), name='moment_of_one'), models.UniqueConstraint(condition=models.Q(('cluster__isnull', False)), fields=('cluster', 'generation', 'cycle'), name='moment_of_cluster_once'), models.UniqueConstraint(condition=models.Q(('scenario__isnull', False)), fields=('scenario', 'cycle'), name='moment_of_scenario_once')],
                },
            ),
            migrations.CreateModel(
                name='Origin',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('scenario_id_kept', models.CharField(max_length=24)),
                    ('shared', models.BooleanField(default=False)),
                    ('generation', models.IntegerField(default=1)),
                    ('input_seq', models.BigIntegerField()),
                    ('steps', models.JSONField(default=list)),
                    ('next_step', models.IntegerField(default=0)),
                    ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='share_origin', to='clusters.cluster')),
                    ('scenario', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='origins', to='scenarios.scenario')),
                ],
            ),
            migrations.CreateModel(
                name='Verdict',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=playground.scenarios.models.new_share_id, editable=False, max_length=24, unique=True)),
                    ('visibility', models.CharField(choices=[('public', 'Public'), ('unlisted', 'Unlisted'), ('team', 'Team'), ('private', 'Private')], default='unlisted', max_length=8)),
                    ('cluster_name', models.CharField(max_length=100)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('expires', models.DateTimeField(blank=True, null=True)),
                    ('seq', models.BigIntegerField()),
                    ('engine_version', models.CharField(max_length=40)),
                    ('sentence', models.CharField(max_length=1000)),
                    ('digest', models.CharField(max_length=64)),
                    ('answer', playground.clusters.packed.PackedJSONField()),
                    ('state', playground.clusters.packed.PackedJSONField(blank=True, null=True)),
                    ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='verdicts', to='clusters.cluster')),
                    ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='accounts.team')),
                ],
                options={
                    'indexes': [models.Index(fields=['expires'], name='verdict_expires')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('visibility__in', ['public', 'unlisted', 'team', 'private'])), name='verdict_visibility_known'), models.CheckConstraint(condition=models.Q(models.Q(('team__isnull', False), ('visibility', 'team')), models.Q(models.Q(('visibility', 'team'), _negated=True), ('team__isnull', True)), _connector='OR'), name='verdict_team_if_team_only')],
                },
            ),
            migrations.CreateModel(
                name='Verification',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('finished', models.DateTimeField(blank=True, null=True)),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=8)),
                    ('engine_version', models.CharField(blank=True, default='', max_length=40)),
                    ('n_same', models.IntegerField(default=0)),
                    ('n_recorded', models.IntegerField(default=0)),
                    ('differs_at', models.IntegerField(blank=True, null=True)),
                    ('recorded', models.JSONField(blank=True, null=True)),
                    ('fresh', models.JSONField(blank=True, null=True)),
                    ('n_expectations', models.IntegerField(default=0)),
                    ('n_held', models.IntegerField(default=0)),
                    ('sentence', models.TextField(blank=True, default='')),
                    ('took_ms', models.IntegerField(default=0)),
                    ('scenario', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='verifications', to='scenarios.scenario')),
                ],
                options={
                    'indexes': [models.Index(fields=['scenario', '-id'], name='verification_newest')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'done', 'failed'])), name='verification_state_known')],
                },
            ),
            migrations.CreateModel(
                name='Comparison',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=playground.scenarios.models.new_share_id, editable=False, max_length=24, unique=True)),
                    ('visibility', models.CharField(choices=[('public', 'Public'), ('unlisted', 'Unlisted'), ('team', 'Team'), ('private', 'Private')], default='private', max_length=8)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('expires', models.DateTimeField(blank=True, null=True)),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=8)),
                    ('a', models.JSONField()),
                    ('b', models.JSONField()),
                    ('more', models.JSONField(blank=True, default=list)),
                    ('title', models.CharField(blank=True, default='', max_length=300)),
                    ('problem', models.TextField(blank=True, default='')),
                    ('figures', models.JSONField(default=dict)),
                    ('result', playground.clusters.packed.PackedJSONField(blank=True, null=True)),
                    ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='accounts.team')),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', '-created'], name='comparison_owner_created'), models.Index(fields=['expires'], name='comparison_expires')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'done', 'failed'])), name='comparison_state_known'), models.CheckConstraint(condition=models.Q(('visibility__in', ['public', 'unlisted', 'team', 'private'])), name='comparison_visibility_known'), models.CheckConstraint(condition=models.Q(models.Q(('team__isnull', False), ('visibility', 'team')), models.Q(models.Q(('visibility', 'team'), _negated=True), ('team__isnull', True)), _connector='OR'), name='comparison_team_if_team_only')],
                },
            ),
        ]),
    ]
