"""A site for a team, one person of it, and what they and their team have, made once for a file of tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings

from playground.accounts.models import User
from playground.clusters import questions
from playground.engine import scenarios
from playground.scenarios.services import errands
from tests import scenario_processes
from tests.accounts.world import RIGHT, make_people, make_world


@pytest.fixture(autouse=True)
def team_mode(settings: Any, db: None, wakes: list[Any]) -> None:
    settings.EMBEDDED = False
    settings.PLAYGROUND_WRITE_RATE = settings.PLAYGROUND_REQUEST_RATE = "1000000/day"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=RIGHT, email="ada@example.org")


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, str]]:
    """What ada and her team have (`make_world`), made once for all tests of a file.

    What a test does to it is taken back with the test's own transaction, which is within this one.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        with pytest.MonkeyPatch.context() as patch, override_settings(EMBEDDED=False):
            patch.setattr(errands, "wait", lambda row, wait_s: questions.answer(question_id=row.pk))
            patch.setattr(scenarios, "run_process", scenario_processes.run_forked)
            names = make_world(make_people())
        yield names
        transaction.set_rollback(True)
