"""`kube-scheduler-playground page DIR`: the playground as a folder of files, its engine in the reader's browser.

The runtime is Pyodide by its address, or bundled here from npm packages. Nothing of the site is loaded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final

from scheduler_core.scenario import page

PACKAGES: Final = (
    "python-wasm",
    "@cowasm/py-numpy",
    "webpack",
    "webpack-cli",
    "node-polyfill-webpack-plugin",
)
"""What a folder of npm packages must have to bundle the runtime."""


class CannotBundle(Exception):
    """A runtime cannot be bundled; the message says what is missing."""


def main(arguments: Sequence[str]) -> int:
    """Write the folder; 2 if the runtime cannot be made, with the reason on standard error."""
    parser = argparse.ArgumentParser("kube-scheduler-playground page", description=page.__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path, help="where to; a file server does the rest")
    runtime = parser.add_mutually_exclusive_group(required=True)
    runtime.add_argument("--pyodide", metavar="ADDRESS", help="of a folder that has Pyodide and its NumPy")
    runtime.add_argument(
        "--node-modules",
        metavar="FOLDER",
        type=Path,
        help=f"npm packages to bundle one: {', '.join(PACKAGES)}",
    )
    parser.add_argument(
        "--site", metavar="ADDRESS", default="", help="of a playground's site, to which it links"
    )
    options = parser.parse_args(arguments)
    bundled = partial(bundle, options.node_modules and options.node_modules.resolve())
    try:
        page.build(options.folder, options.pyodide or bundled, options.site)
    except (CannotBundle, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    size = sum(file.stat().st_size for file in options.folder.iterdir())
    print(f"{options.folder / 'index.html'}: serve the folder, {size / 2**20:.1f} MB, from a file server")
    return 0


def bundle(node_modules: Path, folder: Path) -> None:
    """Write the runtime of npm packages into a folder.

    Raises
    ------
    CannotBundle
    """
    if lacking := [name for name in PACKAGES if not (node_modules / name).is_dir()]:
        raise CannotBundle(f"{node_modules} has no {', '.join(lacking)}: npm install {' '.join(PACKAGES)}")
    with resources.as_file(resources.files(page)) as here, tempfile.TemporaryDirectory() as kept:
        core = Path(kept, "core.zip")
        core.write_bytes(page.archive())
        webpack = ["webpack/bin/webpack.js", "--config", here / "webpack.config.js",
                   "--env", f"entry={here / 'cowasm.worker.js'}", "--env", f"folder={folder.resolve()}"]  # fmt: skip
        pack = [here / "pack.js", here, core, node_modules, folder.resolve()]
        running = {
            name: subprocess.Popen(
                ["node", *map(str, command)], cwd=node_modules, env={**os.environ, "NODE_PATH": str(node_modules)},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for name, command in (("webpack", webpack), ("pack.js", pack))
        }  # fmt: skip
        for name, one in running.items():
            said, _ = one.communicate()
            if one.returncode:
                raise CannotBundle(f"{name} says: {said.strip()[-2000:]}")
