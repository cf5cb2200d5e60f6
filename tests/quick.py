"""What Django does in earnest for each site, and in vain for each of thousands of tests.

Processes of a site that a test starts are not touched.
"""

from functools import cache
from typing import Any


def hash_passwords_at_once() -> None:
    """Half a second for each password is for those who guess."""
    from django.conf import settings
    from django.test import override_settings

    quick = "django.contrib.auth.hashers.MD5PasswordHasher"
    override_settings(PASSWORD_HASHERS=[quick, *settings.PASSWORD_HASHERS]).enable()


def look_for_static_files_once() -> None:
    """Each test client makes the middleware anew, and with it the list of all files of the site."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    search = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def add(self: WhiteNoiseMiddleware) -> None:
        if not found:
            search(self)
            found.update(self.files)
        self.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add


def empty_tables_without_ado() -> None:
    """By DELETE, and only those that tests write to: what Django would make anew (models, permissions) stays.

    PostgreSQL needs 145 ms to TRUNCATE the tables, and 4 ms to delete the few rows that a test leaves.
    """
    from django.core.management.color import no_style
    from django.db import connections, transaction
    from django.test import TransactionTestCase

    @cache
    def statements(alias: str) -> list[str]:
        connection = connections[alias]
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        tables = [name for name in names if name not in ("django_content_type", "auth_permission")]
        if connection.vendor == "postgresql":
            return [f"DELETE FROM {connection.ops.quote_name(table)}" for table in tables]
        return connection.ops.sql_flush(no_style(), tables, reset_sequences=False, allow_cascade=False)

    def empty(self: TransactionTestCase) -> None:
        for alias in self._databases_names(include_mirrors=False):
            with transaction.atomic(using=alias, savepoint=False), connections[alias].cursor() as cursor:
                for statement in statements(alias):
                    cursor.execute(statement)

    TransactionTestCase._fixture_teardown = empty
