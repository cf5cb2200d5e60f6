"""What a machine can check of the tree without running it: `python -m tests.tools`; part of `python -m tests`.

All start at once, and each says in one line that it finds nothing, or all that it finds.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TEMPLATES: Final = ("templates", "playground/api/templates")
# A heading beside its text on one line, an empty element that styles draw, a line break within a placeholder.
NOT_ASKED: Final = "H015,H020,H023"

TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "mypy": ("mypy",),
    "import-linter": ("import-linter", "lint", "--no-cache", "--no-logo"),
    "djlint": ("djlint", *TEMPLATES, "--lint", "--quiet", "--profile", "django", "--ignore", NOT_ASKED),
    "djhtml": ("djhtml", "--tabwidth", "2", "--check", *TEMPLATES),
    "ruff check": ("ruff", "check", "--quiet", "."),
    "ruff format": ("ruff", "format", "--check", "--quiet", "."),
}  # fmt: skip
"""Name -> program and arguments; what takes longest first."""


def found_by(tools: Mapping[str, Sequence[str]] = TOOLS) -> list[str]:
    """Run them side by side; names of those that found something, which is printed."""
    begun_s = time.monotonic()
    running = {
        name: subprocess.Popen(
            [str(Path(sys.executable).with_name(command[0])), *command[1:]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in tools.items()
    }
    failed = []
    for name, process in reversed(running.items()):
        said = process.communicate()[0]
        if process.returncode:
            failed.append(name)
            print(f"{said}\n{name} FAILED", flush=True)
        else:
            print(f"{name}: nothing found ({time.monotonic() - begun_s:.0f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if found_by() else 0)
