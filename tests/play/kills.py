"""Kills and stops processes of a real `manage.py play`, and sees that a submitted pod is bound soon after.

Random, but by a seed that is told. Any process of the site may be hit: the web process, those that decide, the one
that does work, its children, and what those started; idle or busy. Only the supervisor itself is spared: its end is
the end of the site.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests import site
from tests.manifests import make_object
from tests.tables import table

BOUND_WITHIN_S = 10.0
NODE = table(__file__, "NODE")


def pod(name: str) -> dict[str, Any]:
    return make_object(
        "v1", "Pod", name, namespace="default", spec={"containers": [{"name": "c", "image": "i"}]}
    )


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

    def bind_one(self, cluster: str, name: str) -> float:
        """Submit a pod to a cluster at 1x and wait for its node; the seconds that took."""
        return self.post_and_bind(cluster, name)[1]

    def post_and_bind(self, cluster: str, name: str) -> tuple[float, float]:
        """The same: seconds until the pod was taken, and until it was bound."""
        began_s = time.monotonic()
        path = f"/k8s/{cluster}/api/v1/namespaces/default/pods"
        self.send("POST", path, pod(name))
        posted_s = time.monotonic() - began_s
        while not self.send("GET", f"{path}/{name}")["spec"].get("nodeName"):
            if time.monotonic() - began_s > 120:
                raise AssertionError(f"{name} is not bound after 120 s: {self.send('GET', '/readyz')}")
            time.sleep(0.02)
        return posted_s, time.monotonic() - began_s


def run(
    data: Path, port: int, *, n_kills: int, seed: int, busy: bool = True, pause_s: float = 2.0
) -> dict[str, Any]:
    """Hit a random process so many times; after each a pod must be bound. What was seen, as JSON-able data."""
    dice = random.Random(seed)
    site = Site(data, port)
    hits: list[Hit] = []
    try:
        site.wait_until_ready()
        cluster = site.send("POST", "/api/v1/clusters/", {"name": "watched"})["id"]
        other = site.send("POST", "/api/v1/clusters/", {"name": "asked about"})["id"]
        for one in (cluster, other):
            site.send("POST", f"/api/v1/clusters/{one}/apply", NODE)
            site.send("PUT", f"/api/v1/clusters/{one}/clock/", {"mode": "1x"})
        for number in range(30):
            site.bind_one(other, f"p{number}")
        for number in range(n_kills):
            if busy and number % 2:
                # The log has moved on since, so this is another question, and the lane has work.
                site.bind_one(other, f"q{number}")
                site.send("POST", f"/api/v1/clusters/{other}/seeds?seeds=50")
            time.sleep(dice.uniform(0.0, pause_s))
            pid, name = dice.choice(sorted(site.processes().items()))
            how = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue
            posted_s, bound_s = site.post_and_bind(cluster, f"hit-{number}")
            hits.append(Hit(f"{how.name} {name}", number, posted_s, bound_s, os.getloadavg()[0]))
    finally:
        site.stop()
    kinds = sorted({hit.kind for hit in hits})
    return {
        "seed": seed,
        "bound_s": _figures(hits),
        "by_process": {kind: _figures([hit for hit in hits if hit.kind == kind]) for kind in kinds},
        "slowest": [hit._asdict() for hit in sorted(hits, key=lambda hit: -hit.bound_s)[:5]],
        "load": os.getloadavg()[0],
    }


class Hit(NamedTuple):
    """One kill or stop, and how long the next pod took: until it was taken, and until it was bound."""

    kind: str
    number: int
    posted_s: float
    bound_s: float
    load: float


def _figures(hits: list[Hit]) -> dict[str, float]:
    took_s = sorted(hit.bound_s for hit in hits)
    if not took_s:
        return {"hits": 0}
    return {
        "hits": len(took_s),
        "p50": round(took_s[len(took_s) // 2], 2),
        "p99": round(took_s[int(len(took_s) * 0.99)], 2),
        "longest": round(took_s[-1], 2),
        "late": sum(seconds > BOUND_WITHIN_S for seconds in took_s),
    }
