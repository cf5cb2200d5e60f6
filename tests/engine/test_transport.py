"""Extender calls over real sockets: bounds, refusals, TLS, the address that is pinned."""

import ssl
import subprocess
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from playground.engine.outbound import OutboundPolicy, OwnSite, URLRefused, destination
from playground.engine.transport import Exchanged, HttpTransport
from scheduler_core.config.types import ExtenderTLSConfig
from scheduler_core.extender.transport import ExtenderRequest
from scheduler_core.schema.tables import table_of
from tests.engine.extender_server import serving
from tests.tables import table

ADDRESSES = table_of((Path(__file__).parent / "data" / "addresses.yaml").read_text())

LISTED = OutboundPolicy(allowed_hosts=frozenset({"127.0.0.1", "localhost"}))


def request(url: str, timeout_s: float = 5, tls: ExtenderTLSConfig | None = None) -> ExtenderRequest:
    return ExtenderRequest(url, {"NodeNames": ["a", "b"]}, int(timeout_s * 1e9), tls, "filter", 0)


def ask(url: str, timeout_s: float = 5, tls: ExtenderTLSConfig | None = None, **how: Any) -> Any:
    return HttpTransport(**({"policy": LISTED} | how))([request(url, timeout_s, tls)])[0]


def test_a_request_is_posted_as_json_and_its_answer_comes_back_recorded() -> None:
    record: list[Exchanged] = []
    with serving(lambda path, body: {"NodeNames": body["NodeNames"][:1]}) as server:
        url = f"http://127.0.0.1:{server.port}/s/filter"
        answer = ask(url, record=record.extend)
    assert (answer.status, answer.text, answer.error, answer.duration_ns) == (
        200,
        '{"NodeNames": ["a"]}',
        None,
        0,
    )
    assert server.log == [("/s/filter", {"NodeNames": ["a", "b"]})]
    assert record[0].took_ns > 0 and record[0].address == f"127.0.0.1:{server.port}"


def test_requests_of_one_list_are_under_way_together_and_answered_in_order() -> None:
    with serving(lambda path, body: {"path": path}) as server:
        requests = [request(f"http://127.0.0.1:{server.port}/{number}") for number in range(5)]
        answers = HttpTransport(LISTED)(requests)
    assert [answer.text for answer in answers] == [f'{{"path": "/{number}"}}' for number in range(5)]


@pytest.mark.parametrize(("how", "words"), table(__file__, "an_extender_that_misbehaves_is_an_error_in_time"))
def test_an_extender_that_misbehaves_is_an_error_in_time(how: str, words: str) -> None:
    with serving(lambda path, body: getattr(server, how)) as server:
        began = time.monotonic()
        answer = ask(f"http://127.0.0.1:{server.port}/x", 5 if how in ("cut", "flood") else 0.4)
        assert time.monotonic() - began < 3
    assert answer.status == 0 and words in answer.error
    assert answer.error.startswith(f'Post "http://127.0.0.1:{server.port}/x": ')
    assert len(server.log) == 1  # no retries


def test_a_refused_connection_is_said_in_gos_words() -> None:
    assert ask("http://127.0.0.1:9/x").error == (
        'Post "http://127.0.0.1:9/x": dial tcp 127.0.0.1:9: connect: connection refused'
    )


def test_redirects_are_not_followed() -> None:
    def redirect(handler: Any) -> None:
        handler.send_response(307)
        handler.send_header("Location", f"http://127.0.0.1:{server.port}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving(lambda path, body: redirect) as server:
        answer = ask(f"http://127.0.0.1:{server.port}/x")
    assert (answer.status, [path for path, _ in server.log]) == (307, ["/x"])


def test_a_failure_status_is_handed_on() -> None:
    def fail(handler: Any) -> None:
        handler.send_error(503)

    with serving(lambda path, body: fail) as server:
        assert ask(f"http://127.0.0.1:{server.port}/x").status == 503


def test_the_holder_of_a_lease_is_called_while_waiting_and_can_give_up() -> None:
    class Lost(Exception):
        pass

    def lose() -> None:
        raise Lost

    with serving(lambda path, body: {}) as server, pytest.raises(Lost):
        ask(f"http://127.0.0.1:{server.port}/x", while_waiting=lose)
    assert server.log == []


def test_at_one_to_one_an_answer_takes_the_time_it_took() -> None:
    with serving(lambda path, body: {}) as server:
        assert ask(f"http://127.0.0.1:{server.port}/x", measured=True).duration_ns > 0


# ---- where a URL may lead


@pytest.mark.parametrize(
    ("address", "allowed"),
    [(each, name == "public") for name, listed in ADDRESSES.items() for each in listed],
)
def test_only_public_addresses_are_called(address: str, allowed: bool) -> None:
    def judge() -> Any:
        return destination(
            "http://extender.example/f", OutboundPolicy(), resolve=lambda host, port: [address]
        )

    if allowed:
        assert ip_address(judge().address) == ip_address(address)
    else:
        with pytest.raises(URLRefused):
            judge()


@pytest.mark.parametrize("address", table(__file__, "metadata_addresses_are_never_called_even_when_listed"))
def test_metadata_addresses_are_never_called_even_when_listed(address: str) -> None:
    policy = OutboundPolicy(allowed_hosts=frozenset({"metadata.example"}), only_allowed=True)
    with pytest.raises(URLRefused, match="no extender may have"):
        destination("http://metadata.example/", policy, resolve=lambda host, port: [address])


@pytest.mark.parametrize("address", ["fec0::1", "64:ff9b:1::a00:1", "fd00::7", "10.0.0.5", "127.0.0.1"])
def test_an_address_inside_may_be_called_once_its_host_is_listed(address: str) -> None:
    policy = OutboundPolicy(allowed_hosts=frozenset({"inside.example"}))
    found = destination("http://inside.example/", policy, resolve=lambda host, port: [address])
    assert found.address == address


def test_a_name_that_leads_elsewhere_at_the_second_look_gains_nothing() -> None:
    answers = iter((["93.184.215.14"], ["fec0::1"]))
    policy = OutboundPolicy()
    first = destination("http://x.example/", policy, resolve=lambda host, port: next(answers))
    assert first.address == "93.184.215.14"
    with pytest.raises(URLRefused, match="inside this server's network"):
        destination("http://x.example/", policy, resolve=lambda host, port: next(answers))


def test_one_bad_address_among_good_ones_is_enough() -> None:
    with pytest.raises(URLRefused):
        destination(
            "http://x.example/", OutboundPolicy(), resolve=lambda host, port: ["93.184.215.14", "10.0.0.1"]
        )


def test_a_team_calls_only_listed_hosts() -> None:
    policy = OutboundPolicy(allowed_hosts=frozenset({"extender.team:8443"}), only_allowed=True)
    inside = destination("https://extender.team:8443/f", policy, resolve=lambda host, port: ["10.0.0.5"])
    assert (inside.address, inside.server_name) == ("10.0.0.5", "extender.team")
    for url in ("https://extender.team/f", "https://elsewhere.team:8443/f", "http://93.184.215.14/"):
        with pytest.raises(URLRefused, match="not on the list"):
            destination(url, policy, resolve=lambda host, port: ["93.184.215.14"])


@pytest.mark.parametrize("url", table(__file__, "odd_urls_are_refused"))
def test_odd_urls_are_refused(url: str) -> None:
    with pytest.raises(URLRefused):
        destination(url, OutboundPolicy(), resolve=lambda host, port: ["93.184.215.14"])


def test_a_name_is_resolved_once_and_the_address_judged_is_the_one_called() -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.9.9.9"]

    policy = OutboundPolicy(allowed_hosts=frozenset({"rebinding.example"}))
    with serving(lambda path, body: {}) as server:
        answer = ask(f"http://rebinding.example:{server.port}/x", policy=policy, resolve=resolve)
    assert (answer.status, asked) == (200, ["rebinding.example"])


def test_the_own_mock_extender_is_known_by_its_id_not_by_a_host() -> None:
    with serving(lambda path, body: {}) as server:
        own = OwnSite("127.0.0.1", server.port, "localhost")
        policy = OutboundPolicy(only_allowed=True, own_site=own)

        def is_own(path: str) -> bool:
            return path.startswith("/mock-extenders/abc/")

        found = ask("http://any.example/mock-extenders/abc/filter", policy=policy, is_own=is_own)
        assert found.status == 200
        other = ask(f"http://127.0.0.1:{server.port}/mock-extenders/xyz/filter", policy=policy, is_own=is_own)
        assert "not on the list" in other.error
    assert [path for path, _ in server.log] == ["/mock-extenders/abc/filter"]


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-days", "2", "-subj", "/CN=x"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


def test_https_checks_the_certificate_against_the_ca_or_not_at_all_when_insecure(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    ca = (certificate / "cert").read_bytes()
    with serving(lambda path, body: {}, context) as server:
        url = f"https://localhost:{server.port}/x"
        refused = ask(url).error
        assert "failed to verify certificate" in refused and not refused.endswith("."), (
            "it is put into a sentence"
        )
        assert ask(url, tls=ExtenderTLSConfig(ca_data=ca)).status == 200
        assert ask(url, tls=ExtenderTLSConfig(insecure=True)).status == 200
        wrong = ask(url, tls=ExtenderTLSConfig(ca_data=ca, server_name="other.example"))
        assert "failed to verify certificate" in wrong.error and not wrong.error.endswith(".")
        assert ask(url, tls=ExtenderTLSConfig(ca_data=b"nonsense")).error.startswith(f'Post "{url}": tls: ')


def test_a_client_certificate_is_shown_where_configured(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    context.load_verify_locations(certificate / "cert")
    context.verify_mode = ssl.CERT_REQUIRED
    cert, key = (certificate / "cert").read_bytes(), (certificate / "key").read_bytes()
    with serving(lambda path, body: {}, context) as server:
        url = f"https://localhost:{server.port}/x"
        assert ask(url, tls=ExtenderTLSConfig(ca_data=cert)).error is not None
        shown = ExtenderTLSConfig(ca_data=cert, cert_data=cert, key_data=key)
        assert ask(url, tls=shown).status == 200
        # One without the other is none, and a server that asks for one ends the handshake.
        half = ask(url, tls=ExtenderTLSConfig(ca_data=cert, cert_data=cert)).error
        assert half is not None and "PEM" not in half


def test_files_of_the_server_are_read_only_where_they_are_the_persons_own(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    named = ExtenderTLSConfig(ca_file=str(certificate / "cert"))
    with serving(lambda path, body: {}, context) as server:
        url = f"https://localhost:{server.port}/x"
        assert "files of this server are not read" in ask(url, tls=named).error
        assert ask(url, tls=named, may_read_files=True).status == 200
