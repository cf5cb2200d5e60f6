"""A site for a team, and one person of it."""

from typing import Any

import pytest

from playground.accounts.models import User
from tests.accounts.world import RIGHT


@pytest.fixture(autouse=True)
def team_mode(settings: Any, db: None, wakes: list[Any]) -> None:
    settings.EMBEDDED = False
    settings.PLAYGROUND_WRITE_RATE = settings.PLAYGROUND_REQUEST_RATE = "1000000/day"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=RIGHT, email="ada@example.org")
