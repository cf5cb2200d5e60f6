"""What a person types to start this playground, for messages that tell them to."""

from __future__ import annotations

import sys
from pathlib import Path


def started_by() -> str:
    """`manage.py play`, or the installed command, which plays when it is told nothing else."""
    program = Path(sys.argv[0]).name
    return program if program.startswith("kube-scheduler-playground") else "manage.py play"
