"""A real `manage.py play`, started by a test."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import site
from tests.manifests import make_object
from tests.tables import table

NODE = table(__file__, "NODE")


def pod(name: str) -> dict[str, Any]:
    return make_object(
        "v1", "Pod", name, namespace="default", spec={"containers": [{"name": "c", "image": "i"}]}
    )


def until(holds: Callable[[], Any], wait_s: float = 90.0) -> Any:
    """What `holds` says as soon as it is something."""
    deadline_s = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.05)
    return found


class Site(site.Site):
    """`manage.py play` on a port, with a data folder of its own.

    Parameters
    ----------
    variables
        Of its environment, besides ours: a database and a broker of a server.
    within
        A command that runs the one that follows it somewhere else.
    options
        Of `manage.py play`, besides the port.
    """

    def __init__(
        self,
        data: Path,
        port: int,
        *,
        variables: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
        options: Sequence[str] = (),
        answer_s: float = 10.0,
    ) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("CELERY_BROKER_URL", "DATABASE_URL", "DJANGO_ALLOW_ASYNC_UNSAFE")
        }
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        super().__init__(
            [*within, sys.executable, "manage.py", "play", "--port", str(port), *options],
            port,
            log=data.with_name(f"{data.name}.log"),
            environment=environment | {"PLAYGROUND_DATA": str(data), **(variables or {})},
            answer_s=answer_s,
        )

    def bind_one(self, cluster: str, name: str) -> None:
        """Submit a pod to a cluster at 1x and wait for its node."""
        began_s = time.monotonic()
        path = f"/k8s/{cluster}/api/v1/namespaces/default/pods"
        self.send("POST", path, pod(name))
        while not self.send("GET", f"{path}/{name}")["spec"].get("nodeName"):
            if time.monotonic() - began_s > 120:
                raise AssertionError(f"{name} is not bound after 120 s: {self.send('GET', '/readyz')}")
            time.sleep(0.02)
