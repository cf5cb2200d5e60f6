"""A team's site by the README's commands, busy and hurt: ``python -m tests.load team``.

One worker decides, by the command line of the README, and nothing starts anything again. Clusters run without a pause,
people watch event streams, and the broker is away now and then: killed, or stopped and continued. All the while pods of
another person are created one after the other, and `/readyz` is asked. What must hold: no process ends, every pod is
decided, a pod of the other person is bound in time, and `/readyz` says what is so.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import servers
from tests.deploy.commands import team
from tests.manifests import make_object
from tests.play.kills import NODE
from tests.site import ROOT, TEAM, Door

BOUND_WITHIN_S = 10.0
STREAMS_OF_A_PERSON = 15
READY_EVERY_S = 0.5
SLACK_S = 3.0
"""Around the beginning and end of an outage `/readyz` may say either."""
PATIENCE_S = 120.0


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "team", help="a busy team's site with one deciding worker and broker outages"
    )
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--pods", type=int, default=300, help="of each run of a cluster")
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=600.0, help="at most an hour")
    parser.add_argument("--outage", type=float, default=6.0, help="seconds that the broker is away each time")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two outages")
    parser.set_defaults(
        measure=lambda options, folder, stops: be_busy(Round(**_given(options)), folder, stops)
    )


def _given(options: argparse.Namespace) -> dict[str, Any]:
    return {
        name: getattr(options, name) for name in ("clusters", "pods", "streams", "seconds", "outage", "every")
    }


@dataclass
class Round:
    """What is done, and what was seen."""

    clusters: int
    pods: int
    streams: int
    seconds: float
    outage: float
    every: float
    runs: int = 0
    bound_s: list[float] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    outages: list[tuple[float, float, str]] = field(default_factory=list)
    ready: list[tuple[float, float, dict[str, str]]] = field(default_factory=list)
    """When it was asked, when it answered, and the checks that were not ok."""
    violations: list[str] = field(default_factory=list)


def be_busy(round_: Round, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """The report; what did not hold is in its `violations`.

    Parameters
    ----------
    folder
        For data and logs.
    stops
        What ends the servers and processes.
    """
    found = servers.find_postgresql()
    if found is None or servers.redis_program() is None:
        raise SystemExit("PostgreSQL and Redis are needed")
    url, stop = found.start()
    stops.callback(stop)
    database, drop = servers.make_database(url, "team")
    stops.callback(drop)
    broker = Broker()
    stops.callback(broker.end)
    port = servers.free_port()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PLAYGROUND_")
    } | {
        **TEAM,
        "PLAYGROUND_DATA": str(folder),
        "DATABASE_URL": database,
        "CELERY_BROKER_URL": broker.url,
        "DJANGO_SETTINGS_MODULE": "playground.settings",
        "PYTHONPATH": str(ROOT),
    }
    n_people = -(-round_.streams // STREAMS_OF_A_PERSON) or 1
    tokens = json.loads(_run(environment, "-c", _PEOPLE.replace("N_PEOPLE", str(n_people + 1))))
    *busy, other = [Person(port, token) for token in tokens]
    processes = start(environment, port, folder, stops)
    _until(lambda: _quietly(busy[0].ready) == {}, "the site does not get ready")
    clusters = [(busy[index % len(busy)], index) for index in range(round_.clusters)]
    made = [(person, person.make(f"busy-{index}", round_.pods)) for person, index in clusters]
    own = other.make("own", 10)
    other.send("PUT", f"/api/v1/clusters/{own}/clock/", {"mode": "1x"})

    over = threading.Event()
    threads = [
        *(_Feeder(round_, over, *one) for one in made),
        *(_Stream(round_, over, *made[index % len(made)]) for index in range(round_.streams)),
        _Other(round_, over, other, own),
        _Readiness(round_, over, busy[0]),
        _Outages(round_, over, broker),
    ]
    began_s = time.monotonic()
    for thread in threads:
        thread.start()
    over.wait(min(round_.seconds, 3600.0))
    took_s = time.monotonic() - began_s
    over.set()
    for thread in threads:
        thread.join(10 * PATIENCE_S)
    _judge(round_, made, processes, folder)
    n_cycles = json.loads(_run(environment, "-c", _CYCLES))
    bound = sorted(round_.bound_s)
    return {
        "seconds": round(took_s, 1),
        "clusters": round_.clusters,
        "runs": round_.runs,
        "cycles": n_cycles,
        "cycles_per_s": round(n_cycles / took_s, 1),
        "streams": round_.streams,
        "events": dict(round_.events),
        "outages": [
            f"{how} at {at - began_s:.0f} s for {until - at:.1f} s" for at, until, how in round_.outages
        ],
        "bound_s": {
            "pods": len(bound),
            "p50": round(bound[len(bound) // 2], 2) if bound else None,
            "p99": round(bound[int(len(bound) * 0.99)], 2) if bound else None,
            "longest": round(bound[-1], 2) if bound else None,
        },
        "ready": Counter(", ".join(sorted(amiss)) or "ready" for _, _, amiss in round_.ready),
        "violations": round_.violations,
        "load": os.getloadavg()[0],
    }


_PEOPLE = """
import django, json
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from playground.accounts.models import User
from playground.accounts.tokens import create_token
print(json.dumps([create_token(user=User.objects.create_user(f"p{i}"), name="load")[1] for i in range(N_PEOPLE)]))
"""
_CYCLES = """
import django
django.setup()
from playground.clusters.models import Cycle
print(Cycle.objects.count())
"""


def _run(environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def start(
    environment: dict[str, str], port: int, folder: Path, stops: contextlib.ExitStack
) -> dict[str, subprocess.Popen[bytes]]:
    """The long-running commands of the README's team section, each once; name -> process."""
    processes = {}
    for line in team():
        program, *arguments = line.split()
        if program not in ("uvicorn", "celery"):
            continue
        name = program if program == "uvicorn" else arguments[-1]
        arguments += ["--port", str(port)] if program == "uvicorn" else ["--hostname", f"{name}@%h"]
        log = (folder / f"{name}.log").open("wb")
        stops.callback(log.close)
        process = subprocess.Popen(
            [sys.executable, "-m", program, *arguments], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        stops.callback(_end, process)
        processes[name] = process
    return processes


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Broker(servers.Redis):
    """A Redis that can be away: ended with all its messages, or stopped."""

    def away(self, seconds: float, over: threading.Event, *, killed: bool) -> None:
        if killed:
            self.end()
            over.wait(seconds)
            self.begin()
        else:
            self.process.send_signal(signal.SIGSTOP)
            over.wait(seconds)
            self.process.send_signal(signal.SIGCONT)


class Person(Door):
    """Speaks with the site by a token, and asks once."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(port, token=token, patience_s=0.0)

    def ready(self) -> dict[str, str]:
        """The checks of `/readyz` that are not ok."""
        checks: dict[str, str] = json.loads(self.ask("GET", "/readyz")[1])["checks"]
        return {name: said for name, said in checks.items() if said != "ok"}

    def make(self, name: str, n_pods: int) -> str:
        made: str = self.send("POST", "/api/v1/clusters/", {"name": name})["id"]
        nodes = [NODE | {"metadata": {"name": f"n{index}"}} for index in range(2 + n_pods // 50)]
        for node in nodes:
            node["status"] = {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}
        self.send(
            "POST", f"/api/v1/clusters/{made}/apply", {"apiVersion": "v1", "kind": "List", "items": nodes}
        )
        return made


def pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    return make_object("v1", "Pod", name, namespace="default", spec={"containers": [container]})


class _Thread(threading.Thread):
    def __init__(self, round_: Round, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.round, self.over = round_, over

    def run(self) -> None:
        try:
            self.live()
        except Exception as error:
            self.round.violations.append(f"{type(self).__name__}: {type(error).__name__}: {error}")

    def live(self) -> None:
        raise NotImplementedError


class _Feeder(_Thread):
    """Keeps one cluster busy: all pods go, others come, and it runs until they are decided."""

    def __init__(self, round_: Round, over: threading.Event, person: Person, cluster: str) -> None:
        super().__init__(round_, over)
        self.person, self.cluster = person, cluster

    def live(self) -> None:
        number, api = 0, f"/api/v1/clusters/{self.cluster}"
        while not self.over.is_set():
            number += 1
            if number > 1:
                path = f"/k8s/{self.cluster}/api/v1/namespaces/default/pods"
                self.person.send("DELETE", path, {"gracePeriodSeconds": 0})
            items = [pod(f"r{number}-{index}") for index in range(self.round.pods)]
            self.person.send("POST", f"{api}/apply", {"apiVersion": "v1", "kind": "List", "items": items})
            run = self.person.send("POST", f"{api}/run", {"until": "idle"})
            done, moved_s = -1, time.monotonic()
            while (run := self.person.send("GET", run["url"]))["state"] in ("queued", "running"):
                if run["cyclesDone"] != done:
                    done, moved_s = run["cyclesDone"], time.monotonic()
                if time.monotonic() - moved_s > PATIENCE_S:
                    raise OSError(f"a run stands still for {PATIENCE_S:g} s: {run}")
                time.sleep(0.5)
            if (run["state"], run["podsBound"]) != ("done", self.round.pods):
                raise OSError(f"not every pod was decided: {run}")
            self.round.runs += 1


class _Stream(_Thread):
    """Watches the events of a cluster."""

    def __init__(self, round_: Round, over: threading.Event, person: Person, cluster: str) -> None:
        super().__init__(round_, over)
        self.person, self.path = person, f"/api/v1/clusters/{cluster}/events"

    def live(self) -> None:
        with contextlib.closing(self.person.connect()) as connection:
            connection.request("GET", self.path, headers=self.person.headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(f"{self.path}: {answer.status}")
            while not self.over.is_set():
                line = answer.readline()
                if not line:
                    raise OSError("a stream of events ended")
                if line.startswith(b"event: "):
                    self.round.events[line[7:].strip().decode()] += 1


class _Other(_Thread):
    """Creates a pod at 1x, waits until it is on a node, and removes it."""

    def __init__(self, round_: Round, over: threading.Event, person: Person, cluster: str) -> None:
        super().__init__(round_, over)
        self.person, self.path = person, f"/k8s/{cluster}/api/v1/namespaces/default/pods"

    def live(self) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            began_s = time.monotonic()
            self.person.send("POST", self.path, pod(f"p{number}"))
            while not self.person.send("GET", f"{self.path}/p{number}")["spec"].get("nodeName"):
                if time.monotonic() - began_s > PATIENCE_S:
                    raise OSError(f"a pod of another person is not bound in {PATIENCE_S:g} s")
                time.sleep(0.1)
            took_s = time.monotonic() - began_s
            self.round.bound_s.append(took_s)
            if took_s > BOUND_WITHIN_S:
                self.round.violations.append(f"a pod of another person was bound after {took_s:.1f} s")
            self.person.send("DELETE", f"{self.path}/p{number}", {"gracePeriodSeconds": 0})
            self.over.wait(0.5)


class _Readiness(_Thread):
    """Asks for `/readyz`."""

    def __init__(self, round_: Round, over: threading.Event, person: Person) -> None:
        super().__init__(round_, over)
        self.person = person

    def live(self) -> None:
        while not self.over.wait(READY_EVERY_S):
            asked_s = time.monotonic()
            amiss = self.person.ready()
            self.round.ready.append((asked_s, time.monotonic(), amiss))


class _Outages(_Thread):
    """Takes the broker away now and then, by turns in each of the two ways."""

    def __init__(self, round_: Round, over: threading.Event, broker: Broker) -> None:
        super().__init__(round_, over)
        self.broker = broker

    def live(self) -> None:
        while not self.over.wait(self.round.every - self.round.outage):
            killed = len(self.round.outages) % 2 == 0
            began_s = time.monotonic()
            self.broker.away(self.round.outage, self.over, killed=killed)
            self.round.outages.append((began_s, time.monotonic(), "killed" if killed else "stopped"))


def _judge(
    round_: Round,
    made: list[tuple[Person, str]],
    processes: dict[str, subprocess.Popen[bytes]],
    folder: Path,
) -> None:
    say = round_.violations.append
    for name, process in processes.items():
        if process.poll() is not None:
            say(f"the process {name} ended: {process.returncode}")
        text = (folder / f"{name}.log").read_text(errors="replace")
        for words in ("is stuck", "the process that decides", "begins anew"):
            if words in text:
                say(f"{name} said: {next(line for line in text.splitlines() if words in line)[:300]}")
    for asked_s, answered_s, amiss in round_.ready:
        near = [
            (began_s, ended_s)
            for began_s, ended_s, _ in round_.outages
            if asked_s < ended_s + SLACK_S and answered_s > began_s - SLACK_S
        ]
        if set(amiss) - {"broker"} or (amiss and not near):
            say(f"/readyz said {amiss}, and that is not so")
        inside = [began_s + SLACK_S < asked_s and answered_s < ended_s for began_s, ended_s in near]
        if any(inside) and not amiss:
            say("/readyz said that all is well while the broker was away")
    for person, cluster in made:
        pods = person.send("GET", f"/k8s/{cluster}/api/v1/namespaces/default/pods")["items"]
        left = [item["metadata"]["name"] for item in pods if not item["spec"].get("nodeName")]
        if left:
            say(f"pods of {cluster} were not decided: {left[:5]}")


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until_s:
            raise SystemExit(otherwise)
        time.sleep(0.2)


def _quietly(ask: Callable[[], Any]) -> Any:
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
        return ask()
    return None
