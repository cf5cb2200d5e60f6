"""A scenario as one line of text that proves itself: what follows the `#` of a link, and what a standalone file holds.

The line is `1.DIGEST.PAYLOAD`: the version of this form, the scenario's digest in hex, and base64url (without padding)
of zlib of two lines of JSON. The first is the canonical form, whose SHA-256 is the digest, so that the reader of the
line can check it with nothing but SHA-256 (`standalone/carried.js` does); the second is the scenario with its words as
it was written, and what its author says of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.scenario.canonical import canonical_bytes
from scheduler_core.scenario.load import scenario_document
from scheduler_core.scenario.types import Scenario

VERSION: Final = "1"
MAX_LINK_CHARS: Final = 32_000
"""Longest line that is put into a link; browsers take twice as much, some chat programs far less."""
MAX_CARRIED_BYTES: Final = 32 * 2**20
"""Most bytes a line may unfold to: a few letters can stand for gigabytes."""
_LINE: Final = re.compile(r"([0-9]{1,4})\.([0-9a-f]{64})\.([A-Za-z0-9_-]+)")
_LINK: Final = re.compile(rb"https?://[^\s#]*(?:/open/?(?:\?[^\s#]*)?#|#(?=[0-9]{1,4}\.[0-9a-f]{64}\.))(\S*)")
"""Of a site, which opens it, or of a playground in a page."""
_IN_FILE: Final = re.compile(rb'<script type="text/plain" id="scenario">\s*([^<\s]+)\s*</script>')
STANDALONE_MARK: Final = '<meta name="generator" content="kube-scheduler-playground standalone 1">'
"""What a standalone file has near its beginning."""


class CarriedError(ValueError):
    """A line that is no carried scenario, was cut or changed, or is of a later version; says which."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a line carries.

    Attributes
    ----------
    digest : str
        Hex SHA-256 of `canonical`; checked.
    canonical : bytes
    document : mapping
        The scenario as it was written. That it has the same digest is checked by who loads it.
    note : str
        What the author says of it.
    opens_at : int or None
        The cycle the author shows.
    """

    digest: str
    canonical: bytes
    document: Mapping[str, Any]
    note: str = ""
    opens_at: int | None = None

    @property
    def text(self) -> str:
        """The document as JSON, which is YAML, too."""
        return json.dumps(self.document, ensure_ascii=False, indent=1) + "\n"


def carry(scenario: Scenario, *, note: str = "", opens_at: int | None = None) -> str:
    """The line of a scenario; the same for the same scenario, note and moment."""
    canonical = canonical_bytes(scenario)
    said: dict[str, Any] = {"document": scenario_document(scenario)}
    if note:
        said["note"] = note
    if opens_at is not None:
        said["opensAt"] = opens_at
    words = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    packed = zlib.compress(canonical + b"\n" + words.encode(), 9)
    payload = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return f"{VERSION}.{hashlib.sha256(canonical).hexdigest()}.{payload}"


def carried_in(data: bytes, *, max_bytes: int = MAX_CARRIED_BYTES) -> Carried | None:
    """What a link or a standalone file carries; None where the data is neither.

    Raises
    ------
    CarriedError
    """
    if STANDALONE_MARK.encode() in data[:4096]:
        found = _IN_FILE.search(data)
        line = found[1].decode("ascii", "replace") if found else ""
    else:
        # Longer than any link, it is a document.
        link = _LINK.fullmatch(data.strip()) if len(data) <= 2 * MAX_LINK_CHARS else None
        if link is None:
            return None
        line = link[1].decode("ascii", "replace")
    return unfold(line, max_bytes=max_bytes)


def check_words(carried: Carried, digest: str) -> None:
    """Refuse words that belong to another scenario than the one whose digest is proved.

    Raises
    ------
    CarriedError
    """
    if digest != carried.digest:
        raise CarriedError(
            f"the scenario as written has the digest {digest}, not {carried.digest} as it says: it was changed"
        )


def unfold(line: str, *, max_bytes: int = MAX_CARRIED_BYTES) -> Carried:
    """What a line carries.

    Raises
    ------
    CarriedError
        With the cause; nothing of such a line is to be used.
    """
    found = _LINE.fullmatch(line.strip().removeprefix("#"))
    if found is None:
        raise CarriedError(
            "this is no carried scenario, or not all of it: it is `1.`, 64 digits of a digest, a dot, and letters,"
            f' digits, - and _; it begins with "{line.strip()[:24]}"'
        )
    version, digest, payload = found.groups()
    if version != VERSION:
        raise CarriedError(
            f"it is of version {version} of the form, and version {VERSION} is read here: a newer playground reads it"
        )
    lines = _inflated(payload, max_bytes).split(b"\n")
    if len(lines) != 2:
        raise CarriedError("it does not hold a scenario and its words: it was changed")
    canonical = lines[0]
    actual = hashlib.sha256(canonical).hexdigest()
    if actual != digest:
        raise CarriedError(f"it says that its digest is {digest}, and it is {actual}: it was changed")
    try:
        said = json.loads(lines[1])
        document, note, opens_at = said["document"], said.get("note", ""), said.get("opensAt")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CarriedError("the words beside the scenario cannot be read: it was changed") from None
    is_number = isinstance(opens_at, int) and not isinstance(opens_at, bool)
    if not (isinstance(document, dict) and isinstance(note, str) and (opens_at is None or is_number)):
        raise CarriedError("the words beside the scenario are not what they should be: it was changed")
    return Carried(digest, canonical, document, note, opens_at)


def _inflated(payload: str, max_bytes: int) -> bytes:
    try:
        packed = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        inflater = zlib.decompressobj()
        data = inflater.decompress(packed, max_bytes)
    except (binascii.Error, zlib.error, ValueError):
        raise CarriedError("it cannot be unpacked: it was cut or changed on its way") from None
    if inflater.unconsumed_tail:
        raise CarriedError(f"unpacked it has more than {max_bytes:,} bytes, which are the most that are read")
    if not inflater.eof or inflater.unused_data:
        raise CarriedError("it cannot be unpacked to its end: it was cut or changed on its way")
    return data
