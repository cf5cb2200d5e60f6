"""Which engine this is."""

from __future__ import annotations

ENGINE_VERSION = "0.1.0"
