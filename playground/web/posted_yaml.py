"""YAML as people edit it: documents to text, text to one mapping, the line a field path stands on."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from playground.clusters.errors import InvalidManifest
from playground.clusters.services.config import read_config
from playground.clusters.services.posted import read_posted
from playground.engine.admission import dump_yaml

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


def read_mapping(text: str) -> dict[str, Any]:
    """Return the one document of a text, read by the same guarded reader as every manifest.

    Raises
    ------
    InvalidManifest
        Bad YAML, with its line; or not exactly one document.
    """
    posted = read_posted(text)
    if len(posted) != 1:
        raise InvalidManifest(f"expected one document, found {len(posted)}")
    return dict(posted[0].manifest)


def read_configuration(text: str) -> dict[str, Any]:
    """Return the scheduler configuration of a text, also out of a ConfigMap among other manifests.

    Raises
    ------
    InvalidManifest
        Bad YAML, with its line; nothing; or several configurations.
    """
    posted = read_posted(text)
    if not posted:
        raise InvalidManifest("expected a configuration, found nothing")
    return read_config([one.manifest for one in posted])


def yaml_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the documents as YAML, without the ``---`` before the first one."""
    return dump_yaml(documents).removeprefix("---\n")


def line_of(text: str, path: str) -> int | None:
    """Return the line (from 1) of a field path like ``profiles[0].plugins``, or of its deepest part there is.

    >>> line_of("a:\\n- b: 1\\n  c: 2\\n", "a[0].c"), line_of("a: 1", "b")
    (3, None)
    """
    if not path:
        return None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    line = None
    for step in _STEP.findall(path):
        found = _child(node, step)
        if found is None:
            return line
        node, line = found
    return line


def _child(node: Any, step: str) -> tuple[Any, int] | None:
    if isinstance(node, yaml.SequenceNode) and step.startswith("["):
        index = int(step[1:-1])
        if index < len(node.value):
            return node.value[index], node.value[index].start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line + 1
    return None
