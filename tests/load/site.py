"""Pods a second through the site: over REST into a cluster, and run until idle: ``python -m tests.load site``.

For each size, kind of pods and database: how long the POST of the pods took, how long the run, what processor time
went into a pod, the core's own figures of the same minute (the whole simulated cluster in one process, summaries
alone), what the database grew by per 1,000 cycles of the run, the longest time without progress, and the most memory
any process of the site took.
"""

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playground.play.processes import descendants
from tests import servers
from tests.manifests import node, pod
from tests.play import started

ROOT = Path(__file__).resolve().parents[2]
POSTED_AT_ONCE = 5000
N_CLASSES = 5
WATCHED_EVERY_S = 0.05


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "site", help="pods a second through REST and run, beside the core's own figure"
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--kinds", nargs="+", choices=("replicas", "mixed"), default=["replicas", "mixed"])
    parser.add_argument(
        "--on",
        nargs="+",
        choices=("sqlite", "postgresql"),
        default=["sqlite", "postgresql"],
        dest="databases",
    )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=0,
        help="pods before those measured: what a site allocates once is no growth",
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--clusters", type=int, default=1, help="run side by side, each with so many pods: figures are sums"
    )
    parser.add_argument("--core", nargs=3, metavar=("NODES", "PODS", "KIND"), help=argparse.SUPPRESS)
    parser.set_defaults(measure=measure_site)


def measure_site(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    if options.core:
        return core_figure(int(options.core[0]), int(options.core[1]), options.core[2])
    rows = []
    for database in options.databases:
        with contextlib.ExitStack() as ends:
            site = Site(database, folder / database, options.workers, ends)
            for n_nodes in options.nodes:
                for kind in options.kinds:
                    row = {"database": database, "nodes": n_nodes, "pods": kind}
                    row |= site.run(
                        n_nodes, options.pods, kind, n_clusters=options.clusters, warm_up=options.warm_up
                    )
                    row |= _core(n_nodes, options.pods, kind)
                    rows.append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
            peak = site.peak_mb()
        rows.append({"database": database, "peak_mb": peak})
    return {
        "pods": options.pods,
        "workers": options.workers,
        "clusters": options.clusters,
        "rows": rows,
        "load": os.getloadavg()[0],
    }


def nodes(number: int) -> list[dict[str, Any]]:
    made = [
        node(f"n{index}", "32", "128Gi", labels={"topology.kubernetes.io/zone": f"z{index % 3}"})
        for index in range(number)
    ]
    for one in made:
        one["status"]["capacity"] = one["status"]["allocatable"]
    return made


def pods(number: int, kind: str, prefix: str = "p") -> list[dict[str, Any]]:
    """`replicas` are of five classes; `mixed` all ask for something else."""

    def requests(index: int) -> dict[str, str]:
        if kind == "mixed":
            return {"cpu": f"{1 + (100 + index) % 1500}m", "memory": f"{1 + (64 + index) % 2000}Mi"}
        size = 1 + index % N_CLASSES
        return {"cpu": f"{100 * size}m", "memory": f"{128 * size}Mi"}

    made = [pod(f"{prefix}{index}", labels={"app": f"a{index % N_CLASSES}"}) for index in range(number)]
    for index, one in enumerate(made):
        one["spec"]["containers"][0]["resources"]["requests"] = requests(index)
    return made


def core_figure(n_nodes: int, n_pods: int, kind: str) -> dict[str, Any]:
    """The simulated cluster alone: from the first cycle until it is idle."""
    from scheduler_core.sim.changes import WriteObject
    from scheduler_core.sim.options import SimulationOptions
    from scheduler_core.sim.simulation import Simulation

    simulation = Simulation(seed=7, options=SimulationOptions(full_traces=False, default_tolerations=True))
    for manifest in [*nodes(n_nodes), *pods(n_pods, kind)]:
        manifest["metadata"] |= {"uid": manifest["metadata"]["name"]}
        if manifest["kind"] == "Pod":
            manifest["spec"]["schedulerName"] = "default-scheduler"
        simulation.submit(WriteObject(manifest))
    simulation.advance(0, max_cycles=0)
    began, began_cpu = time.perf_counter(), time.process_time()
    cycles = simulation.run_until_idle(max_cycles=10 * n_pods).cycles
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    return {"core_per_s": round(cycles / took_s), "core_cpu_ms_per_pod": round(1000 * cpu_s / cycles, 3)}


def _core(n_nodes: int, n_pods: int, kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.load", "site", "--core", str(n_nodes), str(n_pods), kind]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    )
    return found


class Site:
    """`manage.py play` on a database of its own."""

    def __init__(self, database: str, folder: Path, workers: int, ends: contextlib.ExitStack) -> None:
        variables: dict[str, str] = {}
        self._size = self._sqlite_bytes(folder / "playground.sqlite3")
        if database == "postgresql":
            found = servers.find_postgresql()
            if found is None:
                raise SystemExit("PostgreSQL is needed; say --on sqlite to do without")
            url, stop = found.start()
            ends.callback(stop)
            variables["DATABASE_URL"], drop = servers.make_database(url, "load_site")
            ends.callback(drop)
            self._size = self._postgresql_bytes(variables["DATABASE_URL"])
        options = ["--workers", str(workers)]
        self._site = started.Site(
            folder, servers.free_port(), variables=variables, options=options, answer_s=60.0
        )
        ends.callback(self._site.stop)
        self._site.wait_until_ready()

    def run(
        self, n_nodes: int, n_pods: int, kind: str, *, n_clusters: int = 1, warm_up: int = 0
    ) -> dict[str, Any]:
        """`n_pods` in each of `n_clusters`, which are run side by side; figures of all of them together."""
        clusters = [self._make(f"{kind}-{n_nodes}-{number}", n_nodes) for number in range(n_clusters)]
        for cluster in clusters:
            self._post(cluster, pods(warm_up, kind, "warm-"))
        self._finish(clusters, n_pods=warm_up)
        before = self._size()
        began = time.monotonic()
        for cluster in clusters:
            self._post(cluster, pods(n_pods, kind))
        posted_s = time.monotonic() - began
        posted = self._size()
        cpu = _cpu_seconds(os.getpid())
        ran_s, longest_s = self._finish(clusters, n_pods=n_pods)
        all_pods = n_pods * n_clusters
        spent = {pid: seconds - cpu.get(pid, 0.0) for pid, seconds in _cpu_seconds(os.getpid()).items()}
        after = self._size()
        return {
            "per_s": round(all_pods / ran_s),
            # Of the process that decides most, and of all others; a busy machine does not change them much.
            "worker_cpu_ms_per_pod": round(1000 * max(spent.values()) / all_pods, 3),
            "others_cpu_ms_per_pod": round(1000 * (sum(spent.values()) - max(spent.values())) / all_pods, 3),
            "per_s_with_post": round(all_pods / (posted_s + ran_s)),
            "posted_s": round(posted_s, 2),
            "ran_s": round(ran_s, 2),
            "longest_without_progress_s": round(longest_s, 2),
            "mb_per_1000_cycles": round((after - posted) / all_pods / 1000, 2),
            "mb_per_1000_pods_posted": round((posted - before) / all_pods / 1000, 2),
        }

    def _make(self, name: str, n_nodes: int) -> str:
        made = self._site.send("POST", "/api/v1/clusters/", {"name": name})
        cluster = f"/api/v1/clusters/{made['id']}"
        self._post(cluster, nodes(n_nodes))
        return cluster

    def _post(self, cluster: str, objects: list[dict[str, Any]]) -> None:
        for part in _parts(objects):
            self._site.send("POST", f"{cluster}/apply", {"apiVersion": "v1", "kind": "List", "items": part})

    def _finish(self, clusters: list[str], *, n_pods: int) -> tuple[float, float]:
        """Run all until idle; seconds, and the longest that one of them stood without a step ahead."""
        began = time.monotonic()
        runs = [self._site.send("POST", f"{cluster}/run", {"until": "idle"}) for cluster in clusters]
        moved, longest, going = [began] * len(runs), 0.0, set(range(len(runs)))
        while going:
            time.sleep(WATCHED_EVERY_S)
            for number in sorted(going):
                run, done = self._site.send("GET", runs[number]["url"]), runs[number]["cyclesDone"]
                now = time.monotonic()
                if run["cyclesDone"] != done:
                    longest, moved[number] = max(longest, now - moved[number]), now
                if now - moved[number] > 120:
                    raise SystemExit(f"the run stands still: {run}")
                if run["state"] not in ("queued", "running"):
                    going.remove(number)
                    if run["podsBound"] != n_pods:
                        raise SystemExit(f"{run['podsBound']} of {n_pods} pods were bound: {run}")
                runs[number] = run
        return time.monotonic() - began, longest

    def peak_mb(self) -> int | None:
        """The most any process below this one took, as Linux tells it."""
        peaks = [peak for pid in descendants(os.getpid()) if (peak := _peak_mb(pid)) is not None]
        return max(peaks, default=None)

    @staticmethod
    def _sqlite_bytes(path: Path) -> Callable[[], int]:
        def size() -> int:
            with contextlib.closing(sqlite3.connect(path, timeout=20)) as database:
                database.execute("PRAGMA wal_checkpoint(PASSIVE)")
                (pages,) = database.execute("PRAGMA page_count").fetchone()
                (page_size,) = database.execute("PRAGMA page_size").fetchone()
            return int(pages * page_size)

        return size

    @staticmethod
    def _postgresql_bytes(url: str) -> Callable[[], int]:
        def size() -> int:
            import psycopg

            with psycopg.connect(url, autocommit=True) as connection:
                row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row is not None
            return int(row[0])

        return size


def _parts(objects: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(objects), POSTED_AT_ONCE):
        yield objects[start : start + POSTED_AT_ONCE]


def _cpu_seconds(pid: int) -> dict[int, float]:
    """Processor seconds of each process below this one so far, as Linux tells them."""
    spent: dict[int, float] = {}
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            spent[child] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def _peak_mb(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return None
