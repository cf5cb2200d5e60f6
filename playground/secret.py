"""The embedded mode's secret key: made once, kept beside the database, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def load_or_create_secret_key(path: Path) -> str:
    """Return the key in `path`; the first caller makes it, also when two processes start at once."""
    # Written whole and then linked into place, so an empty key is never read.
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
