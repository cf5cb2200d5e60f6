"""The embedded site while it is hurt, or crowded: ``python -m tests.load kills`` and ``... crowd``."""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

from tests import servers
from tests.play import kills

SHARE = {
    "apiVersion": "scheduling.playground/v1",
    "kind": "Scenario",
    "objects": [
        kills.NODE | {"status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "never"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "5"}}}]},
        },
    ],
}


def kill_processes(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Random kills and stops; after each a pod must be bound within ten seconds."""
    port = options.port or servers.free_port()
    return kills.run(folder / "data", port, n_kills=options.kills, seed=options.seed)


def be_crowded(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """50 seeds of a cluster of 1,000 pods, four long shares and a search; meanwhile pods of another cluster."""
    from tests.load.__main__ import nodes, pods

    site = kills.Site(folder / "data", options.port or servers.free_port())
    stops.callback(site.stop)
    site.wait_until_ready()
    large = site.send("POST", "/api/v1/clusters/", {"name": "large"})["id"]
    own = site.send("POST", "/api/v1/clusters/", {"name": "own"})["id"]
    small = site.send("POST", "/api/v1/clusters/", {"name": "small"})["id"]
    lists = {"apiVersion": "v1", "kind": "List"}
    site.send(
        "POST",
        f"/api/v1/clusters/{large}/apply",
        lists | {"items": [*nodes(options.nodes), *pods(options.pods)]},
    )
    _run(site, large)
    site.send("POST", f"/api/v1/clusters/{small}/apply", lists | {"items": [*nodes(20), *pods(300)]})
    _run(site, small)
    site.send("POST", f"/api/v1/clusters/{own}/apply", kills.NODE)
    site.send("PUT", f"/api/v1/clusters/{own}/clock/", {"mode": "1x"})
    alone = sorted(site.bind_one(own, f"alone-{number}") for number in range(20))
    question = site.send("POST", f"/api/v1/clusters/{large}/seeds?seeds=50")["url"]
    refused = []
    for spec, steps in (
        ({"replicas": 100_000_000}, [{"run": "idle"}]),
        ({"replicas": 1}, [{"advance": "876000h"}]),
    ):
        try:
            site.send("POST", "/api/v1/scenarios/", _share(spec, steps), patience_s=0)
        except AssertionError as error:
            refused.append(str(error)[:300])

    def share(number: int) -> None:
        # The longest that is not refused: a pod that is tried again for a whole year.
        with contextlib.suppress(AssertionError, OSError):
            site.send("POST", "/api/v1/scenarios/", SHARE | {"seed": number, "steps": [{"advance": "8784h"}]})

    threads = [threading.Thread(target=share, args=(number,)) for number in range(4)]
    threads.append(threading.Thread(target=_ask_for_optimum, args=(site, small)))
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + options.seconds
    took_s: list[float] = []
    readiness: list[str] = []
    while time.monotonic() < until_s:
        took_s.append(site.bind_one(own, f"p{len(took_s)}"))
        if len(took_s) % 10 == 0:
            readiness.append(_ready(site))
    for thread in threads:
        thread.join()
    took_s.sort()
    progress = site.send("GET", question)
    return {
        "pods": len(took_s),
        "alone_s": {"p50": round(alone[len(alone) // 2], 3), "longest": round(alone[-1], 3)},
        "crowded_s": {
            "p50": round(took_s[len(took_s) // 2], 3),
            "p99": round(took_s[int(len(took_s) * 0.99)], 3),
            "longest": round(took_s[-1], 3),
        },
        "refused": refused,
        "seeds": {key: progress[key] for key in ("state", "progress", "error")},
        "ready": {word: readiness.count(word) for word in sorted(set(readiness))},
        "load": os.getloadavg()[0],
    }


def _share(spec: dict[str, Any], steps: list[Any]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {**spec, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    return SHARE | {"objects": [*SHARE["objects"], deployment], "steps": steps}  # type: ignore[misc]


def _run(site: kills.Site, cluster: str) -> None:
    url = site.send("POST", f"/api/v1/clusters/{cluster}/run", {"until": "idle"})["url"]
    while site.send("GET", url)["state"] in ("queued", "running"):
        time.sleep(0.1)


def _ready(site: kills.Site) -> str:
    try:
        site.send("GET", "/readyz", patience_s=0)
    except AssertionError as error:
        return str(error)[:200]
    return "ready"


def _ask_for_optimum(site: kills.Site, cluster: str) -> None:
    """Asked for on its page, as there is no other way."""
    import re
    import urllib.parse
    import urllib.request

    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = f"{site.address}/c/{cluster}/optimum/"
    with contextlib.suppress(OSError):
        with browser.open(page) as answer:
            found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.read().decode())
        assert found is not None
        browser.open(
            page, urllib.parse.urlencode({"csrfmiddlewaretoken": found[1], "limit": "60"}).encode()
        ).close()
