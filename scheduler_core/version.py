"""Which engine this is."""

from __future__ import annotations

ENGINE_VERSION = "1.0.0"
