"""Named random streams: each question draws from its own, so one more draw here never changes an answer there."""

from __future__ import annotations

import hashlib
import json
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


# --- Names and uids of objects the cluster itself makes: drawn from named random streams, so the same seed names alike.


ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, no look-alikes. Source: apimachinery/pkg/util/rand/rand.go alphanums, v1.34."""

SUFFIX_LENGTH = 5
HASH_LENGTH = 10
MAX_GENERATED_PREFIX = 63 - SUFFIX_LENGTH


def name_suffix(randomness: Randomness) -> str:
    """Five characters, as metadata.generateName appends them."""
    return _spelled(randomness.stream("names").below(len(ALPHABET) ** SUFFIX_LENGTH), SUFFIX_LENGTH)


def object_uid(randomness: Randomness) -> str:
    """A uid in the form of a random UUID (version 4)."""
    stream = randomness.stream("uids")
    number = stream.below(2**64) << 64 | stream.below(2**64)
    number = number & ~(0xF << 76) | 0x4 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def derived_uid(text: str) -> str:
    """A uid that follows from a text, where nothing may be drawn."""
    digits = hashlib.sha256(text.encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def template_hash(template: Any) -> str:
    """Hash of a pod template for names and labels.

    Source: pkg/controller/controller_utils.go ComputeHash, v1.34
    Differs: another hash function, so the characters are not upstream's.
    """
    text = json.dumps(template, sort_keys=True, separators=(",", ":"), default=str)
    return _spelled(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"), HASH_LENGTH)


def _spelled(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)
