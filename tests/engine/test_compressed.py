"""Stored documents are small, and those of before are read."""

import zlib

import pytest

from playground.engine import compressed


@pytest.mark.parametrize("small_bytes", [0, 10**6])
def test_what_was_compressed_in_either_form_is_read(
    monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.setattr(compressed, "SMALL_BYTES", small_bytes)
    text = b'{"name":"p%d"}' * 5000
    stored = compressed.compress(text)
    assert stored.startswith(b"\xfd7zXZ") is bool(small_bytes)
    assert compressed.decompress(stored) == text
    assert compressed.decompress(zlib.compress(text, 1)) == text
