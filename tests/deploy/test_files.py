"""The files under deploy/ are what their readers take, and run the commands that the README tells people to run."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.deploy.commands import ROOT, commands, team

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
LANES = ("decide", "ask", "make")


def words(line: str) -> list[str]:
    """A command line's words; the lanes a worker is for are each way's own choice."""
    return shlex.split(line.partition(" -Q ")[0])


MIGRATE, WEB, WORKER = (
    words(next(line for line in team() if line.startswith(begin)))
    for begin in ("python manage.py migrate", "uvicorn ", "celery ")
)


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def manifests() -> list[dict[str, Any]]:
    paths = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    return [
        document
        for path in paths
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / path).read_text())
    ]


def unit(path: Path) -> configparser.RawConfigParser:
    read = configparser.RawConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(path)
    return read


def started() -> Iterator[tuple[str, list[str]]]:
    """Where a process of the site is started, and its command line."""
    for name, service in compose()["services"].items():
        if "build" in service:
            yield f"compose {name}", shlex.split(service["command"])
    for path in UNITS:
        yield (
            path.name,
            shlex.split(unit(path)["Service"]["ExecStart"].removeprefix("/opt/playground/.venv/bin/")),
        )
    for item in manifests():
        if item["kind"] in ("Deployment", "Job"):
            [container] = item["spec"]["template"]["spec"]["containers"]
            yield f"kubernetes {item['metadata']['name']}", container["command"]
    yield "Dockerfile", json.loads(next(rest for name, rest in instructions() if name == "CMD"))


def test_every_process_is_started_by_a_command_of_the_readme() -> None:
    where = dict(started())
    assert len(where) == 5 + 5 + 5 + 1
    for name, command in where.items():
        assert any(command[: len(told)] == told for told in (MIGRATE, WEB, WORKER)), (name, command)


def test_each_way_to_run_it_migrates_and_has_web_processes_and_workers_for_every_lane() -> None:
    for way in ("compose", "playground-", "kubernetes"):
        found = [command for name, command in started() if name.startswith(way)]
        assert MIGRATE in found
        assert any(command[: len(WEB)] == WEB for command in found)
        lanes = [command[command.index("-Q") + 1] for command in found if command[: len(WORKER)] == WORKER]
        assert sorted(lanes) == sorted(LANES)


def test_the_image_is_installed_as_the_readme_says_from_what_the_tree_has_and_runs_as_no_root() -> None:
    lines = instructions()
    assert ("RUN", team()[0]) in lines
    assert next(rest for name, rest in lines if name == "USER") == "10001:10001"
    assert lines[0] == ("FROM", "python:3.13-slim")
    taken = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in taken if line.startswith("!")}
    assert all((ROOT / path).exists() for path in kept)
    assert {
        "playground",
        "scheduler_core",
        "templates",
        "static",
        "docs",
        "manage.py",
        "constraints.txt",
    } <= kept


def test_compose_names_only_what_it_has() -> None:
    book = compose()
    for name, service in book["services"].items():
        needs = service.get("depends_on", [])
        assert set(needs) <= set(book["services"]), name
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert {volume for volume in volumes if not volume.startswith(".")} <= set(book["volumes"]), name
        if "build" in service and name != "migrate":
            assert service["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
            assert service["restart"] == "unless-stopped"
    assert book["services"]["web"]["deploy"]["replicas"] > 1
    assert book["services"]["redis"]["command"].endswith("--appendonly yes")


def test_all_settings_that_are_named_are_settings() -> None:
    known = set(
        re.findall(r"^(PLAYGROUND_[A-Z_]+|[A-Z_]+_URL) ", (ROOT / "playground/settings.py").read_text(), re.M)
    )
    named = {
        name
        for path in DEPLOY.rglob("*")
        if path.is_file()
        for name in re.findall(r"\b(PLAYGROUND_[A-Z_]+|(?:DATABASE|CELERY_BROKER)_URL)\b", path.read_text())
    }
    assert named - {"PLAYGROUND_UPSTREAM"} <= known


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_read_by_systemd_and_confined(path: Path, tmp_path: Path) -> None:
    service = unit(path)["Service"]
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == (
        "playground",
        "yes",
        "strict",
    )
    assert service.get("Restart") == "always" or service["Type"] == "oneshot"
    if verify := shutil.which("systemd-analyze"):
        for other in (*UNITS, DEPLOY / "systemd/playground.target"):
            # What they run is not installed here.
            text = re.sub(r"/opt/playground/\.venv/bin/\w+", "/bin/true", other.read_text())
            (tmp_path / other.name).write_text(text)
        done = subprocess.run(
            [verify, "--recursive-errors=no", "verify", str(tmp_path / path.name.replace("@", "@1"))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_target_starts_every_template() -> None:
    wanted = re.findall(
        r"playground-(\w+)@(\w+)\.service", (DEPLOY / "systemd/playground.target").read_text()
    )
    assert {name for name, _ in wanted} == {"web", *LANES}
    ports = [number for name, number in wanted if name == "web"]
    assert len(ports) > 1
    upstream = re.findall(r"server 127\.0\.0\.1:(\d+);", (DEPLOY / "systemd/nginx.conf").read_text())
    assert upstream == ports


@pytest.mark.parametrize("path", ["systemd/nginx.conf", "Caddyfile"])
def test_the_proxies_speak_https_and_keep_what_is_for_the_machine_inside(path: str, tmp_path: Path) -> None:
    text = (DEPLOY / path).read_text()
    assert text.count("{") == text.count("}")
    assert "metrics" in text and "mock-extenders" in text
    if path.endswith(".conf"):
        assert "proxy_set_header X-Forwarded-Proto https;" in text
        assert "return 301 https://" in text
    if path.endswith(".conf") and (nginx := shutil.which("nginx")):
        made = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout tls.key"
        )
        subprocess.run([*made.split(), "-out", "tls.crt"], cwd=tmp_path, check=True, capture_output=True)
        inner = text.replace("/etc/playground/", f"{tmp_path}/")
        whole = tmp_path / "nginx.conf"
        whole.write_text(
            f"pid {tmp_path}/pid; error_log stderr; events {{}}\nhttp {{ access_log off;\n{inner}\n}}"
        )
        done = subprocess.run([nginx, "-t", "-c", str(whole)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_manifests_belong_together() -> None:
    found = manifests()
    deployments = {item["metadata"]["name"]: item for item in found if item["kind"] == "Deployment"}
    assert set(deployments) == {"web", *LANES}
    for name, item in deployments.items():
        spec = item["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"], name
        pod = spec["template"]["spec"]
        [container] = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }
        assert pod["securityContext"]["runAsNonRoot"] and container["resources"]["requests"]
    assert deployments["web"]["spec"]["replicas"] > 1
    [container] = deployments["web"]["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    [service] = [item for item in found if item["kind"] == "Service"]
    assert service["spec"]["selector"] == deployments["web"]["spec"]["selector"]["matchLabels"]


@pytest.mark.kubectl
@pytest.mark.django_db
def test_the_kustomize_base_is_built_and_taken_by_an_api_server(wakes: list[Any]) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True, check=True
    ).stdout
    cluster = create_cluster(name="a cluster for the site")
    result = apply_documents(cluster=cluster, text=built)
    taken = {(item.kind, item.name.split("-")[0]) for item in result.created}
    assert {("Deployment", name) for name in ("web", *LANES)} | {
        ("Job", "migrate"),
        ("Namespace", "playground"),
    } <= taken
    assert Cluster.objects.get().pk == cluster.pk


def test_the_book_tells_how_to_install_back_up_restore_and_upgrade() -> None:
    upgrade = commands("deploy/README.md", "Upgrade")
    assert upgrade == [team()[0], " ".join(MIGRATE)]
    assert any(line.startswith("pg_dump ") for line in commands("deploy/README.md", "Back up"))
    restore = commands("deploy/README.md", "Restore")
    assert [line.split()[0] for line in restore] == ["pg_restore", "python"]
    install = commands("deploy/README.md", "Install")
    paths = {path for line in install for path in re.findall(r"\bdeploy/[\w./*-]+", line)} - {
        "deploy/site.env",
        "deploy/.env",
        "deploy/web",
    }
    assert all(list(ROOT.glob(path)) for path in paths), paths
