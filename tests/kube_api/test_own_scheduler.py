"""The program that the page gives to begin with, as it stands there, against a real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from playground.clusters.models import ForeignDecision
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import eventually
from tests.web.test_schedulers_page import copied

pytestmark = pytest.mark.any_database


def test_the_program_of_the_page_schedules_and_is_seen(
    asgi_server: str, wakes: list[Any], tmp_path: Path
) -> None:
    wanted = (("mine", "my-scheduler"), ("other", "default-scheduler"))
    cluster = make_cluster(make_node("n1"), *(make_pod(name, schedulerName=by) for name, by in wanted))
    page = requests.get(f"{asgi_server}/c/{cluster.public_id}/schedulers/", timeout=30).text
    (tmp_path / "kubeconfig.yaml").write_text(copied(page, "kubeconfig"))
    (tmp_path / "scheduler.py").write_text(copied(page, "starter"))
    rest = f"{asgi_server}/api/v1/clusters/{cluster.public_id}/schedulers/"
    with subprocess.Popen([sys.executable, "scheduler.py"], cwd=tmp_path, stderr=subprocess.PIPE) as running:
        try:
            eventually(lambda: running.poll() is not None or ForeignDecision.objects.exists())
        finally:
            running.terminate()
        assert running.stderr is not None
        assert "Error" not in running.stderr.read().decode()
    assert [(row.pod_name, row.node) for row in ForeignDecision.objects.all()] == [("mine", "n1")]
    [program] = requests.get(rest, timeout=30).json()["programs"]
    assert (program["author"], program["schedulerNames"], program["binds"]) == (
        "my-scheduler/v1",
        ["my-scheduler"],
        1,
    )
