"""`python -m scheduler_core`: the scheduler without the web."""

from __future__ import annotations

import sys

from scheduler_core.cli.main import main

sys.exit(main(sys.argv[1:]))
