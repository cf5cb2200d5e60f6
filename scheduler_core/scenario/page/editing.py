"""What the page's editor asks: what may be written at a place, by the schemas that are checked; a text made short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from scheduler_core.objects import short
from scheduler_core.objects.prices import shipped_prices
from scheduler_core.objects.reading import dump_yaml
from scheduler_core.scenario.canonical import canonical_manifest, scenario_digest
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.scenario.form import SCHEMA
from scheduler_core.scenario.load import load_scenario, scenario_document
from scheduler_core.scenario.types import API_VERSION, KIND, Scenario
from scheduler_core.schema import tables

MOST: Final = 40
"""Choices that are offered."""
_KEY: Final = re.compile(r"^([ \t]*(?:- +)*)(?:(\{.*)|([\w./-]+):(.*)|([\w./-]*))$")


def choices_at(text: str, at: int) -> dict[str, Any]:
    """What may be written where a text is edited.

    Returns
    -------
    dict
        ``from``, the character from which it takes the place of what is there, and ``choices``, each with ``name``,
        ``words`` and ``insert``.
    """
    before = text[:at]
    typed = re.search(r"[\w./-]*$", before)
    word = typed[0] if typed else ""
    path, value_of, kinds = _place(text, before)
    if value_of:
        found = dict.fromkeys(_values(path, value_of), "")
        end = ""
    else:
        found, end = _fields(path, kinds), ": "
    choices = [
        {"name": name, "words": words, "insert": name + end}
        for name, words in found.items()
        if name.lower().startswith(word.lower()) and name != word
    ]
    return {"from": at - len(word), "choices": choices[:MOST]}


def _place(text: str, before: str) -> tuple[list[str], str, tuple[str, str]]:
    """Keys from the outermost to the place, whose value is written there (or nothing), apiVersion and kind around."""
    lines = before.split("\n")
    last = lines[-1]
    value_of = ""
    path: list[str] = []
    flow = _open_flow(last)
    depth = len(last) - len(last.lstrip())
    if flow is not None:
        value = re.search(r"([\w./-]+):\s*[\w./-]*$", flow)
        value_of = value[1] if value else ""
        last_key = re.match(r"[ \t]*(?:- +)*([\w./-]+):", last[: len(last) - len(flow)])
        path = [last_key[1]] if last_key else []
        # A list's dash may be as deep as its key.
        depth = depth if path else depth + 1
    elif value := re.match(r"[ \t]*(?:- +)*([\w./-]+):\s+[\w./-]*$", last):
        value_of = value[1]
    item = re.match(r"[ \t]*((?:- +)+)", last)
    depth = depth + len(item[1]) if item and flow is None else depth
    for line in reversed(lines[:-1]):
        key = re.match(r"^([ \t]*)((?:- +)*)([\w./-]+):", line)
        if key is None:
            continue
        column = len(key[1]) + len(key[2])
        if column < depth:
            path.insert(0, key[3])
            depth = column
    return path, value_of, _kinds(text, len(lines) - 1)


def _open_flow(line: str) -> str | None:
    """What follows the innermost brace of a line that is open."""
    open_at: list[int] = []
    for place, letter in enumerate(line):
        if letter == "{":
            open_at.append(place)
        elif letter == "}" and open_at:
            open_at.pop()
    return line[open_at[-1] + 1 :] if open_at else None


def _kinds(text: str, number: int) -> tuple[str, str]:
    """The apiVersion and kind written nearest before the line, or behind it in the same document."""
    lines = text.split("\n")
    found = {}
    for key in ("apiVersion", "kind"):
        places = [
            (at, match[1])
            for at, line in enumerate(lines)
            if (match := re.match(rf"[ \t-]*{key}:\s*([\w./]+)", line))
        ]
        before = [value for at, value in places if at <= number]
        found[key] = before[-1] if before else places[0][1] if places else ""
    return found["apiVersion"], found["kind"]


def _fields(path: list[str], kinds: tuple[str, str]) -> dict[str, str]:
    """Fields of the place, with their words: of Kubernetes' types within a manifest, else of the scenario's schema."""
    type_name = tables.types_by_kind().get(kinds)
    if type_name is not None and kinds[1] != KIND:
        inner = path[path.index("objects") + 1 :] if "objects" in path else path
        if path[:1] not in (["nodes"], ["pods"]):
            return _of_type(type_name, inner)
    schema: Any = SCHEMA
    for key in path:
        schema = next((one for one in _within(schema, key)), {})
    found: dict[str, str] = {}
    for one in _objects(schema):
        found |= {name: said.get("description", "") for name, said in one.get("properties", {}).items()}
    return found


def _of_type(type_name: str, path: list[str]) -> dict[str, str]:
    for key in path:
        field = tables.types().get(type_name, {}).get(key)
        if field is None:
            return {}
        type_name = field.item
    words = tables.prose().get(type_name, ("", {}))[1]
    return {name: words.get(name, "") for name in tables.types().get(type_name, {})}


def _objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every schema of an object within a schema: itself, what it refers to, its items, its alternatives."""
    if "$ref" in schema:
        yield from _objects(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "properties" in schema:
        yield schema
    for one in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(one, Mapping):
            yield from _objects(one)


def _within(schema: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    return (one["properties"][key] for one in _objects(schema) if key in one["properties"])


def _values(path: list[str], key: str) -> list[str]:
    if path[:1] == ["nodes"] and key == "type":
        return sorted(one.name for one in shipped_prices().types)
    if key == "kind":
        return sorted({kind for _, kind in tables.types_by_kind()})
    schema: Any = SCHEMA
    for one in (*path, key):
        schema = next(_within(schema, one), {})
    return [str(value) for one in (schema, *_objects(schema)) for value in one.get("enum", ())]


def shortened_text(scenario: Scenario) -> str:
    """A scenario as YAML, its nodes and pods in the short form where that says the same: equal digests."""
    document = scenario_document(scenario)
    objects = document.pop("objects", [])
    found = short.shortened(objects, canonical_manifest)
    bare = {
        key: value
        for key, value in document.items()
        if key not in ("apiVersion", "kind", "kubernetesRelease")
    }
    bare["kubernetesRelease"] = scenario.release.name
    # Pods are tried in the order in which they come: where some are no short ones, all are written as they are.
    whole = {
        "nodes": found.get("nodes", []),
        "objects": [one for one in objects if one.get("kind") != "Node"],
    }
    for parts in (found, whole):
        lists = {key: items for key, items in parts.items() if items and key in short.FIELDS}
        text = _yaml(bare | {"objects": parts.get("objects")}) + "".join(
            f"{key}:\n" + "".join(f"- {_flow(item)}\n" for item in items) for key, items in lists.items()
        )
        try:
            if lists and scenario_digest(load_scenario(text)) == scenario_digest(scenario):
                return text
        except ScenarioError:
            continue
    return _yaml({"apiVersion": API_VERSION, "kind": KIND, **bare, "objects": objects})


def _yaml(document: Mapping[str, Any]) -> str:
    return dump_yaml([{key: value for key, value in document.items() if value}]).removeprefix("---\n")


def _flow(item: Mapping[str, Any]) -> str:
    plain = {
        name: int(value) if isinstance(value, str) and value.isdigit() else value
        for name, value in item.items()
    }
    return str(yaml.dump(plain, default_flow_style=True, sort_keys=False, width=100_000)).strip()
