import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]


def test_every_answer_carries_a_policy_without_anything_inline(client: Client) -> None:
    for path in ("/healthz", "/no-such-page-at-all/"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


def test_answers_may_not_be_framed_or_sniffed(client: Client) -> None:
    headers = client.get("/healthz").headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5:8000", "localhost.evil:80"]
)
def test_a_host_that_is_not_loopback_is_refused(client: Client, host: str) -> None:
    response = client.get("/healthz", headers={"host": host})
    assert response.status_code == 403
    assert host in response.content.decode()


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1234", "[::1]:8000"])
def test_loopback_hosts_are_served(client: Client, host: str) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    table(__file__, "a_foreign_page_may_not_change_anything"),
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_foreign_page_may_not_change_anything(client: Client, method: str, headers: dict[str, str]) -> None:
    response = client.generic(method, "/healthz", headers={"host": "localhost:8000", **headers})
    assert response.status_code == 403
    assert "may not change anything" in response.content.decode()


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}],
)
def test_tools_and_our_own_pages_pass(client: Client, headers: dict[str, str]) -> None:
    # 405: it came through to the view, which takes no POST.
    assert client.post("/healthz", headers={"host": "localhost:8000", **headers}).status_code == 405


def test_a_foreign_page_may_still_link_here(client: Client) -> None:
    headers = {"host": "localhost:8000", "sec-fetch-site": "cross-site"}
    assert client.get("/healthz", headers=headers).status_code == 200


def check(**environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py check --deploy` under another environment."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PLAYGROUND_DATA", "HOME")}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--tag", "security", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_team_mode_must_be_told_its_secret_and_its_hosts() -> None:
    result = check(PLAYGROUND_MODE="team")
    assert result.returncode != 0
    assert "team mode needs PLAYGROUND_SECRET_KEY and PLAYGROUND_HOSTS" in result.stderr


def test_an_unknown_mode_is_refused() -> None:
    assert 'PLAYGROUND_MODE: "teem" is none of embedded, team' in check(PLAYGROUND_MODE="teem").stderr


def test_djangos_own_deployment_check_finds_nothing_in_team_mode() -> None:
    result = check(
        PLAYGROUND_MODE="team",
        PLAYGROUND_HOSTS="playground.example",
        PLAYGROUND_SECRET_KEY="k3y-" * 20 + "abcdef",
    )
    assert result.returncode == 0, result.stderr


def test_the_secret_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    from playground.secret import load_or_create_secret_key

    path = tmp_path / "secret-key"
    key = load_or_create_secret_key(path)
    assert len(key) >= 50
    assert load_or_create_secret_key(path) == key
    assert path.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_request_that_is_too_large_is_refused_before_it_is_read(client: Client) -> None:
    response = client.generic("POST", "/healthz", data=b"x", headers={"content-length": str(50 * 2**20)})
    assert response.status_code == 413
    assert response.content == (
        b"This upload has 50 MB; at most 16 MB are taken."
        b" Pack a larger dump with gzip and upload the .gz file: it may have 128 MB unpacked.\n"
    )
