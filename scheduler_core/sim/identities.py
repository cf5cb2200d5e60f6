"""Names and uids of objects the cluster itself makes: drawn from named random streams, so the same seed names alike."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from scheduler_core.randomness import Randomness

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
    """Stands for a pod template in names and labels.

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
