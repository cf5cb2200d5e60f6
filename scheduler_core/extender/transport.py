"""The port through which extenders are spoken to: the core opens no socket, its caller carries requests.

A transport takes a list of requests and gives their answers in the same order, once all are there. Requests of
one list may be under way at the same time: upstream sends the prioritize calls of all extenders together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.config.types import ExtenderTLSConfig

HTTP_OK = 200


@dataclass(frozen=True, slots=True)
class ExtenderRequest:
    """One HTTP POST to an extender, with `Content-Type: application/json`.

    Attributes
    ----------
    url : str
    body : object
        JSON-able; not to be changed, parts of it are shared between requests.
    timeout_ns : int
        Of the whole exchange.
    tls : ExtenderTLSConfig or None
        None means the transport's own trust. `insecure` is set where upstream does not verify.
    verb : str
        What is asked: `filter`, `prioritize`, `preempt` or `bind` (whatever the URL calls it).
    extender_index : int
        Which extender of the configuration.
    """

    url: str
    body: Any
    timeout_ns: int
    tls: ExtenderTLSConfig | None
    verb: str
    extender_index: int


@dataclass(frozen=True, slots=True)
class ExtenderAnswer:
    """What came back.

    Attributes
    ----------
    status : int
        HTTP status; 0 when none came.
    text : str
        The body.
    error : str or None
        There is no answer, and why: no connection, a timeout.
    duration_ns : int
        Virtual time the exchange took.
    """

    status: int = 0
    text: str = ""
    error: str | None = None
    duration_ns: int = 0


Transport = Callable[[Sequence[ExtenderRequest]], Sequence[ExtenderAnswer]]


@dataclass(frozen=True, slots=True)
class ExtenderCall:
    """A request and its answer, for the trace.

    Attributes
    ----------
    error : str or None
        Why the extender's word did not count, in the scheduler's words; None when it did.
    ignored : bool
        There was an error, and the cycle went on without this extender.
    """

    request: ExtenderRequest
    answer: ExtenderAnswer
    error: str | None = None
    ignored: bool = False

    def explain(self) -> dict[str, Any]:
        """JSON-able, as in `CycleTrace.explain()["extenders"]`."""
        return {
            "url": self.request.url,
            "verb": self.request.verb,
            "request": self.request.body,
            "answer": self.answer.text,
            "status": self.answer.status or None,
            "durationMs": self.answer.duration_ns / 1_000_000,
            "error": self.error,
            "ignored": self.ignored,
        }


def no_transport(requests: Sequence[ExtenderRequest]) -> Sequence[ExtenderAnswer]:
    """A transport that reaches no extender."""
    return [
        ExtenderAnswer(error=f'Post "{request.url}": there is no way out of this cluster')
        for request in requests
    ]


def effective_tls(tls: ExtenderTLSConfig | None, enable_https: bool) -> ExtenderTLSConfig | None:
    """TLS settings as upstream makes its client with them.

    Source: pkg/scheduler/extender.go makeTransport, v1.34
    """
    settings = tls or ExtenderTLSConfig()
    has_ca = bool(settings.ca_file or settings.ca_data)
    if enable_https and not has_ca and not settings.insecure:
        return dataclasses.replace(settings, insecure=True)
    return tls
