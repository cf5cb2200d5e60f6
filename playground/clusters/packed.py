"""JSON columns that are stored small: a version byte, then Zstandard with a dictionary of what most of them are like.

A log entry repeats a whole manifest; compressed by itself it keeps half of its size, with the dictionary a fifteenth.
"""

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zstandard
from django.db import models

from playground.engine.compressed import from_json, to_json

VERSION: Final = 1
LEVEL: Final = 3

# Trained (`zstandard.train_dictionary`) on the log entries and rows of the demo, of made-up dumps as AWS and GKE give
# them, of workloads with probes, volumes and limits, and of an object of each kind. It is part of the stored format: a
# change of a single byte needs a new VERSION beside this one.
_DICTIONARY: Final = zstandard.ZstdCompressionDict(Path(__file__).with_name("packed.dictionary").read_bytes())
_PARAMETERS: Final = zstandard.ZstdCompressionParameters.from_level(
    LEVEL,
    format=zstandard.FORMAT_ZSTD1_MAGICLESS,
    write_content_size=True,
    write_checksum=False,
    write_dict_id=False,
)
_DICTIONARY.precompute_compress(compression_params=_PARAMETERS)

_MARK: Final = bytes([VERSION])


class _Zstandard(threading.local):
    """A thread's own: neither may be used by two at once."""

    def __init__(self) -> None:
        packing = zstandard.ZstdCompressor(dict_data=_DICTIONARY, compression_params=_PARAMETERS)
        reading = zstandard.ZstdDecompressor(dict_data=_DICTIONARY, format=zstandard.FORMAT_ZSTD1_MAGICLESS)
        self.compress = packing.compress
        self.decompress = reading.decompress


_ZSTANDARD: Final = _Zstandard()


class Packed(bytes):
    """A JSON value as it is stored already; to be written to the database only."""


def pack(value: Any) -> Packed:
    """A JSON value as it is stored."""
    return pack_text(to_json(value))


def pack_text(text: bytes) -> Packed:
    """The same of JSON text, for values whose text is needed more than once."""
    return Packed(_MARK + _ZSTANDARD.compress(text))


def unpack(data: bytes) -> Any:
    """What `pack` was given.

    Raises
    ------
    ValueError
        The bytes are of another version.
    """
    return from_json(text_of(data))


def text_of(data: bytes) -> bytes:
    """JSON text of what `pack` was given.

    Raises
    ------
    ValueError
        The bytes are of another version.
    """
    if data[:1] != _MARK:
        raise ValueError(f"a packed column of version {data[0]} cannot be read")
    return _ZSTANDARD.decompress(data[1:])


if TYPE_CHECKING:
    _BytesOfAny = models.BinaryField[Any, Any]
    _BytesOfText = models.BinaryField[str, str]
else:
    _BytesOfAny = _BytesOfText = models.BinaryField  # Django's own fields take no types while they run.


class PackedJSONField(_BytesOfAny):
    """A JSON value that is never searched by the database."""

    # What queries give and take, for the plugin of mypy.
    _pyi_private_get_type: Any
    _pyi_private_set_type: Any

    description = "JSON, stored compressed"
    empty_values = [None]

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if value is None:
            return None
        return connection.Database.Binary(value if isinstance(value, Packed) else pack(value))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None:
            return None
        return unpack(bytes(value))

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value


class HexField(_BytesOfText):
    """Hexadecimal digits, stored as the bytes they are."""

    _pyi_private_get_type: str  # type: ignore[assignment]  # of bytes, which these are not to those who read them
    _pyi_private_set_type: str

    description = "Hexadecimal digits"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> str | None:
        return None if value is None else bytes(value).hex()

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(_bytes(value), connection, prepared)

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value


def _bytes(value: Any) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else value
