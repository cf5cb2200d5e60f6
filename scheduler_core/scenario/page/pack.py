"""Packs the parts of a page's runtime: run by the Python that the page will have, in node (`pack.js`).

Each part is a zip of stored files, packed whole: bytecode, of Python and NumPy the modules that the core asks for. So
nothing is compiled, nor unpacked file by file, in a reader's browser.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import io
import marshal
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path

LIBRARY = "python3.11"
UNUSED = ("fft", "linalg", "ma", "polynomial", "random")
"""Packages that NumPy imports and the core has no use for: a module of the name alone takes their place."""
EMPTY = "def __getattr__(name):\n    if name.startswith('__'):\n        raise AttributeError(name)\n"


def pack(core: str, packages: str, into: str) -> None:
    """Write ``python.bin``, ``numpy.bin``, ``core.bin``.

    Parameters
    ----------
    core
        The zip that `page.archive` makes.
    packages
        A folder of npm packages.
    into
        A folder.
    """
    numpy = Path(packages) / "@cowasm/py-numpy/dist/wasm"
    sys.path[:0] = [core, str(numpy)]
    sources = {name: data.decode() if name.endswith(".py") else data for name, data in _members(core).items()}
    compiled = {}
    for name, data in sources.items():
        if isinstance(data, str):
            _import_all(name, ast.parse(data))
            compiled[f"core/{name}c"] = bytecode(data, name)
        else:
            compiled[f"core/{name}"] = data
    Path(into, "core.bin").write_bytes(packed(compiled))

    python = {
        "kernel.wasm": Path(packages, "@cowasm/kernel/dist/kernel/kernel.wasm").read_bytes(),
        "python.wasm": Path(packages, "python-wasm/dist/python.wasm").read_bytes(),
    }
    arrays = {f"core/numpy/{name}/__init__.pyc": bytecode(EMPTY, name) for name in UNUSED}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(f"/usr/lib/{LIBRARY}/"):
            name, data = file.removeprefix("/usr/lib/"), Path(file).read_bytes()
            python |= {f"{name}c": bytecode(data.decode(), name)} if name.endswith(".py") else {name: data}
        elif file.startswith(str(numpy)) and file.split("/numpy/")[-1].split("/")[0] not in UNUSED:
            # Its docstrings are wanted where it is imported.
            arrays[f"core{file.removeprefix(str(numpy))}"] = Path(file).read_bytes()
    Path(into, "python.bin").write_bytes(packed(python))
    Path(into, "numpy.bin").write_bytes(packed(arrays))


def _members(path: str) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def _import_all(name: str, tree: ast.Module) -> None:
    """Import a module and whatever it imports anywhere, late ones too: what this machine lacks the page lacks."""
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")]
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            names += [one.name for one in item.names]
        elif isinstance(item, ast.ImportFrom) and item.module and not item.level:
            names.append(item.module)
    for one in names:
        if not one.endswith("__main__"):
            try:
                importlib.import_module(one)
            except ImportError:
                continue


class _Shorter(ast.NodeTransformer):
    """Takes docstrings away. A decorated class has a dot: of a dataclass without one its signature is written."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
            if isinstance(node, ast.ClassDef) and node.decorator_list:
                node.body.insert(0, ast.Expr(ast.Constant(".")))
            elif not node.body:
                node.body.append(ast.Pass())
        return node


def bytecode(source: str, name: str) -> bytes:
    """A module's `.pyc`, without docstrings."""
    tree = ast.parse(source)
    _Shorter().visit(tree)
    code = compile(ast.fix_missing_locations(tree), name, "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def packed(files: dict[str, bytes]) -> bytes:
    """A zip of stored files, packed whole."""
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as into:
        for name, data in sorted(files.items()):
            into.writestr(zipfile.ZipInfo(name), data)
    return gzip.compress(stored.getvalue(), 9, mtime=0)
