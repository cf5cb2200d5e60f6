"""A playground of these tests' own, started for real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from playground.remote.instance import Instance
from tests.play.test_play import Playground


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where it is."""
    playground = Playground(tmp_path_factory.mktemp("playground") / "data")
    try:
        playground.wait_until_it_says("Playground ready")
        yield f"http://127.0.0.1:{playground.port}"
    finally:
        playground.stop()


@pytest.fixture(scope="package")
def instance(address: str) -> Instance:
    return Instance(address)
