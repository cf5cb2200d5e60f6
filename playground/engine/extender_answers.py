"""Between a simulation and extenders: their answers are inputs, so that a replay never calls out again.

A simulation holds one transport for life. While a batch is driven, the relay passes calls on and writes each
answer down; while a stretch of log is replayed, it gives the answers the log holds, in the same order.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from playground.engine.entries import ExtenderEntry
from scheduler_core.config.wire import Problems
from scheduler_core.errors import ConfigurationError
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest, Transport, no_transport
from scheduler_core.scenario.cassette import subject_digest
from scheduler_core.scenario.form import part_of
from scheduler_core.scenario.mock_extender import LabelsOf, MockExtender, MockReply

OWN_PATH: Final = "/mock-extenders/"
"""What stands before the id in a mock extender's address."""

PodOfUid = Callable[[str], Mapping[str, Any] | None]


def check_rules(rules: Any) -> None:
    """See whether rules are usable.

    Raises
    ------
    ConfigurationError
        With every field at fault, e.g. ``rules[0].deny.node``.
    """
    problems = Problems()
    part_of(MockExtender).check({"rules": rules}, "", problems)
    found = (*problems.types, *problems.unknown)
    if found:
        raise ConfigurationError(f"{found[0].field}: {found[0].detail}", found)


def answer(
    rules: Sequence[Mapping[str, Any]],
    verb: str,
    body: Mapping[str, Any],
    call: int,
    *,
    node_labels: LabelsOf,
    pod_of_uid: PodOfUid,
) -> MockReply:
    """What the rules answer to the `call`th request (from 0) of a verb (`scenario.mock_extender`)."""
    [extender] = extenders_of({0: rules})
    return extender.reply(verb, body, call, node_labels=node_labels, pod_of_uid=pod_of_uid)


def extenders_of(rules: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[MockExtender]:
    """Checked rules, by the extender's place in the configuration, as a scenario has them."""
    kind = part_of(MockExtender)
    return [
        kind.build(kind.check({"extender": place, "rules": list(rules[place])}, "", Problems()))
        for place in sorted(rules)
    ]


class ReplayMismatch(RuntimeError):
    """The replay asks an extender something else than what was asked then."""


class Relay:
    """A transport whose other side can be changed.

    Attributes
    ----------
    answered : list of ExtenderEntry
        Answers of the present batch, in order; the caller takes them.
    """

    def __init__(self) -> None:
        self.answered: list[ExtenderEntry] = []
        self.cycle: Callable[[], int | None] = lambda: None
        self._live: Transport = no_transport
        self._recorded: deque[dict[str, Any]] | None = None

    def connect(self, transport: Transport | None) -> None:
        """From now on calls go to this transport (None: to no extender)."""
        self._live = transport or no_transport
        self._recorded = None

    def replay(self, payloads: Sequence[dict[str, Any]]) -> None:
        """From now on calls get these answers."""
        self._recorded = deque(payloads)

    def take(self) -> list[ExtenderEntry]:
        """The answers since the last call."""
        answered, self.answered = self.answered, []
        return answered

    def end_replay(self) -> None:
        """Raise if the log holds answers that were not asked for.

        Raises
        ------
        ReplayMismatch
        """
        left, self._recorded = self._recorded, None
        self._live = no_transport
        if left:
            raise ReplayMismatch(f"{len(left)} answers of extenders were not asked for again")

    def __call__(self, requests: Sequence[ExtenderRequest]) -> Sequence[ExtenderAnswer]:
        """Send requests, or look their answers up."""
        if self._recorded is not None:
            return [self._found(request) for request in requests]
        answers = self._live(requests)
        cycle = self.cycle()
        self.answered.extend(
            ExtenderEntry(cycle, entry_payload(request, answer))
            for request, answer in zip(requests, answers, strict=True)
        )
        return answers

    def _found(self, request: ExtenderRequest) -> ExtenderAnswer:
        if not self._recorded:
            raise ReplayMismatch(f"{request.verb} at {request.url} was not asked then")
        payload = self._recorded.popleft()
        call = payload["call"]
        if (call["url"], call["verb"]) != (request.url, request.verb):
            raise ReplayMismatch(
                f"{request.verb} at {request.url} is asked where it was {call['verb']} at {call['url']}"
            )
        return answer_of(payload)


def entry_payload(
    request: ExtenderRequest, answer: ExtenderAnswer, pod: dict[str, str] | None = None
) -> dict[str, Any]:
    """The payload of an `extender` entry.

    Parameters
    ----------
    pod
        uid, namespace and name, of a bind call, whose answer is read like any other input.
    """
    call: dict[str, Any] = {"url": request.url, "verb": request.verb, "extender": request.extender_index}
    if pod is not None:
        call["pod"] = pod
    if OWN_PATH in request.url:
        # A scenario made of the log tells by it what its rules are to answer anew.
        call["request"] = subject_digest(request.body)
    return {
        "call": call,
        "answer": {
            "status": answer.status,
            "text": answer.text,
            "error": answer.error,
            "durationNs": answer.duration_ns,
        },
    }


def answer_of(payload: dict[str, Any]) -> ExtenderAnswer:
    """The answer in the payload of an `extender` entry."""
    answer = payload["answer"]
    return ExtenderAnswer(answer["status"], answer["text"], answer["error"], answer["durationNs"])
