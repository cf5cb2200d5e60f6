"""The extender of `examples/` over real HTTP: what it filters and prefers decides where a pod goes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters.drive.config import set_config
from playground.clusters.models import Cycle, ExtenderCall
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import scheduler_config

pytestmark = pytest.mark.django_db(transaction=True)
PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "extender" / "extender.py"


@pytest.fixture
def url() -> Iterator[str]:
    command = [sys.executable, str(PROGRAM), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            found = re.fullmatch(r"listening on (http://\S+)\n", program.stdout.readline())
            assert found
            yield found[1]
        finally:
            program.terminate()


def labelled(manifest: dict[str, Any], **labels: str) -> dict[str, Any]:
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), **labels}
    return manifest


def test_the_starter_extender_filters_and_prefers(client: Client, settings: Any, url: str) -> None:
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
    cluster = make_cluster(
        labelled(make_node("n1"), disk="ssd", rack="r1"),
        labelled(make_node("n2"), disk="ssd", rack="r2"),
        labelled(make_node("n3"), disk="hdd", rack="r2"),
        labelled(make_pod("p"), disk="ssd", rack="r2"),
        labelled(make_pod("q"), disk="tape"),
    )
    extender = {"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100}
    config = scheduler_config(extenders=[extender])
    set_config(cluster=cluster, config=config)
    run(cluster, "cycle")
    run(cluster, "cycle")
    found = {cycle.pod_name: cycle for cycle in Cycle.objects.all()}
    assert (found["p"].outcome, found["p"].node) == ("bound", "n2")
    assert found["q"].outcome == "unschedulable"
    assert "disk is hdd, not tape" in found["q"].message
    assert not ExtenderCall.objects.exclude(error="").exists()
    page = client.get(f"/c/{cluster.public_id}/cycles/{found['p'].number}/").content.decode()
    # Said once: the answer of prioritize holds no nodes.
    assert page.count("It answered whole nodes.") == 1
