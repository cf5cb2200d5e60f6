"""The playground that is started for real, as a command asks it."""

import pytest

from playground.remote.instance import Instance


@pytest.fixture(scope="session")
def instance(address: str) -> Instance:
    return Instance(address)
