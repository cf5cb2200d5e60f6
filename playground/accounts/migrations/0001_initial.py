"""The tables of accounts."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from playground.migrating import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='User',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('password', models.CharField(max_length=128, verbose_name='password')),
                    ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                    ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                    ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                    ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                    ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                    ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                    ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                    ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                    ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                    ('shared_bytes', models.BigIntegerField(default=0)),
                    ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                    ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                ],
                options={
                    'verbose_name': 'user',
                    'verbose_name_plural': 'users',
                    'abstract': False,
                },
                managers=[
                    ('objects', django.contrib.auth.models.UserManager()),
                ],
            ),
            migrations.CreateModel(
                name='Tally',
                fields=[
                    ('key', models.CharField(max_length=100, primary_key=True, serialize=False)),
                    ('started', models.BigIntegerField(db_index=True)),
                    ('number', models.IntegerField()),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='tally_positive')],
                },
            ),
            migrations.CreateModel(
                name='AccessToken',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('hint', models.CharField(max_length=16)),
                    ('scope', models.CharField(choices=[('read', 'Read'), ('write', 'Write')], default='write', max_length=5)),
                    ('cluster', models.CharField(blank=True, default='', max_length=24)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('expires', models.DateTimeField(blank=True, null=True)),
                    ('last_used', models.DateTimeField(blank=True, null=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='access_tokens', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'write'])), name='token_scope_known')],
                },
            ),
            migrations.CreateModel(
                name='KeptAnswer',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('whose', models.CharField(max_length=24)),
                    ('key', models.CharField(max_length=255)),
                    ('digest', models.CharField(max_length=64)),
                    ('created', models.DateTimeField(db_index=True)),
                    ('status', models.IntegerField(default=0)),
                    ('headers', models.JSONField(default=dict)),
                    ('body', models.BinaryField(default=bytes)),
                    ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='kept_answers', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('whose', 'key'), name='kept_answer_once')],
                },
            ),
            migrations.CreateModel(
                name='Session',
                fields=[
                    ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                    ('session_data', models.TextField(verbose_name='session data')),
                    ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                    ('began', models.DateTimeField(null=True)),
                    ('seen', models.DateTimeField(null=True)),
                    ('address', models.CharField(blank=True, default='', max_length=45)),
                    ('browser', models.CharField(blank=True, default='', max_length=200)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name': 'session',
                    'verbose_name_plural': 'sessions',
                    'abstract': False,
                    'indexes': [models.Index(fields=['user', 'expire_date'], name='session_of_user')],
                },
            ),
            migrations.CreateModel(
                name='Membership',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='editor', max_length=8)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='Team',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100, unique=True)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('members', models.ManyToManyField(related_name='teams', through='accounts.Membership', through_fields=('team', 'user'), to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='Invitation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='editor', max_length=8)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('email', models.EmailField(blank=True, default='', max_length=254)),
                    ('created', models.DateTimeField(auto_now_add=True)),
                    ('expires', models.DateTimeField(db_index=True)),
                    ('accepted', models.DateTimeField(blank=True, null=True)),
                    ('accepted_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='invitations_accepted', to=settings.AUTH_USER_MODEL)),
                    ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations_made', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.team')),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'editor', 'viewer'])), name='invitation_role_known')],
                },
            ),
            migrations.CreateModel(
                name='AuditEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(db_index=True)),
                    ('action', models.CharField(max_length=32)),
                    ('actor_name', models.CharField(blank=True, default='', max_length=150)),
                    ('about_name', models.CharField(blank=True, default='', max_length=150)),
                    ('team_name', models.CharField(blank=True, default='', max_length=100)),
                    ('target', models.CharField(blank=True, default='', max_length=300)),
                    ('detail', models.CharField(blank=True, default='', max_length=300)),
                    ('address', models.CharField(blank=True, default='', max_length=45)),
                    ('about', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_about', to=settings.AUTH_USER_MODEL)),
                    ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_done', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_entries', to='accounts.team')),
                ],
                options={
                    'indexes': [models.Index(fields=['about', 'action', 'address'], name='audit_known_address')],
                },
            ),
        ]),
        migrations.AddField(
            model_name='membership',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.team'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('team', 'user'), name='membership_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'editor', 'viewer'])), name='membership_role_known'),
        ),
    ]
