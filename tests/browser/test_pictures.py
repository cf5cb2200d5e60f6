"""The pictures of the manual, made from the real pages: PLAYGROUND_PICTURES=1 writes them into docs/pictures/."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from playground.clusters.demo import create_demo
from playground.clusters.models import Cycle
from tests.browser.looks import nightly, wear
from tests.browser.test_domains import ZONE, spread, web, zoned
from tests.clusters.builders import make_cluster, run

pytestmark = [pytest.mark.django_db(transaction=True), nightly]
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
LARGEST = 60_000
"""Bytes of one picture."""


@pytest.mark.timeout(400)
def test_pictures_of_the_manual(page: Any, asgi_server: str, tmp_path: Path) -> None:
    demo = create_demo()
    run(demo)
    evicting = Cycle.objects.filter(cluster=demo, outcome="preempting").values_list("number", flat=True)
    bound = Cycle.objects.filter(cluster=demo, outcome="bound", n_feasible__gt=1)
    spreading = make_cluster(
        *(zoned(f"node-{zone}-{n}", f"zone-{zone}") for zone in "abc" for n in range(4)),
        *(web(f"old-{n}", nodeName=f"node-a-{n}") for n in range(2)),
        web("old-b", nodeName="node-b-0"),
        web("new", topologySpreadConstraints=[spread(ZONE, "DoNotSchedule")]),
    )
    run(spreading)
    cluster = f"/c/{demo.public_id}"
    wanted = {
        "board": (f"{cluster}/", ""),
        "cycle": (f"{cluster}/cycles/{bound.values_list('number', flat=True)[0]}/", ""),
        "preemption": (f"{cluster}/cycles/{evicting[0]}/", "#preempt"),
        "spread": (f"/c/{spreading.public_id}/cycles/1/", "#domains"),
        "timeline": (f"{cluster}/timeline/", ""),
        "plan": (f"{cluster}/plan/", ""),
        "release": (f"{cluster}/config/release/", ""),
        "lessons": ("/gallery/", ""),
        "import": ("/new/import/", ""),
    }
    folder = FOLDER if os.environ.get("PLAYGROUND_PICTURES") else tmp_path
    wear(page, "light", 1100)
    page.set_viewport_size({"width": 1100, "height": 640})
    page.set_default_timeout(15_000)
    for name, (address, part) in wanted.items():
        page.goto(asgi_server + address)
        page.wait_for_load_state("load")
        target, path = page.locator(part) if part else page, folder / f"{name}.jpg"
        target.screenshot(path=path, type="jpeg", quality=28, animations="disabled")
        assert 3_000 < path.stat().st_size < LARGEST, name
    assert {path.stem for path in FOLDER.glob("*.jpg")} == set(wanted), (
        "the manual has a picture of each, and no other"
    )
