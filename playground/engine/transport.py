"""Extender calls over real HTTP, with a person's URL on one side and this server's network on the other.

One POST, no retries (as upstream), no redirects, no proxies, a bound on time and size, one judged address
(`outbound`). Requests of one list go out together. The calling thread only waits, and is told so regularly:
the holder of a lease renews it there.
"""

import http.client
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from email.message import Message
from pathlib import Path
from typing import Final

from playground.engine.outbound import (
    Destination,
    OutboundPolicy,
    OwnExtender,
    Resolve,
    URLRefused,
    destination,
    resolve_host,
)
from scheduler_core.config.types import ExtenderTLSConfig
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
MAX_TIMEOUT_S: Final = 60.0
MAX_AT_ONCE: Final = 8
WAITING_EVERY_S: Final = 5.0
DELAY_HEADER: Final = "X-Playground-Delay-Ns"
"""By it the playground's own mock extender says how long its answer took in virtual time."""
FAILURE_HEADER: Final = "X-Playground-Failure"
"""By it the mock extender says how the connection would have failed."""
TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A call as it went, for the record.

    Attributes
    ----------
    answer
        What the scheduler is told; `duration_ns` is virtual.
    took_ns
        Wall time.
    address
        ``ip:port`` called, empty if none was.
    """

    request: ExtenderRequest
    answer: ExtenderAnswer
    took_ns: int
    address: str


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Carries extender requests.

    Parameters
    ----------
    policy
        Who may be called.
    is_own
        Whether a path is that of one of the cluster's own mock extenders.
    measured
        Answers take the virtual time they took (a clock at 1x); else none, or what a mock rule says.
    may_read_files
        TLS files named by the configuration may be read (embedded mode: they are the person's own).
    while_waiting
        Called in the calling thread before the calls and every few seconds while they last; may raise.
    record
        Told of all calls of a list once they are over, in order.
    """

    policy: OutboundPolicy
    is_own: OwnExtender = lambda path: False
    measured: bool = False
    may_read_files: bool = False
    while_waiting: Callable[[], None] = lambda: None
    record: Callable[[Sequence[Exchanged]], None] = lambda exchanged: None
    resolve: Resolve = resolve_host

    def __call__(self, requests: Sequence[ExtenderRequest]) -> Sequence[ExtenderAnswer]:
        """Send all; their answers in the same order."""
        return [item.answer for item in self.exchange(requests)]

    def exchange(self, requests: Sequence[ExtenderRequest]) -> Sequence[Exchanged]:
        """Send all; how each went, in the same order."""
        if not requests:
            return []
        # Judged here, in the calling thread: `is_own` may ask a database.
        judged = [self._judged(request) for request in requests]
        self.while_waiting()
        with ThreadPoolExecutor(min(len(requests), MAX_AT_ONCE), "extender") as pool:
            futures = [
                pool.submit(self._exchange, request, place)
                for request, place in zip(requests, judged, strict=True)
            ]
            self._wait(futures)
        exchanged = [future.result() for future in futures]
        self.record(exchanged)
        return exchanged

    def _wait(self, futures: list[Future[Exchanged]]) -> None:
        left = set(futures)
        while left:
            _, left = wait(left, timeout=WAITING_EVERY_S)
            if left:
                self.while_waiting()

    def _judged(self, request: ExtenderRequest) -> Destination | URLRefused:
        try:
            return destination(request.url, self.policy, is_own=self.is_own, resolve=self.resolve)
        except URLRefused as refusal:
            return refusal

    def _exchange(self, request: ExtenderRequest, place: Destination | URLRefused) -> Exchanged:
        began = time.monotonic_ns()
        address = ""
        if isinstance(place, URLRefused):
            answer = ExtenderAnswer(error=f'Post "{request.url}": {place}')
        else:
            address = f"{place.address}:{place.port}"
            answer = self._ask(request, place)
        took_ns = time.monotonic_ns() - began
        if self.measured and not answer.duration_ns:
            answer = replace(answer, duration_ns=took_ns)
        return Exchanged(request, answer, took_ns, address)

    def _ask(self, request: ExtenderRequest, place: Destination) -> ExtenderAnswer:
        timeout_s = min(max(request.timeout_ns / 1e9, 0.001), MAX_TIMEOUT_S)
        deadline_s = time.monotonic() + timeout_s
        try:
            context = self._tls(request.tls) if place.scheme == "https" else None
        except (OSError, ssl.SSLError, ValueError) as error:
            return ExtenderAnswer(error=f'Post "{request.url}": tls: {error}')
        call = _Call(request, place, context, deadline_s)
        try:
            return call.run()
        except Exception as error:
            return ExtenderAnswer(error=f'Post "{request.url}": {_words(error, place, call.is_over)}')

    def _tls(self, tls: ExtenderTLSConfig | None) -> ssl.SSLContext:
        settings = tls or ExtenderTLSConfig()
        if not self.may_read_files and (settings.ca_file or settings.cert_file or settings.key_file):
            raise ValueError("files of this server are not read; give caData, certData and keyData")
        ca_data = settings.ca_data or _read(settings.ca_file)
        context = ssl.create_default_context(cadata=ca_data.decode("ascii") if ca_data else None)
        if settings.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = settings.cert_data or _read(settings.cert_file)
        key = settings.key_data or _read(settings.key_file)
        if certificate and key:  # as client-go: one without the other is no identity
            # The ssl module reads client certificates from files only.
            with tempfile.TemporaryDirectory(prefix="extender-") as folder:
                path = Path(folder, "client.pem")
                path.touch(mode=0o600)
                path.write_bytes(certificate + b"\n" + key)
                context.load_cert_chain(path)
        return context


@dataclass(slots=True)
class _Call:
    """One POST. A timer cuts the connection at the deadline: no answer can drip past it."""

    request: ExtenderRequest
    place: Destination
    context: ssl.SSLContext | None
    deadline_s: float
    is_over: bool = False
    _socket: socket.socket | None = None

    def run(self) -> ExtenderAnswer:
        place, left_s = self.place, self._left_s()
        timer = threading.Timer(left_s, self._cut)
        timer.daemon = True
        timer.start()
        connection = http.client.HTTPConnection(place.address, place.port)
        try:
            plain = socket.create_connection((place.address, place.port), timeout=left_s)
            self._socket = plain
            plain.settimeout(self._left_s())
            if self.context is not None:
                tls = self.request.tls
                name = (tls.server_name if tls is not None else "") or place.server_name
                self._socket = self.context.wrap_socket(plain, server_hostname=name)
            connection.sock = self._socket
            body = json.dumps(self.request.body, separators=(",", ":"), ensure_ascii=False).encode()
            headers = {
                "Host": place.host_header,
                "Content-Type": "application/json",
                "User-Agent": "kube-scheduler-playground",
                "Connection": "close",
            }
            connection.request("POST", place.target, body, headers)
            response = connection.getresponse()
            return self._answer(response)
        finally:
            timer.cancel()
            connection.close()
            if self._socket is not None:
                self._socket.close()

    def _answer(self, response: http.client.HTTPResponse) -> ExtenderAnswer:
        data = response.read(MAX_ANSWER_BYTES + 1)
        if self.is_over:  # a connection cut by us looks like an answer without a length that ended
            raise TimeoutError
        if len(data) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        if response.length:
            raise http.client.IncompleteRead(data, response.length)
        text = data.decode("utf-8", errors="replace")
        if not self.place.is_own:
            return ExtenderAnswer(response.status, text)
        return self._own_answer(response.status, text, response.headers)

    def _own_answer(self, status: int, text: str, headers: Message) -> ExtenderAnswer:
        """The playground's mock extender does not sleep or hang up: it says that it would have."""
        said = headers.get(DELAY_HEADER, "")
        delay_ns = int(said) if said.isdecimal() else 0
        url = self.request.url
        if delay_ns >= self.request.timeout_ns:
            return ExtenderAnswer(error=f'Post "{url}": {TIMED_OUT}', duration_ns=self.request.timeout_ns)
        failure = headers.get(FAILURE_HEADER, "")
        if failure:
            return ExtenderAnswer(error=f'Post "{url}": {failure}', duration_ns=delay_ns)
        return ExtenderAnswer(status, text, None, delay_ns)

    def _left_s(self) -> float:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            self.is_over = True
            raise TimeoutError
        return left_s

    def _cut(self) -> None:
        self.is_over = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                self._socket.close()


def _read(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""


def _words(error: Exception, place: Destination, is_over: bool) -> str:
    """What Go's client would say, as far as the cases correspond."""
    if is_over or isinstance(error, TimeoutError):
        return TIMED_OUT
    address = f"[{place.address}]" if ":" in place.address else place.address
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {address}:{place.port}: connect: connection refused"
    if isinstance(error, ssl.SSLCertVerificationError):
        # OpenSSL ends some of its reasons as sentences, and this is put into one.
        return f"tls: failed to verify certificate: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    if isinstance(error, (http.client.IncompleteRead, http.client.RemoteDisconnected)):
        return "unexpected EOF" if isinstance(error, http.client.IncompleteRead) else "EOF"
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(error, OSError):
        return f"dial tcp {address}:{place.port}: {error.strerror or error}"
    return str(error) or type(error).__name__
