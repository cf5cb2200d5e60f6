"""`python -m scheduler_core`: the scheduler without the web."""

from __future__ import annotations

from scheduler_core.cli.main import command

command()
