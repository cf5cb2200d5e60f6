"""Writing documents as YAML that `documents` reads back equal."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from scheduler_core.objects.documents import TAG_PREFIX


def dump_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Write documents as one YAML text that `load_documents` reads back equal."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True)


class DocumentWriter:
    """The same text one document after the other; what many objects have in common is worded once.

    Parameters
    ----------
    most_known : int
        Distinct values remembered; then it begins anew.
    """

    def __init__(self, most_known: int = 2000) -> None:
        self._known: dict[bytes, str] = {}
        self._most_known = most_known

    def write(self, document: Mapping[str, Any]) -> str:
        """One document, its first line ``---``. A mapping in block style is its entries one below the other."""
        parts = ["---\n"]
        for key, value in document.items():
            if key in ("spec", "status") and isinstance(value, dict) and value:
                parts.append(self._shared(key, value))
            else:
                parts.append(_dumped({key: value}))
        return "".join(parts) if len(parts) > 1 else dump_yaml([document])

    def _shared(self, key: str, value: Mapping[str, Any]) -> str:
        # The node is what tells the specs of bound replicas apart; it is written last.
        names = list(value)
        if len(names) < 2 or names[-1] != "nodeName":
            return self._once({key: value})
        common = {name: value[name] for name in names[:-1]}
        node = self._once({key: {"nodeName": value["nodeName"]}})
        return self._once({key: common}) + node.partition("\n")[2]

    def _once(self, value: dict[str, Any]) -> str:
        mark = marshal.dumps(value, 2)
        text = self._known.get(mark)
        if text is None:
            if len(self._known) >= self._most_known:
                self._known.clear()
            text = self._known[mark] = _dumped(value)
        return text


def _dumped(value: Mapping[str, Any]) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every string the loader would read as something else; no aliases."""

    yaml_implicit_resolvers = dict(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver(
    TAG_PREFIX + "float", re.compile(r"^[-+]?[0-9.]+[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
_Dumper.add_implicit_resolver(TAG_PREFIX + "int", re.compile(r"^[-+]?0o?[0-7]+$"), list("-+0"))
