"""Everything a change must pass: `python -m tests [OPTIONS OF PYTEST]`.

First the tools, then pytest, whose summary ends it. A tool that finds something does not keep the tests from running;
the summary says so once more, and the exit code is 1.
"""

import os
import subprocess
import sys

from tests import tools

failed = tools.found_by()
done = subprocess.run(
    [sys.executable, "-m", "pytest", *sys.argv[1:]],
    env=os.environ | {"PLAYGROUND_TOOLS_FAILED": ", ".join(failed)},
    check=False,
)
sys.exit(done.returncode or bool(failed))
