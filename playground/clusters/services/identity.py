"""Identities given to new objects: reproducible, because they depend on the cluster's seed and log only."""

import uuid
from typing import Final

_SPACE: Final = uuid.UUID("5f0c4f0e-6a5b-4a43-9d5e-2f3c1a7b9e10")
# Kubernetes' own alphabet for generated names: no vowels, no look-alikes.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def object_uid(seed: int, kind: str, namespace: str, name: str, seq: int) -> str:
    """The uid of an object created as entry `seq`."""
    return str(uuid.uuid5(_SPACE, f"{seed}/{seq}/{kind}/{namespace}/{name}"))


def generated_name(prefix: str, seed: int, seq: int, *, attempt: int = 0) -> str:
    """A name for metadata.generateName: the prefix and five characters."""
    number = uuid.uuid5(_SPACE, f"{seed}/{seq}/{attempt}/{prefix}").int
    letters = []
    for _ in range(5):
        number, position = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[position])
    return prefix[:248] + "".join(letters)
