"""Named random streams: each question draws from its own, so one more draw here never changes an answer there."""

from __future__ import annotations

import hashlib
from typing import Any


class Stream:
    """A small counter-based generator: SHA-256 of (seed, name, counter).

    It is slow for bulk numbers and exactly right for one draw a cycle: its whole state is a counter, which makes a
    checkpoint two integers, and it gives the same numbers on every machine and version.
    """

    __slots__ = ("_key", "counter")

    def __init__(self, seed: int, name: str, counter: int = 0) -> None:
        self._key = f"{seed}/{name}/".encode()
        self.counter = counter

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1; the modulo's bias is below 2**-50 for any bound that occurs here."""
        digest = hashlib.sha256(self._key + str(self.counter).encode()).digest()
        self.counter += 1
        return int.from_bytes(digest[:8], "big") % bound

    def skip(self) -> None:
        """Leave out a number that was drawn before."""
        self.counter += 1


class Randomness:
    """All streams of one engine."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = Stream(self.seed, name)
        return found

    def state(self) -> dict[str, Any]:
        """The seed and how far each stream has come, for a checkpoint."""
        return {
            "seed": self.seed,
            "streams": {name: stream.counter for name, stream in self._streams.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.seed = int(state["seed"])
        self._streams = {
            name: Stream(self.seed, name, int(counter)) for name, counter in state["streams"].items()
        }
