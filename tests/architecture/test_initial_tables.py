"""The first migrations make the tables of the models as they are."""

import pytest

from tests.initial_tables import APPS, place_of, text_of


@pytest.mark.parametrize("app", APPS)
def test_the_first_migration_has_the_models_as_they_are(app: str) -> None:
    assert place_of(app).read_text(encoding="utf-8") == text_of(app), "run python -m tests.initial_tables"
