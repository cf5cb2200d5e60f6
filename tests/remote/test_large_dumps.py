"""What the kubectl plugin does while a worker applies a large dump; the instance is made up here."""

from argparse import Namespace
from typing import Any

import pytest

from playground.engine.redacting import Dump
from playground.remote import kubectl_plugin
from playground.remote.instance import Refused

DRAFT = "/api/v1/drafts/d1"
SENT = Dump([], "", {"Node": {"acme-node": "node-1"}}, ())


class Instance:
    """Answers `apply` with a draft, and what becomes of it look by look; an exception is raised there."""

    def __init__(self, *looks: dict[str, Any] | BaseException) -> None:
        self.looks = list(looks)
        self.asked: list[tuple[str, str]] = []

    def post(self, path: str, body: Any) -> Any:
        return {"id": "c1"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self.asked.append((method, path))
        return (202, {"state": "queued", "url": DRAFT}) if method == "POST" else (204, None)

    def get(self, path: str) -> Any:
        assert path == DRAFT
        look = self.looks.pop(0)
        if isinstance(look, BaseException):
            raise look
        return {"url": DRAFT, **look}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_plugin, "_LOOK_EVERY_S", 0)


def made(instance: Instance) -> str:
    return kubectl_plugin._made(instance, SENT, Namespace(release=""))  # type: ignore[arg-type]


def test_it_is_waited_for() -> None:
    instance = Instance({"state": "queued"}, {"state": "done"})
    assert made(instance) == "c1" and not instance.looks
    assert instance.asked == [("POST", "clusters/c1/apply")]


def test_one_that_fails_is_told_with_the_clusters_own_names_and_leaves_no_cluster() -> None:
    instance = Instance(
        {"state": "failed", "problem": "1 problem", "causes": [{"detail": "Node node-1: no"}]}
    )
    with pytest.raises(Refused, match="it ended as failed: 1 problem\nNode acme-node: no"):
        made(instance)
    assert instance.asked[1:] == [("DELETE", "clusters/c1/")]


def test_one_that_is_stopped_here_is_cancelled_there_and_leaves_no_cluster() -> None:
    instance = Instance({"state": "queued"}, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        made(instance)
    assert instance.asked[1:] == [("DELETE", DRAFT), ("DELETE", "clusters/c1/")]
