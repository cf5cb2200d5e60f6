"""`kube-scheduler-playground`, the installed command: starts the playground, or runs an administrative task.

kube-scheduler-playground --port 8010
kube-scheduler-playground migrate
kube-scheduler-playground mcp --server http://127.0.0.1:8010
kube-scheduler-playground follow --context production
kube-scheduler-playground page public --pyodide https://files.example/pyodide/
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from playground.remote import PROGRAM, of_an_extra


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `manage.py play`, or another of `manage.py`'s commands by its name."""
    told = list(sys.argv[1:] if arguments is None else arguments)
    if told in (["--version"], ["-V"]):
        from scheduler_core.version import ENGINE_VERSION

        print(f"{PROGRAM} {ENGINE_VERSION}")
        return
    if told[:1] == ["mcp"]:
        with of_an_extra("mcp"):
            from playground.remote import mcp_tools
        mcp_tools.main(told[1:])
        return
    if told[:1] == ["follow"]:
        with of_an_extra("follow"):
            from playground.remote import follow
        sys.exit(follow.main(told[1:]))
    if told[:1] == ["page"]:
        from playground.remote import page

        sys.exit(page.main(told[1:]))
    if not told or told[0].startswith("-"):
        told = ["play", *told]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line([PROGRAM, *told])


if __name__ == "__main__":
    main()
