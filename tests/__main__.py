"""Everything a change must pass: `python -m tests [OPTIONS OF PYTEST]`, the tools beside the tests.

A tool that finds something does not keep the tests from running; it is told when it is found, the summary says so once
more, and the exit code is 1.
"""

import sys

import pytest

sys.exit(pytest.main(["--tools", *sys.argv[1:]]))
