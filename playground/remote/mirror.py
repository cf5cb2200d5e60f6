"""A cluster of a playground that mirrors what `follow` reads.

Batches are numbered, and each is sent until it was taken: the playground takes one that comes twice once. While it is
away nothing else is sent or read, so memory is bounded; the watches then find again what they missed.
"""

from __future__ import annotations

import getpass
import json
import socket
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from playground.remote.instance import Instance, Refused, part
from scheduler_core.incident.verdicts import JudgedDecision
from scheduler_core.incident.watched import LISTED, NOT_KNOWN
from scheduler_core.objects.fields import format_time_ns, parse_time_ns

BATCH_BYTES: Final = 600_000
"""Of JSON; a playground takes a megabyte at once."""
NAMES: Final = 5_000
"""Names of a kind sent at once."""
SIGN_OF_LIFE_S: Final = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
LAST_PAUSE_S: Final = 2.0
"""The longest before a try to send what is left when following has ended."""
_PASSES: Final = (0, 429, 500, 502, 503, 504)
"""Refusals that a later try may not meet; 0 = no answer."""

Line = Mapping[str, Any]


class Mirror:
    """A cluster of a playground, and what is sent to it.

    Parameters
    ----------
    instance
        The playground.
    name
        Of the cluster there that mirrors, or its id; one is made where there is none.
    source
        Of the live cluster.
    made_with
        Configuration, release and gates of a cluster that is made.
    say
        Called with a document and a sentence where the playground is away.
    is_over
        Whether nothing is to be tried again.

    Raises
    ------
    Refused
    """

    def __init__(
        self,
        instance: Instance,
        name: str,
        source: str,
        *,
        redacted: bool,
        made_with: Mapping[str, Any],
        say: Callable[[Mapping[str, Any], str], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._instance, self._say, self._is_over = instance, say, is_over
        self.cluster = self._find(name) or self._make(name, made_with)
        self._path = f"clusters/{part(self.cluster)}/following/"
        program = f"follow by {getpass.getuser()} on {socket.gethostname()}"[:200]
        begun = instance.ask("PUT", self._path, {"source": source, "program": program, "redacted": redacted})[
            1
        ]
        self.page = instance.page(begun["page"])
        self._session = begun["session"]
        self._number = 0
        self._there: dict[str, set[str]] = {}
        self._gaps: list[dict[str, str]] = []
        self._changes: list[Line] = []
        self._decisions: list[dict[str, Any]] = []
        self._n_bytes = 0
        self._batch: dict[str, Any] | None = None
        self._newest_ns = 0
        self._sent_gaps = -1
        self._sent_s = 0.0
        self.is_paused = False

    def _find(self, name: str) -> str | None:
        page: str | None = "clusters/?limit=100"
        while page:
            found = self._instance.get(page)
            for cluster in found["items"]:
                if cluster["id"] == name or (cluster["name"] == name and cluster["clock"]["mode"] == "live"):
                    return str(cluster["id"])
            page = found["next"]
        return None

    def _make(self, name: str, made_with: Mapping[str, Any]) -> str:
        return str(self._instance.post("clusters/", {"name": name, "live": True, **made_with})["id"])

    # ---- what is sent

    def change(self, line: Line) -> None:
        """A line of `incident.watched`; sent when many have come."""
        if line["type"] == NOT_KNOWN:
            fact = {key: str(line.get(key) or "") for key in ("kind", "resource", "group", "what")}
            self._gaps += [fact] if fact not in self._gaps else []
            return
        manifest = line["object"]
        if manifest["kind"] == "Event":
            return
        if line["type"] == LISTED:
            meta = manifest["metadata"]
            place = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
            self._there.setdefault(manifest["kind"], set()).add(place)
        self._add({key: line[key] for key in ("at", "type", "object")})

    def decision(self, one: JudgedDecision) -> None:
        """A decision that is judged."""
        ours = one.found
        more = {
            "uid": one.decision.uid,
            "message": one.decision.message,
            "ourVictims": list(ours.victims),
            "score": ours.score,
            "ourScore": ours.our_score,
            "nTied": ours.n_tied,
        }
        self._decisions.append(
            {**one.document(), **{key: value for key, value in more.items() if value not in (None, "", [])}}
        )

    def listed(self, kinds: Sequence[str]) -> None:
        """All objects of these kinds were sent: what the mirror has besides is gone."""
        at = format_time_ns(time.time_ns())
        for kind in kinds:
            names = self._there.pop(kind, set())
            of = len(names) // NAMES + 1
            parts: list[list[str]] = [[] for _ in range(of)]
            for name in sorted(names):
                parts[zlib.crc32(name.encode()) % of].append(name)
            for place, some in enumerate(parts):
                self._add({"at": at, "type": "THERE", "kind": kind, "names": some, "part": place, "of": of})
        self.send(listed=True)

    def _add(self, line: Line) -> None:
        size = len(json.dumps(line, ensure_ascii=False))
        if self._n_bytes + size > BATCH_BYTES:
            self.send()
        self._changes.append(line)
        self._n_bytes += size

    # ---- sending

    def send(self, *, listed: bool = False) -> None:
        """Send what came since, or after a while that there is nothing; until it was taken.

        Raises
        ------
        Refused
            The playground will not take it: another follower took over, say, or the cluster is gone.
        """
        self._deliver()
        is_quiet = not (self._changes or self._decisions or listed or len(self._gaps) != self._sent_gaps)
        if is_quiet and time.monotonic() - self._sent_s < SIGN_OF_LIFE_S:
            return
        self._number += 1
        self._newest_ns = max((parse_time_ns(line["at"]) for line in self._changes), default=time.time_ns())
        self._batch = {
            "session": self._session,
            "number": self._number,
            "changes": self._changes,
            "decisions": self._decisions,
            "notKnown": self._gaps[:100],
            "listed": listed,
        }
        self._changes, self._decisions, self._n_bytes, self._sent_gaps = [], [], 0, len(self._gaps)
        self._deliver()

    def _deliver(self) -> None:
        """Send the batch that is not taken yet, if there is one; also one whose sending was interrupted."""
        pause_s = FIRST_PAUSE_S
        while self._batch is not None:
            self._batch["lagMs"] = max(0, (time.time_ns() - self._newest_ns) // 1_000_000)
            try:
                self.is_paused = bool(self._instance.post(self._path, self._batch).get("paused"))
            except Refused as error:
                if error.status not in _PASSES or (self._is_over() and pause_s > LAST_PAUSE_S):
                    raise
                if pause_s == FIRST_PAUSE_S:
                    self._say({"waits": str(error)}, f"{error}; trying again until it can be.")
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self._batch, self._sent_s = None, time.monotonic()
