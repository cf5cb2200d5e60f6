"""How long an agent waits for a tool on a large cluster: ``python -m tests.load mcp``.

Asked by the SDK's own client over stdio, on `manage.py play` with its defaults. `first` is the call that has the
answer computed, the others come afterwards, when it is there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from tests import servers
from tests.load.pages import seed

ROOT = Path(__file__).resolve().parents[2]
PENDING = "giant-0"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "why_pending": ("why_pending", {"pod": PENDING}),
    "what_would_it_take": ("what_would_it_take", {"pod": PENDING}),
    "plan headroom": ("plan", {"ask": "headroom"}),
    "plan drain": ("plan", {"ask": "drain", "nodes": ["node-7"]}),
    "plan any-node": ("plan", {"ask": "any-node"}),
}


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser("mcp", help="tools of the MCP server on a large cluster")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=60_000)
    parser.add_argument("--times", type=int, default=40, help="calls of each tool after the first")
    parser.set_defaults(measure=ask_tools)


def ask_tools(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Make the cluster, start the site, call the tools; times in milliseconds."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "playground.settings", "PLAYGROUND_DATA": str(folder)}
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    make = f"import django; django.setup()\nfrom tests.load.mcp import make\nmake({options.nodes}, {options.pods})"
    subprocess.run([sys.executable, "-c", make], cwd=ROOT, check=True)
    port = servers.free_port()
    address = f"http://127.0.0.1:{port}"
    with (folder / "play.log").open("wb") as said:
        play = subprocess.Popen(
            [sys.executable, "manage.py", "play", "--port", str(port)],
            cwd=ROOT, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
    stops.callback(play.wait)
    stops.callback(play.send_signal, signal.SIGINT)
    _wait_for(f"{address}/readyz")
    with urllib.request.urlopen(f"{address}/api/v1/clusters/") as answer:
        cluster = json.load(answer)["items"][0]["id"]
    return {"nodes": options.nodes, "pods": options.pods} | _called(address, cluster, options.times)


def make(n_nodes: int, n_pods: int) -> None:
    """The cluster, in a database of its own."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    seed(n_nodes, n_pods)


def _called(address: str, cluster: str, times: int) -> dict[str, Any]:
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "playground", "mcp", "--server", address]
    )
    told: dict[str, Any] = {}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(command))) as client,
    ):
        for name, (tool, arguments) in CALLS.items():
            took_ms = []
            for _ in range(times + 1):
                began = time.perf_counter()
                result = portal.call(partial(client.call_tool, tool, {"cluster": cluster} | arguments))
                took_ms.append(1000 * (time.perf_counter() - began))
                if result.is_error:
                    raise SystemExit(f"{name}: {result.content[0].text}")
            first, *later = took_ms
            told[name] = {
                "first_ms": round(first),
                "p50_ms": round(statistics.median(later)),
                "p95_ms": round(sorted(later)[int(len(later) * 0.95)]),
                "longest_ms": round(max(later)),
            }
    return told | {"load": os.getloadavg()[0]}


def _wait_for(url: str) -> None:
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise SystemExit("play does not get ready")
