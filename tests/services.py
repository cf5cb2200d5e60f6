"""Decides, before Django reads its settings, on which servers the tests run."""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("PLAYGROUND_DATA", tempfile.mkdtemp(prefix="playground-tests-"))
os.environ.setdefault("CELERY_BROKER_URL", "memory://")
