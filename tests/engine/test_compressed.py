"""Stored documents are small, and JSON of any value."""

import json
import lzma
from typing import Any

import pytest
from django.utils.safestring import SafeString

from playground.engine.compressed import compress, decompress, from_json, to_json


def test_documents_are_stored_small() -> None:
    text = b'{"name":"p%d"}' * 5000
    stored = compress(text)
    assert stored.startswith(b"\x28\xb5\x2f\xfd")  # Zstandard
    assert len(stored) <= len(lzma.compress(text, preset=1))
    assert decompress(stored) == text


@pytest.mark.parametrize("value", ["\ud800", {"k": ["\udfff"]}, 2**70, 1e300, {"k": SafeString("x")}])
def test_what_the_fast_encoder_does_not_take_is_json_all_the_same(value: Any) -> None:
    assert from_json(to_json(value)) == value == json.loads(to_json(value))
