"""Documents that are written often, as small as they get in a time that is not noticed."""

import lzma
import zlib
from typing import Final

SMALL_BYTES: Final = 4_000_000
"""Above this size the tenfold time of the stronger compression would be noticed (1 s for 20 MB)."""
_XZ_MAGIC: Final = b"\xfd7zXZ\x00"


def compress(text: bytes) -> bytes:
    """About half of what deflate makes of it, unless it is large."""
    return lzma.compress(text, preset=1) if len(text) <= SMALL_BYTES else zlib.compress(text, 1)


def decompress(data: bytes) -> bytes:
    """Of either form; what was written before this was so is deflate, whatever its size.

    Raises
    ------
    zlib.error, lzma.LZMAError
    """
    return lzma.decompress(data) if data.startswith(_XZ_MAGIC) else zlib.decompress(data)
