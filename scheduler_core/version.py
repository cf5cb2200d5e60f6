"""Which scheduler this one behaves like, and which engine it is."""

from __future__ import annotations

EMULATES = "v1.34.1"
ENGINE_VERSION = "0.1.0"
